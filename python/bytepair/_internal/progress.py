"""Progress bars on standard error, if it is a terminal; otherwise nothing is printed.

A bar shows the stage, the percentage, the amount done with its unit, the rate and the remaining
time. If the total is unknown, it shows the amount, the rate and the elapsed time.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

#: Called with the stage ("count" or "merge"), the amount done, and the total or None: bytes of
#: text while counting, merges while merging. The total of bytes is an estimate until the end.
Callback: TypeAlias = Callable[[str, int, int | None], object]


#: If its level is above INFO, bars that nobody asked for are hidden too.
_LOG: Final = logging.getLogger("bytepair")


class ShareRead:
    """The share that a reader has read of its files, whose sizes are `size` together.

    The reading thread updates it; the reporting thread reads it.
    """

    def __init__(self, size: int | None = None) -> None:
        self._size = size
        self._before = self._file = 0
        self._within = self._limit = 0.0

    def enter(self, size: int, *, after: int | None = None) -> None:
        """Start a file of this many bytes, after so many; None means after the previous file."""
        self._before = self._before + self._file if after is None else after
        self._file, self._within = size, 0.0

    def leave(self) -> None:
        """Undo the last `enter`: that file will not be read."""
        self._file, self._within = 0, 0.0

    def within(self, share: float) -> None:
        """Set the fraction of the current file that has been read, from 0 to 1."""
        self._within = min(share, 1.0)

    def limit(self, share: float) -> None:
        """Set the fraction of the limit that has been reached, from 0 to 1."""
        self._limit = min(share, 1.0)

    @property
    def share(self) -> float | None:
        """The fraction that has been read, from 0 to 1; None if unknown."""
        if not self._size:
            return self._limit or None
        return max(self._limit, min((self._before + self._file * self._within) / self._size, 1.0))

    def total(self, done: int) -> int | None:
        """Estimate the total from the amount produced of the fraction that has been read."""
        return round(done / self.share) if self.share else None


class Bar:
    """Reports progress to a function, to a bar (True), not at all (False), or as usual (None).

    Usual is a bar if standard error is a terminal.
    """

    def __init__(self, progress: bool | Callback | None) -> None:
        self._callback = progress if callable(progress) else None
        usual = sys.stderr.isatty() and _LOG.level <= logging.INFO
        is_shown = usual if progress is None else progress is True
        self._bars = _new_bars() if is_shown else None
        self._stages: dict[str, _Stage] = {}

    @property
    def is_silent(self) -> bool:
        """Whether progress is not reported."""
        return self._callback is None and self._bars is None

    def __enter__(self) -> Self:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Fill the bar if the work succeeded; otherwise leave it where it is."""
        if kind is None:
            self._fill()
        if self._bars is not None:
            self._bars.stop()

    def update(self, stage: str, done: int, total: int | None, unit: str = "bytes") -> None:
        """Report the progress of a stage; a new stage means that the previous one is done.

        The total, None if unknown, may be an estimate that changes. The unit is in the plural.
        """
        if self._callback is not None:
            self._callback(stage, done, total)
        if self._bars is not None:
            if stage not in self._stages:
                self._fill()
                self._stages[stage] = _Stage(self._bars, stage, done, unit)
            self._stages[stage].update(done, total)

    def _fill(self) -> None:
        for stage in self._stages.values():
            stage.fill()


class _Stage:
    """The bar of one stage.

    The bar runs from 0 to 1, because `rich` discards its rate measurements when a total changes.
    """

    def __init__(self, bars: Progress, name: str, done: int, unit: str) -> None:
        self._bars, self._unit = bars, unit
        self._first, self._started = done, time.monotonic()
        self._share, self._filled = 0.0, False
        self._task: TaskID = bars.add_task(
            name, total=None, percent="", amount="", rate="", left=""
        )

    def update(self, done: int, total: int | None) -> None:
        """Update the bar."""
        seconds = time.monotonic() - self._started
        rate = (done - self._first) / seconds if seconds > 0.5 else 0.0
        of = f" of {total:,}" if total and self._unit != "bytes" else ""
        columns: dict[str, Any] = {"amount": _amount(done, self._unit, of)}
        if rate > 0:
            columns["rate"] = f"{_amount(round(rate), self._unit)}/s"
        if not total:
            columns["left"] = _clock(seconds)
            self._bars.update(self._task, completed=done, **columns)
            return
        self._share = max(min(done / total, 1.0), self._share)  # an estimated total may grow
        columns["percent"] = f"{self._share:4.0%}"
        columns["left"] = f"{_clock((total - done) / rate)} left" if rate > 0 else ""
        self._bars.update(self._task, total=1.0, completed=self._share, **columns)

    def fill(self) -> None:
        """Fill the bar: the stage is done."""
        if self._filled:
            return
        self._filled = True
        left = _clock(time.monotonic() - self._started)
        self._bars.update(self._task, total=1.0, completed=1.0, percent="100%", left=left)


def _amount(number: int, unit: str, of: str = "") -> str:
    """Format a number with its unit; bytes as kB, MB and so on."""
    if unit != "bytes":
        return f"{number:,}{of} {unit}"
    from rich.filesize import decimal

    return decimal(number)


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(max(seconds, 0.0)), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"


def _new_bars() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    return Progress(
        TextColumn("{task.description:>6}"),
        BarColumn(bar_width=20),
        *(TextColumn(f"{{task.fields[{name}]}}") for name in ("percent", "amount", "rate", "left")),
        console=Console(stderr=True),
    )
