"""An evaluation in, what a console of the package `rich` prints out: tables that fit its width.

A number is never cut. A table that is too wide has its heads folded; if that does not do, it is
turned, so that its columns become rows; and if that does not do either, each row becomes a block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from bytepair.evaluate.evaluation import Evaluation
from bytepair.evaluate.parallel import ParallelText
from bytepair.evaluate.table import Cell, Table, summary, tables

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions

_TONES: Final = {"good": "green", "bad": "red", "": ""}

#: Longer words may be folded; numbers never are.
UNFOLDED_CHARS: Final = 16
#: The number of spaces between two columns.
GAP_SPACES: Final = 2


def to_terminal(result: Evaluation | ParallelText) -> list[Any]:
    """Make an evaluation something that a console of the package `rich` prints in colours."""
    from rich.text import Text

    parts: list[Any] = [Text(repr(result.tokenizer), style="bold")]
    if isinstance(result, Evaluation):
        parts.append(Text(summary(result)))
    if result.missing:
        parts.append(Text(f"left out: {', '.join(result.missing)}", style="dim"))
    return [*parts, *(Fitted(table) for table in tables(result))]


class Fitted:
    """A table that takes the form which the width of a console allows."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Any]:
        """The title, the table in its form, the note."""
        from rich.text import Text

        yield Text(f"\n{self._table.title}\n", style="bold")
        for grid in self._forms():
            width = sum(grid.least()) + GAP_SPACES * (len(grid.rows[0]) - 1)
            if width <= options.max_width:
                break
        # If no form fits, the terminal folds the lines.
        yield from grid.lines(max(options.max_width, width))
        if self._table.note:
            yield Text(self._table.note, style="dim")

    def _forms(self) -> Iterator[_Grid]:
        """The table as it is, transposed, and in blocks."""
        head, rows = [Cell(name) for name in self._table.head], self._table.rows
        is_list = self._table.head[1:] == ["value"]
        words = self._table.title in {"Use", "Vocabulary", "Numbers"}
        yield _Grid(rows if is_list else [head, *rows], words, not is_list)
        if not is_list:
            yield _Grid([list(row) for row in zip(head, *rows, strict=True)], words, True)
        between = [Cell(""), Cell("")]
        blocks = [[between, *(list(pair) for pair in zip(head, row, strict=True))] for row in rows]
        yield _Grid(list(chain.from_iterable(blocks))[1:], words, False)


class _Grid:
    """Rows of cells; the first row may be a header, the first cell of a row is its name."""

    def __init__(self, rows: Sequence[Sequence[Cell]], words: bool, has_head: bool) -> None:
        self.rows, self._words, self._has_head = rows, words, has_head

    def least(self) -> list[int]:
        """The width that each column has at least."""
        columns = zip(*self.rows, strict=True)
        return [max(_longest_word(cell.text) for cell in column) for column in columns]

    def _widths(self, width: int) -> list[int]:
        """The width of each column for a total width; free space goes to the narrowest columns."""
        from rich.cells import cell_len

        widths = self.least()
        natural = [max(cell_len(c.text) for c in column) for column in zip(*self.rows, strict=True)]
        for _ in range(width - sum(widths) - GAP_SPACES * (len(widths) - 1)):
            lacking = [n for n, most in enumerate(natural) if widths[n] < most]
            if not lacking:
                break
            widths[min(lacking, key=widths.__getitem__)] += 1
        return widths

    def lines(self, width: int) -> Iterator[Any]:
        """The rows as a table of `rich`."""
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(
            box=None, padding=(0, GAP_SPACES, 0, 0), pad_edge=False, show_header=False
        )
        for number, least in enumerate(self._widths(width)):
            justify: Any = "left" if self._words or not number else "right"
            place: Any = "bottom" if self._has_head else "top"
            table.add_column(width=least, justify=justify, overflow="fold", vertical=place)
        for number, row in enumerate(self.rows):
            strong = "bold" if self._has_head and not number else ""
            table.add_row(*(Text(cell.text, style=_TONES[cell.tone] or strong) for cell in row))
        yield table


def _longest_word(text: str) -> int:
    from rich.cells import cell_len

    return min(max(map(cell_len, text.split()), default=0), UNFOLDED_CHARS)
