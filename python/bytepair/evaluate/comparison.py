"""Compares the ids of two tokenizers on texts, up to the first difference.

Different ids are a different input for a model, so the tests of a program that serves one should
fail at any difference: `bytepair compare` has an exit code for this. A `tiktoken.Encoding` and a
tokenizer of `tokenizers` or `transformers` encode with their own code, so the comparison covers
their actual ids.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bytepair import sample
from bytepair._internal.checks import check_choice
from bytepair._internal.drawing import readable
from bytepair.corpus.column import Column, SkipLog, strings
from bytepair.corpus.read import read_batches
from bytepair.corpus.source import Reading, Source, resolve
from bytepair.formats import tiktoken
from bytepair.tokenizer import Tokenizer, load

#: The number of tokens of each side that are shown from the first difference on.
TOKENS_SHOWN: Final = 6

#: One of two tokenizers: its values, and how its own library encodes texts.
Side: TypeAlias = tuple[Tokenizer, Callable[[list[str]], list[NDArray[np.int64]]]]


def _side(source: Any) -> Side:
    own = source if isinstance(source, Tokenizer) else load(source)
    if isinstance(source, Tokenizer | str | os.PathLike):

        def encode(texts: list[str]) -> Iterable[Any]:
            ids, offsets = own.encode_batch_to_numpy(texts, special="all")
            return np.split(ids, offsets[1:-1]) if texts else []

    elif tiktoken.is_encoding(source):
        encode = partial(source.encode_batch, allowed_special="all")
    else:
        inner = getattr(source, "backend_tokenizer", source)

        def encode(texts: list[str]) -> Iterable[Any]:
            return (one.ids for one in inner.encode_batch(texts, add_special_tokens=False))

    return own, lambda texts: [np.asarray(ids, np.int64) for ids in encode(texts)]


@dataclass(frozen=True)
class Difference:
    """The first difference of two tokenizers.

    Attributes:
        source: the file of the text; `texts` if it is from memory.
        row: the row of the text in the file, from 0.
        byte: the start of the different tokens, in bytes of the text (after normalization, if any).
        tokens: the next few tokens of each tokenizer.
        ids: their ids.
    """

    source: str
    row: int
    byte: int
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
        first: the first difference; None if there is none.
    """

    names: tuple[str, str]
    texts: int
    tokens: int
    differing: int
    first: Difference | None = None

    def __bool__(self) -> bool:
        return self.differing == 0

    def __str__(self) -> str:
        texts = f"{self.texts:,} text{'s'[: self.texts != 1]}"
        if self.first is None:
            return f"equal on {texts}, {self.tokens:,} tokens"
        one = self.first
        lines = [
            f"{self.differing:,} of {texts} differ{'s'[: self.differing == 1]}, "
            f"{self.tokens:,} tokens",
            f"the first difference: row {one.row}, byte {one.byte:,} of {one.source}",
        ]
        for name, tokens, ids in zip(self.names, one.tokens, one.ids, strict=True):
            lines.append(f"  {name}: {' '.join(repr(readable(token)) for token in tokens)}")
            lines.append(f"    ids {' '.join(map(str, ids))}")
        if one.tokens[0][:1] == one.tokens[1][:1]:
            lines.append("the token is the same, its ids differ: --by tokens ignores ids")
        return "\n".join(lines)

    def to_json(self) -> str:
        """The result as JSON; tokens are text, with U+FFFD for invalid UTF-8."""
        fields = asdict(self) | {"equal": bool(self)}
        if self.first is not None:
            tokens = [[t.decode(errors="replace") for t in row] for row in self.first.tokens]
            fields["first"]["tokens"] = tokens
        return json.dumps(fields, ensure_ascii=False, indent=1) + "\n"


