"""Progress bars on standard error, if it is a terminal; otherwise nothing is printed.

A bar shows the stage, the percentage, the amount done with its unit, the rate and the remaining
time; if the total is unknown, the amount and the rate.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Self, TypeAlias

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
        self._tasks: dict[str, TaskID] = {}
        self._begin = (0, 0.0)  # of the last stage: what was done already, and when

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
        if self._bars is None:
            return
        if stage not in self._tasks:
            self._fill()
            self._tasks[stage] = self._bars.add_task(stage, total=None, amount="")
            self._begin = (done, time.monotonic())
        # From 0 to 1, because `rich` discards its measurements when a total changes.
        share, whole = (min(done / total, 1.0), 1.0) if total else (0.0, None)
        seconds = time.monotonic() - self._begin[1]
        amount = _amount(done, total, unit)
        if seconds > 0.5:
            amount += f", {_amount(round((done - self._begin[0]) / seconds), None, unit)}/s"
        self._bars.update(self._tasks[stage], completed=share, total=whole, amount=amount)

    def _fill(self) -> None:
        if self._bars is not None:
            for task in self._tasks.values():
                self._bars.update(task, total=1.0, completed=1.0)


def _amount(done: int, total: int | None, unit: str) -> str:
    from rich.filesize import decimal

    of = f" of {total:,}" if total else ""
    return decimal(done) if unit == "bytes" else f"{done:,}{of} {unit}"


def _new_bars() -> Progress:
    from rich import progress
    from rich.console import Console

    return progress.Progress(
        progress.TextColumn("{task.description:>6}"),
        progress.BarColumn(bar_width=20),
        progress.TaskProgressColumn(),
        progress.TextColumn("{task.fields[amount]}"),
        progress.TimeRemainingColumn(elapsed_when_finished=True),
        console=Console(stderr=True),
        get_time=time.monotonic,
    )
