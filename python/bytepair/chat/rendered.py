"""The results of rendering a data set of conversations: arrays, and numbers that describe them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from bytepair._internal.checks import place_of
from bytepair._internal.drawing import brief_html
from bytepair.corpus.column import listed
from bytepair.errors import ConversationError, SkippedWarning, warn
from bytepair.files.outputs import write_whole

if TYPE_CHECKING:
    import pyarrow as pa

#: The number of skipped rows that are named, and the characters of each in a warning.
MOST_NAMED: Final = 10
MOST_CHARS: Final = 85


@dataclass
class SkippedRows:
    """The rows that were left out as invalid.

    Attributes:
        count: how many.
        first: the place of each of the first, and why it is invalid.
    """

    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, place: str, error: ConversationError) -> None:
        """Count a row."""
        self.count += 1
        if self.count <= MOST_NAMED:
            self.first.append(f"{place}: {error.message}")

    def warn(self, rows: str) -> None:
        """Warn if there are any; `rows` says of how many of what."""
        if self.count:
            named = listed(map(_brief, self.first), self.count)
            text = f"{self.count:,} of {rows} are skipped: {named}"
            warn(SkippedWarning(text, option="errors", value="skip"))


def _brief(skipped: str) -> str:
    """A place without folders, and the beginning of the reason, so that ten fit a warning."""
    place, _, why = skipped.partition(": ")
    text = f"{place.rpartition('/')[2]}: {why}"
    return text if len(text) <= MOST_CHARS else f"{text[: MOST_CHARS - 3]}..."


@dataclass(frozen=True)
class RenderStatistics:
    """What became of a data set of conversations.

    Attributes:
        conversations: how many were read.
        skipped: how many were left out as invalid, with `errors="skip"`.
        dropped: how many were left out with `on_untrained="drop"`.
        cut: how many were longer than the limit, and are shortened.
        split: how many are continued in a further row, with `truncate="split"`.
        untrained: how many have a mask that is all 0; those that were dropped are included.
        unanswered: how many end with a message of the user.
        unasked: how many begin with a message of the assistant.
        ids: the number of ids, without padding.
        trained: the number of ids that are trained on.
        longest: the number of ids of the longest conversation before it was cut.
        rows: the number of rows; 0 for ragged arrays.
        fill: the share of the positions of rows that are not padding; 1 for ragged arrays.
        first_skipped: the place of each of the first skipped rows, and why it is invalid.
    """

    conversations: int
    skipped: int
    dropped: int
    cut: int
    split: int
    untrained: int
    unanswered: int
    unasked: int
    ids: int
    trained: int
    longest: int
    rows: int
    fill: float
    first_skipped: tuple[str, ...] = ()

    _repr_html_ = brief_html

    def __str__(self) -> str:
        """One line with the numbers that matter."""
        left_out = {
            "skipped": self.skipped, "dropped": self.dropped, "cut": self.cut, "split": self.split,
            "untrained": self.untrained, "unanswered": self.unanswered, "unasked": self.unasked,
        }  # fmt: skip
        share = self.trained / self.ids if self.ids else 0
        parts = [
            f"{self.conversations:,} conversation{'s' * (self.conversations != 1)}",
            *(f"{number:,} {name}" for name, number in left_out.items() if number),
            f"{self.ids:,} ids ({share:.1%} trained on)",
            f"longest {self.longest:,}",
        ]
        if self.rows:
            parts.append(f"{self.rows:,} row{'s' * (self.rows != 1)} ({self.fill:.1%} full)")
        return ", ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """The values by name, as JSON can hold them."""
        return {**asdict(self), "first_skipped": list(self.first_skipped)}


@dataclass(frozen=True, eq=False)
class RenderedBatch:
    """Rendered conversations.

    Ragged arrays have one dimension, and `offsets` contains the start of each conversation. Padded
    or packed arrays have two dimensions: rows and positions in a row.

    Attributes:
        input_ids: int32, the ids.
        loss_mask: uint8, 1 where the model is trained on the id, else 0.
        labels: int64, as losses take them: the id where it is trained on, else `ignore_index`; None
            if `ignore_index` was not passed. Labels are at the position of their id; the loss
            function, or you, must shift them by one.
        offsets: int64, the start of each conversation in ragged arrays, and the end of the last;
            None if there are rows.
        conversations: int32, the index of the conversation at each position of a row, -1 for
            padding; None if there are no rows.
        statistics: how many conversations were read, skipped, cut; and other numbers.
    """

    input_ids: NDArray[np.int32]
    loss_mask: NDArray[np.uint8]
    labels: NDArray[np.int64] | None = None
    offsets: NDArray[np.int64] | None = None
    conversations: NDArray[np.int32] | None = None
    statistics: RenderStatistics | None = None

    def __len__(self) -> int:
        return len(self.input_ids) if self.offsets is None else len(self.offsets) - 1

    def __getitem__(self, index: int) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """The ids and the mask of one conversation, or of one row.

        Raises:
            ArgumentError: if the index is no integer; there are no slices.
            IndexError: if there is no such conversation or row.
        """
        index = place_of("conversation or row", index, len(self))
        if self.offsets is None:
            return self.input_ids[index], self.loss_mask[index]
        here = slice(self.offsets[index], self.offsets[index + 1])
        return self.input_ids[here], self.loss_mask[here]

    def __iter__(self) -> Iterator[tuple[NDArray[np.int32], NDArray[np.uint8]]]:
        return (self[index] for index in range(len(self)))

    @property
    def position_ids(self) -> NDArray[np.int32] | None:
        """The place of each id of a row in its conversation, and 0 for padding; None without rows.

        With them, attention stays within a conversation: the implementations in `transformers` see
        where the next one begins.
        """
        if self.conversations is None:
            return None
        columns = np.arange(self.conversations.shape[1], dtype=np.int32)
        begins = np.diff(self.conversations, axis=1, prepend=-2) != 0
        starts = np.maximum.accumulate(np.where(begins, columns, 0), axis=1)
        return np.where(self.conversations < 0, 0, columns - starts).astype(np.int32)

    @property
    def lengths(self) -> list[list[int]] | None:
        """The numbers of ids of the conversations of each row, in order; None without rows."""
        if self.conversations is None:
            return None
        rows = []
        for row in self.conversations:
            ends = np.flatnonzero(np.diff(row, append=-2)) + 1
            sizes = np.diff(ends, prepend=0)
            rows.append(sizes[row[ends - 1] >= 0].tolist())
        return rows

    def to_arrow(self) -> pa.Table:
        """Convert to a table of list columns, with one row per conversation or per row.

        Rows also have `position_ids`, and `lengths` of the conversations in them.
        """
        from bytepair._internal.extras import pyarrow as pa

        columns = {}
        for name in ("input_ids", "loss_mask", "labels", "conversations", "position_ids"):
            values = getattr(self, name)
            if values is not None and self.offsets is None:
                flat = pa.array(values.ravel())
                columns[name] = pa.FixedSizeListArray.from_arrays(flat, values.shape[1])
            elif values is not None:
                starts = pa.array(self.offsets)
                columns[name] = pa.LargeListArray.from_arrays(starts, pa.array(values))
        if (lengths := self.lengths) is not None:
            columns["lengths"] = pa.array(lengths, pa.list_(pa.int32()))
        return pa.table(columns)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the table of `to_arrow` to a new parquet file, or replace one; return its path."""
        return saved(self.to_arrow(), path, overwrite=overwrite)


def check_can_save() -> None:
    """Raise an `ImportError` if the package that writes parquet is not installed."""
    from bytepair._internal.extras import pyarrow  # noqa: F401


def saved(table: pa.Table, path: str | os.PathLike[str], *, overwrite: bool) -> Path:
    """Write a table to a parquet file, whole or not at all; return its path."""
    from bytepair._internal.extras import pyarrow as pa
    from bytepair._internal.extras import pyarrow_parquet as pq

    stream = pa.BufferOutputStream()
    pq.write_table(table, stream)
    write_whole(Path(path), memoryview(stream.getvalue()), overwrite=overwrite)
    return Path(path)