def compare(
    one: Any,
    two: Any,
    source: Source | None = None,
    *,
    by: Literal["ids", "tokens"] = "ids",
    names: tuple[str, str] = ("one", "two"),
    reading: Reading = Reading(),
) -> Comparison:
    """Compare the ids of two tokenizers, and find the first difference.

    Special tokens in the texts become their ids. Objects encode with their own library: a
    `tiktoken.Encoding`, and a tokenizer of `tokenizers` or `transformers`. Files are loaded and
    encoded by bytepair.

    Args:
        one: a tokenizer, in any form that `bytepair.load` accepts.
        two: another one.
        source: the texts, as in `bytepair.train`; without any, the texts of the package, which
            include sixty languages.
        by: "ids", or "tokens" to compare the bytes of tokens, for tokenizers with other ids.
        names: the names of the tokenizers in the result.
        reading: which text of the source is read; of data sets with splits, all of it.

    Raises:
        CorpusError: if the texts cannot be read.
        UnsupportedError: as in `bytepair.load`.

    Example:
        >>> import bytepair
        >>> one = bytepair.train(["hello hello"], 269)
        >>> small = one.replace(vocab_size=268)
        >>> comparison = bytepair.evaluate.compare(one, small, ["oh", "oh, hello"])
        >>> bool(comparison), comparison.differing
        (False, 1)
        >>> first = comparison.first
        >>> first.row, first.byte, first.tokens
        (1, 4, ([b'hello'], [b'hel', b'lo']))
    """
    check_choice("by", by, ("ids", "tokens"))
    source = sample.paths() if source is None else source
    sides = [_side(one), _side(two)]
    common: dict[tuple[bytes, bool], int] = {}
    numbers_of = [_numbers(own, common) if by == "tokens" else None for own, _ in sides]
    texts_read = tokens = differing = 0
    difference: Difference | None = None
    skips = SkipLog()
    batches = read_batches(resolve(source, split="all"), reading, on_skip=skips.add)
    for batch in batches:
        documents = strings(batch)
        name, start = "texts", texts_read
        if isinstance(batch, Column):
            name, start = batch.name, batch.first
        rows = zip(*(encode(documents) for _, encode in sides), strict=True)
        for row, ids in enumerate(rows, start):
            texts_read += 1
            tokens += len(ids[0])
            compared = [
                some if numbers is None else numbers[some]
                for some, numbers in zip(ids, numbers_of, strict=True)
            ]
            if np.array_equal(*compared):
                continue
            differing += 1
            if difference is None:
                difference = _difference(sides, (name, row), ids, compared)
    skips.warn()
    return Comparison(names, texts_read, tokens, differing, difference)


def _numbers(tok: Tokenizer, common: dict[tuple[bytes, bool], int]) -> NDArray[np.int64]:
    """For each id the number that its token has in both tokenizers."""
    numbers = np.full(tok.vocab_size, -1, np.int64)
    tokens = {(token, False): id for token, id in tok.mergeable_ranks().items()}
    tokens |= {(name.encode(), True): id for name, id in tok.special_tokens.items()}
    for token, id in tokens.items():
        numbers[id] = common.setdefault(token, len(common))
    return numbers


def _difference(
    sides: list[Side],
    place: tuple[str, int],
    ids: Sequence[NDArray[np.int64]],
    compared: Sequence[NDArray[np.int64]],
) -> Difference:
    """Where two rows of ids first differ; where the shorter ends, if it begins the other."""
    length = min(map(len, compared))
    unequal = np.flatnonzero(compared[0][:length] != compared[1][:length])
    at = int(unequal[0]) if unequal.size else length
    one, two = ([int(id) for id in some[at : at + TOKENS_SHOWN]] for some in ids)
    tokens = [
        [own.token_bytes(id) for id in row] for (own, _), row in zip(sides, (one, two), strict=True)
    ]
    byte = sum(len(sides[0][0].token_bytes(int(id))) for id in ids[0][:at])
    return Difference(*place, byte, (tokens[0], tokens[1]), (one, two))
