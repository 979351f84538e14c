"""How far long work is: a bar on standard error when that is a terminal, silence otherwise.

A bar shows a stage, its share in percent, the amount that is done with its unit, the rate, and the
time that is left; without a known total it shows the amount, the rate and the time since the start.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TypeAlias

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

#: Called with the stage ("count" or "merge"), what is done, and the total where it is known: bytes
#: of text while counting, merges while merging. The total of bytes is an estimate until the end.
Callback: TypeAlias = Callable[[str, int, int | None], object]


class Position:
    """Where in its files a reader is, as a share of their bytes.

    The thread that reads writes it, and the thread that reports reads it.

    Args:
        size: of all files together, in bytes; None if it is not known.

    Example:
        >>> position = Position(300)
        >>> position.enter(100)
        >>> position.enter(200)
        >>> position.within(0.25)
        >>> position.share, position.total(75)
        (0.5, 150)
    """

    def __init__(self, size: int | None = None) -> None:
        self._size = size
        self._before = self._file = 0
        self._within = self._limit = 0.0

    def enter(self, size: int) -> None:
        """Begin the next file, of this many bytes; the one before is read."""
        self._before, self._file, self._within = self._before + self._file, size, 0.0

    def leave(self) -> None:
        """The file that was entered last is not read after all."""
        self._file, self._within = 0, 0.0

    def within(self, share: float) -> None:
        """The share of the file that is read, from 0 to 1."""
        self._within = min(share, 1.0)

    def limit(self, share: float) -> None:
        """The share of the limit that is read, from 0 to 1."""
        self._limit = min(share, 1.0)

    @property
    def share(self) -> float | None:
        """How much is read, as a number from 0 to 1; None if that is not known."""
        if not self._size:
            return self._limit or None
        return max(self._limit, min((self._before + self._file * self._within) / self._size, 1.0))

    def total(self, done: int) -> int | None:
        """Estimate the total from what the share that is read amounts to.

        Args:
            done: how much was made of this share, in any unit.
        """
        return round(done / self.share) if self.share else None


class Bar:
    """Reports to a bar, to a function, or to nobody.

    Args:
        progress: a function; True for a bar; False for silence; None for a bar if standard error is
            a terminal.

    Example:
        >>> from bytepair._internal.progress import Bar
        >>> with Bar(lambda stage, done, total: print(stage, done, total)) as bar:
        ...     bar.update("count", 10, None)
        count 10 None
    """

    def __init__(self, progress: bool | Callback | None) -> None:
        self._callback = progress if callable(progress) else None
        wanted = sys.stderr.isatty() if progress is None else progress is True
        self._bars = _new_bars() if wanted else None
        self._stages: dict[str, _Stage] = {}

    @property
    def is_silent(self) -> bool:
        """Whether nobody is told."""
        return self._callback is None and self._bars is None

    def __enter__(self) -> Self:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Fill the bar if the work is done, and leave it as it stands otherwise."""
        if kind is None:
            self._fill()
        if self._bars is not None:
            self._bars.stop()

    def update(self, stage: str, done: int, total: int | None, unit: str = "bytes") -> None:
        """Say how far a stage is; the stage before it is done.

        Args:
            stage: its name.
            done: how much is done.
            total: how much there is to do, or None; an estimate may change.
            unit: what is counted, in the plural.
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
    """The line of one stage.

    The bar runs from 0 to 1, since `rich` forgets its measurements when a total changes.
    """

    def __init__(self, bars: Progress, name: str, done: int, unit: str) -> None:
        self._bars, self._unit = bars, unit
        self._first, self._started = done, time.monotonic()
        self._share, self._filled = 0.0, False
        self._task: TaskID = bars.add_task(
            name, total=None, percent="", amount="", rate="", left=""
        )

    def update(self, done: int, total: int | None) -> None:
        """Show how much is done."""
        seconds = time.monotonic() - self._started
        rate = (done - self._first) / seconds if seconds > 0.5 else 0.0
        of = f" of {total:,}" if total and self._unit != "bytes" else ""
        shown: dict[str, Any] = {"amount": _amount(done, self._unit, of)}
        if rate > 0:
            shown["rate"] = f"{_amount(round(rate), self._unit)}/s"
        if not total:
            shown["left"] = _clock(seconds)
            self._bars.update(self._task, completed=done, **shown)
            return
        self._share = max(min(done / total, 1.0), self._share)  # an estimate may fall
        shown["percent"] = f"{self._share:4.0%}"
        shown["left"] = f"{_clock((total - done) / rate)} left" if rate > 0 else ""
        self._bars.update(self._task, total=1.0, completed=self._share, **shown)

    def fill(self) -> None:
        """The stage is done."""
        if self._filled:
            return
        self._filled = True
        left = _clock(time.monotonic() - self._started)
        self._bars.update(self._task, total=1.0, completed=1.0, percent="100%", left=left)


def _amount(number: int, unit: str, of: str = "") -> str:
    """A number with its unit; bytes as kB, MB and so on."""
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
