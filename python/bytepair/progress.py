"""How far long work is: a bar on standard error when that is a terminal, silence otherwise."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

#: Called with the stage ("count" or "merge"), what is done, and the total where it is known: bytes
#: of text while counting, merges while merging.
Callback: TypeAlias = Callable[[str, int, int | None], object]


class Bar:
    """Reports to a bar, to a function, or to nobody.

    Args:
        progress: a function; True for a bar; False for silence; None for a bar if standard error is
            a terminal.

    Example:
        >>> from bytepair.progress import Bar
        >>> with Bar(lambda stage, done, total: print(stage, done, total)) as bar:
        ...     bar.update("count", 10, None)
        count 10 None
    """

    def __init__(self, progress: bool | Callback | None) -> None:
        self._callback = progress if callable(progress) else None
        wanted = sys.stderr.isatty() if progress is None else progress is True
        self._bars = _new_bars() if wanted else None
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        """Show the bar."""
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the bar as it stands."""
        if self._bars is not None:
            self._bars.stop()

    def update(self, stage: str, done: int, total: int | None, note: str = "") -> None:
        """Say how far a stage is."""
        if self._callback is not None:
            self._callback(stage, done, total)
        if self._bars is not None:
            if stage not in self._tasks:
                self._tasks[stage] = self._bars.add_task(stage, total=total, note="")
            self._bars.update(self._tasks[stage], completed=done, total=total, note=note)


def _new_bars() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("{task.description:>6}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f}"),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    )
