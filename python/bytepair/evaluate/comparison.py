"""Two tokenizers and texts in, their first differences out: the text, the byte, and the reason.

Other ids are another input for a model, so the tests of a program that serves one should fail at
any difference: `bytepair compare` has an exit code for this.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bytepair import sample
from bytepair.corpus.bounds import DOCUMENT_BYTES
from bytepair.corpus.column import Column, Errors, strings
from bytepair.corpus.read import read_batches
from bytepair.corpus.skips import SkipLog
from bytepair.corpus.source import Limits, Source, resolve
from bytepair.errors import ArgumentError
from bytepair.evaluate.reasons import (
    TOKENS_SHOWN,
    By,
    Reason,
    SharedToken,
    place_of,
    reason,
    rule_of,
)
from bytepair.evaluate.sides import Side, SpecialOrText, side_of
from bytepair.properties.rules import pattern_text
from bytepair.tokenizer import Tokenizer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bytepair.evaluate.reasons import SomeIds


@dataclass(frozen=True)
class Difference:
    """The first difference of two tokenizers on one text.

    Attributes:
        source: the file of the text; `texts` if it is from memory.
        row: the row of the text in the file, from 0.
        byte: the start of the different tokens, in bytes of the text (after normalization, if any).
        reason: the reason of the difference.
        detail: an explanation.
        tokens: the next few tokens of each tokenizer.
        ids: their ids.
    """

    source: str
    row: int
    byte: int
    reason: Reason
    detail: str
    tokens: tuple[list[bytes], list[bytes]]
    ids: tuple[list[int], list[int]]


@dataclass(frozen=True)
class Comparison:
    """The result of `bytepair.evaluate.compare`; it is true if no text differs.

    Attributes:
        names: the names of the two tokenizers.
        texts: the number of compared texts.
        tokens: the number of their tokens with the first tokenizer.
        differing: the number of texts that differ.
        values: the values of both tokenizers that differ, by name.
        differences: the first differences, at most `limit`.
    """

    names: tuple[str, str]
    texts: int
    tokens: int
    differing: int
    values: dict[str, tuple[str, str]]
    differences: list[Difference] = field(default_factory=list)

    def __bool__(self) -> bool:
        """Whether the tokens of all texts are equal."""
        return self.differing == 0

    @property
    def reasons(self) -> dict[str, int]:
        """The number of differences for each reason, the most frequent first."""
        return dict(Counter(difference.reason for difference in self.differences).most_common())

    def __str__(self) -> str:
        """As a table."""
        lines = _table([("value", *self.names), *((n, *both) for n, both in self.values.items())])
        texts = f"{self.texts:,} text{'s'[: self.texts != 1]}"
        summary = f"equal on {texts}, {self.tokens:,} tokens"
        if self.differing:
            summary = f"{self.differing:,} of {texts} differ ({self.tokens:,} tokens)"
        rows: list[tuple[str, ...]] = [("text", "byte", "why", *self.names, "")]
        for difference in self.differences:
            tokens = (
                " ".join(str(SharedToken(token)) for token in row) for row in difference.tokens
            )
            place = f"{_tail(difference.source)}, row {difference.row}"
            rows.append(
                (place, f"{difference.byte:,}", difference.reason, *tokens, difference.detail)
            )
        lines = [*lines, ""] if self.values else []
        details = [] if self else ["", *_table(rows), *self._hint()]
        return "\n".join([*lines, summary, *details])

    def _hint(self) -> list[str]:
        """A hint, if the tokens may be equal and only their ids differ."""
        way = 'tokens with other ids: a comparison by "tokens" compares the tokens alone'
        return ["", way] if "ids" in self.reasons else []

    def to_json(self) -> str:
        """The result as JSON; tokens are text, with U+FFFD for invalid UTF-8."""
        fields = asdict(self) | {"equal": bool(self), "reasons": self.reasons}
        for one in fields["differences"]:
            one["tokens"] = [[token.decode(errors="replace") for token in r] for r in one["tokens"]]
        return json.dumps(fields, ensure_ascii=False, indent=1) + "\n"


def _tail(name: str, width: int = 30) -> str:
    """The end of a name, which is more informative than its start."""
    return name if len(name) <= width else f"…{name[1 - width :]}"


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    """Align cells in columns; all but the last column are cut at forty characters."""
    cells = [(*(c if len(c) < 41 else f"{c[:39]}…" for c in row[:-1]), row[-1]) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def compare(
    one: Any,
    two: Any,
    source: Source | None = None,
    *,
    files: Source | None = None,
    texts: Iterable[str] | None = None,
    by: By = "ids",
    special: SpecialOrText = "all",
    limit: int = 10,
    names: tuple[str, str] = ("one", "two"),
    patterns: tuple[str | None, str | None] = (None, None),
    max_chars: int | None = None,
    column: str = "text",
    errors: Errors = "strict",
    max_document_bytes: int = DOCUMENT_BYTES,
) -> Comparison:
    """Find where two tokenizers differ, and why.

    Objects encode with their own library: a `tiktoken.Encoding`, and a tokenizer of `tokenizers`
    or `transformers`. Files are loaded and encoded by bytepair.

    The reasons: **ids**, the same token has two ids; **special token**, one of them has it there;
    **Unicode version**, a library splits in another way than its values say under the version here,
    beside a character outside ASCII; **library**, the same without such a character; **normalizer**
    and **pattern**, of which that of the second moves the difference on; **vocabulary**, a token is
    missing; **merge rule**, both have the tokens and merge in another way or order.

    Args:
        one: a tokenizer, in any form that `bytepair.load` accepts.
        two: another one.
        source: the texts, as in `bytepair.train`; without any, the texts of the package, which
            include sixty languages.
        files: as in `bytepair.train`.
        texts: as in `bytepair.train`.
        by: "ids", or "tokens" to compare the bytes of tokens, for tokenizers with other ids.
        special: whether special tokens in the texts are encoded to their ids ("all") or as text
            ("text").
        limit: the maximum number of explained differences; all are counted.
        names: the names of the tokenizers in the result.
        patterns: the split pattern of each, if its file contains none.
        max_chars: as in `bytepair.train`.
        column: as in `bytepair.train`.
        errors: as in `bytepair.train`.
        max_document_bytes: as in `bytepair.train`.

    Raises:
        CorpusError: if the texts cannot be read.
        UnsupportedError: as in `bytepair.load`.

    Example:
        >>> import bytepair
        >>> one = bytepair.train(["hello hello"], 269)
        >>> small = one.replace(vocab_size=268)
        >>> comparison = bytepair.evaluate.compare(one, small, texts=["oh", "oh, hello"])
        >>> bool(comparison), comparison.differing
        (False, 1)
        >>> first = comparison.differences[0]
        >>> first.row, first.byte, first.reason, first.detail
        (1, 4, 'vocabulary', "'hello' is a token of one only")
    """
    if by not in ("ids", "tokens"):
        raise ArgumentError(f'by is {by!r}; it must be "ids" or "tokens"')
    if source is None and files is None and texts is None:
        files = sample.paths()
    first, second = (
        side_of(side, name, special, pattern)
        for side, name, pattern in zip((one, two), names, patterns, strict=True)
    )
    shared = _Shared(first, second) if by == "tokens" else None
    differences: list[Difference] = []
    counts, skips = Counter(texts=0, tokens=0, differing=0), SkipLog()
    batches = read_batches(
        resolve(source, files=files, texts=texts, split="all"), column=column,
        limits=Limits(max_chars), errors=errors, max_document_bytes=max_document_bytes,
        on_skip=skips.add,
    )  # fmt: skip
    for place, documents in _addressed(batches):
        rows = zip(documents, first.encode(documents), second.encode(documents), strict=True)
        for row, (text, a, b) in enumerate(rows, place[1]):
            counts.update(texts=1, tokens=len(a))
            if np.array_equal(*(shared.of(a, b) if shared else (a, b))):
                continue
            counts.update(differing=1)
            if len(differences) < limit:
                why = reason(first, second, text, (a, b), special, by)
                differences.append(_difference(first, second, (place[0], row), (a, b), why, by))
    skips.warn()
    values = _values(first, second)
    return Comparison(
        names, counts["texts"], counts["tokens"], counts["differing"], values, differences
    )


def _addressed(batches: Iterable[Any]) -> Iterator[tuple[tuple[str, int], list[str]]]:
    """Batches of documents, with the file and the row of the first one."""
    read = 0
    for batch in batches:
        if isinstance(batch, Column):
            yield (batch.name, batch.first), strings(batch)
        else:
            yield ("texts", read), batch
            read += len(batch)


class _Shared:
    """Common numbers for the tokens of both tokenizers."""

    def __init__(self, one: Side, two: Side) -> None:
        numbers: dict[SharedToken, int] = {}
        self._maps = [self._map(side.own, numbers) for side in (one, two)]

    @staticmethod
    def _map(tok: Tokenizer, numbers: dict[SharedToken, int]) -> NDArray[np.int64]:
        shared = np.full(tok.vocab_size, -1, np.int64)
        tokens = {SharedToken(token): id for token, id in tok.mergeable_ranks().items()}
        tokens |= {SharedToken(name.encode(), True): id for name, id in tok.special_tokens.items()}
        for piece, id in tokens.items():
            shared[id] = numbers.setdefault(piece, len(numbers))
        return shared

    def of(
        self, one: NDArray[np.int64], two: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The ids of one tokenizer as common numbers."""
        return self._maps[0][one], self._maps[1][two]


