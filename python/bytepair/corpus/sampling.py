"""A seeded sample of a source that is spread over all of its files, for evaluations and plans.

The beginning of a corpus is no sample of it: its first files may all be of one kind. Every piece of
text that is read has the same chance to be in the sample. Of a large corpus not all is read, but
the same share of the row groups or blocks of each file.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from bytepair.corpus.column import Skip, SkipLog, TextBatch, strings
from bytepair.corpus.documents import DocumentSelection, read
from bytepair.corpus.files import LOG, Files, Input
from bytepair.corpus.kinds import kind_of
from bytepair.corpus.read import BATCH_BYTES, read_batches
from bytepair.corpus.source import Reading, Source, resolve

#: About how many bytes of files are read for a sample; of a source in memory, how many characters.
READ_BYTES: Final = 1 << 28
#: Longer documents are sampled in pieces, so that few of them do not fill a sample: of this size,
#: or of this share of a small sample.
PIECE_CHARS: Final = 1 << 16
PIECES: Final = 100


@dataclass(frozen=True)
class Sample(Sequence[str]):
    """The documents of a sample, in the order of the source.

    Attributes:
        texts: the documents; of a long one perhaps only pieces.
        chars: the number of characters of the sample.
        chars_read: the number of characters from which it was drawn.
        files: the number of files from which it was drawn; 0 for a source in memory.
        is_whole: whether it is all text of the source.
    """

    texts: list[str] = field(repr=False)
    chars: int
    chars_read: int
    files: int
    is_whole: bool

    def __getitem__(self, index: Any) -> Any:
        return self.texts[index]

    def __len__(self) -> int:
        return len(self.texts)

    def __eq__(self, other: object) -> bool:
        return self.texts == (other.texts if isinstance(other, Sample) else other)

    __hash__ = None  # type: ignore[assignment] # as for a list

    def __str__(self) -> str:
        """The size of the sample in words."""
        if self.is_whole:
            return f"all {self.chars:,} characters"
        place = (
            f"spread over {self.files:,} file{'s'[: self.files != 1]}" if self.files else "drawn"
        )
        return f"a sample of {self.chars:,} characters, {place} ({self.chars_read:,} read)"


def sample(source: Source, reading: Reading = Reading(), *, seed: int = 0) -> Sample:
    """Draw documents from all files of a source, whatever their split.

    The sample has at most `max_chars` characters of `reading`, if it says so. The same seed draws
    the same sample.

    Example:
        >>> one = sample(["one ", "two ", "three "] * 1000, Reading(max_chars=100))
        >>> 95 < one.chars <= 100, one.is_whole
        (True, False)
    """
    skips, most = SkipLog(), reading.max_chars
    resolved = resolve(source, split="all")
    draw, step = _Draw(most, seed), 1
    reading = replace(reading, max_chars=most and max(READ_BYTES, most))
    if isinstance(resolved, Files) and most is not None:
        step = max(1, resolved.size // READ_BYTES)
        for file in resolved.files:
            for batch in _blocks(file, reading, step, draw.random, skips):
                draw.add(batch)
    else:
        for batch in read_batches(resolved, reading, on_skip=skips.add):
            draw.add(batch)
    skips.warn()
    number = len(resolved.files) if isinstance(resolved, Files) else 0
    drawn = draw.texts()
    chars = sum(map(len, drawn))
    result = Sample(drawn, chars, draw.chars_read, number, step == 1 and chars == draw.chars_read)
    if not result.is_whole:
        LOG.info("measuring %s", result)
    return result


def _blocks(
    file: Input, reading: Reading, step: int, rng: random.Random, skips: SkipLog
) -> Iterator[TextBatch]:
    """The documents of every `step`-th block of a file, or of its first if it has fewer."""
    for start in dict.fromkeys((rng.randrange(step), 0)):
        is_empty = True
        if kind_of(file.path) == "text":
            start, step = 0, 1  # such a file is one document
        selection = DocumentSelection(start=start, step=step)
        for piece in read(file, reading, selection, batch_bytes=BATCH_BYTES):
            is_empty = False
            if isinstance(piece, Skip):
                skips.add(piece)
            else:
                yield piece
        if not is_empty:
            return


class _Draw:
    """The pieces with the smallest random keys, up to a number of characters."""

    def __init__(self, max_chars: int | None, seed: int) -> None:
        self.random, self.chars_read = random.Random(seed), 0
        self._max_chars, self._chars, self._documents = max_chars, 0, 0
        most = PIECE_CHARS if max_chars is None else max_chars // PIECES
        self._piece_chars = min(PIECE_CHARS, max(most, 1000))
        self._pieces: list[tuple[float, int, int, str]] = []  # a heap, the largest key first

    def add(self, batch: TextBatch) -> None:
        for text in strings(batch):
            for start in range(0, max(len(text), 1), self._piece_chars):  # also of an empty one
                self._add(start, text[start : start + self._piece_chars])
            self.chars_read += len(text)
            self._documents += 1

    def _add(self, start: int, piece: str) -> None:
        if self._max_chars is not None:
            piece = piece[: self._max_chars]
        heapq.heappush(self._pieces, (-self.random.random(), self._documents, start, piece))
        self._chars += len(piece)
        while self._max_chars is not None and self._chars > self._max_chars:
            self._chars -= len(heapq.heappop(self._pieces)[3])

    def texts(self) -> list[str]:
        """The documents in order; neighbouring pieces are put together again."""
        texts: list[str] = []
        ends = (-1, 0)  # the document and the place at which the last text ends
        for _, document, start, piece in sorted(self._pieces, key=lambda one: one[1:3]):
            if (document, start) == ends and start:
                texts[-1] += piece
            else:
                texts.append(piece)
            ends = (document, start + len(piece))
        return texts