def _difference(
    one: Side,
    two: Side,
    place: tuple[str, int],
    ids: tuple[SomeIds, SomeIds],
    why: tuple[Reason, str],
    by: By,
) -> Difference:
    at, rows = place_of(one, two, ids, by)
    some = slice(at, at + TOKENS_SHOWN)
    return Difference(
        *place,
        sum(len(piece.token) for piece in rows[0][:at]),
        *why,
        ([piece.token for piece in rows[0][some]], [piece.token for piece in rows[1][some]]),
        ([int(id) for id in ids[0][some]], [int(id) for id in ids[1][some]]),
    )


def _values(one: Side, two: Side) -> dict[str, tuple[str, str]]:
    """The values that differ between the two, as text."""
    a, b = one.own, two.own
    ranks, others = a.mergeable_ranks(), b.mergeable_ranks()
    moved = sum(1 for token, id in ranks.items() if others.get(token, id) != id)
    names, more = a.special_tokens, b.special_tokens
    only = [f"{len(mine.keys() - other):,}" for mine, other in ((ranks, others), (others, ranks))]
    texts = {
        "ids": (f"{a.vocab_size:,}", f"{b.vocab_size:,}"),
        "tokens of one only": (only[0], only[1]),
        "special tokens": (_named(names, more), _named(more, names)),
        "merge rule": (rule_of(a), rule_of(b)),
        "pattern": (pattern_text(a), pattern_text(b)),
        "library": (one.library or "bytepair", two.library or "bytepair"),
    }
    if moved:
        texts["tokens of another id"] = (f"{moved:,}", "")
    return {name: both for name, both in texts.items() if both[0] != both[1]}


def _named(names: dict[str, int], others: dict[str, int]) -> str:
    """The special tokens that the other tokenizer lacks, or has with another id."""
    own = [f"{name}={id}" for name, id in names.items() if others.get(name) != id]
    return " ".join(own[:3]) + (f" and {len(own) - 3} more" if len(own) > 3 else "")
