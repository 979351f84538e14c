"""Exact token healing: all sequences of ids with which the encoding of a longer text may begin.

If a prompt ends within a token, its own encoding ends with ids that the model would not see in a
longer text. Its covers (see `cover`) are found in three steps.

1. Some ids at the start do not change with any continuation; they are common to all covers. A
   session returns them, and the rest of the text, usually a few words.
2. How the rest splits into pretokens depends on the continuation, but under the published patterns
   only on the classes of its next two characters. So all splits are found by trying these. The last
   pretoken is continued by the unknown text. Its last id starts at one of its bytes and is a token
   that begins with the remaining bytes; no merge crosses the start of this id, so the ids before it
   are those of merging the bytes before it.
3. A candidate is kept only if a text is found whose encoding begins with it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache, partial
from itertools import chain, islice, product
from typing import Final, NamedTuple

from bytepair import _core
from bytepair._internal.checks import check_whole
from bytepair.errors import PatternError
from bytepair.tokenizer.results import SpecialMode

#: Characters of each class that the published patterns distinguish: letters by case, marks, digits,
#: white space, the letters of contractions, and punctuation.
_KINDS: Final = (
    "a !A\n1'中lesrvtdmLESRVTDM/\r\t\u0301\u00a0\u3000\u01c5\u02b0\u017f\u00bd\U00010428\U00010400"
)

#: Continuations, the shortest first.
_CONTINUATIONS: Final = ["", *_KINDS, *map("".join, product(_KINDS, repeat=2))]

#: The number of candidates encoded per batch.
_BATCH_CANDIDATES: Final = 512


class Cover(NamedTuple):
    """The covers of a text: `[*ids, *ending]` for each of `endings`.

    Attributes:
        ids: the common first ids of all covers.
        endings: the following ids of each cover, sorted; each has at least one id, unless the text
            is empty.
        complete: whether there are no other endings.
    """

    ids: list[int]
    endings: list[list[int]]
    complete: bool


class _Candidate(NamedTuple):
    """Ids, and their bytes after the end of the text; the last character may be incomplete."""

    ids: tuple[int, ...]
    more: bytes


def cover(
    tokenizer: _core.Tokenizer, text: str, *, special: SpecialMode = None, limit: int = 10_000
) -> Cover:
    """Find all sequences of ids with which the encoding of a continued text may begin.

    This is exact token healing: if a prompt may end within a token, let the model choose among
    these sequences instead of using the ids of `encode(text)`.

    A list of ids is a *cover* of the text if, for some text `more` (possibly empty),
    `encode(text + more)` begins with it, and its last id contains the end of `text`: the bytes
    of the list begin with those of `text`, but not without the last id. Each cover is returned
    once. Sequences that spell the text but occur in no encoding are not covers. An empty text
    has one cover, without ids.

    Each cover is confirmed by encoding an example of `more`: the remaining bytes of the last
    id, followed by up to two characters of each class that the published patterns distinguish,
    including several letters. A cover would be missed only if it requires a letter after the
    last id, and the vocabulary has a token that joins the two for each of the tried letters.

    Args:
        tokenizer: the tokenizer. The first call for it sorts its tokens; those of the last four
            tokenizers are cached.
        text: the text so far.
        special: as in `encode`, for the text so far. The continuation is ordinary text, even if
            it would complete the name of a special token.
        limit: the largest number of endings. A text that ends with a space has some 100,000, since
            most tokens begin with one.

    Raises:
        PatternError: if the split pattern is not a published one (but kimi) or a variation of it,
            or normalizes texts: then a continuation may change any id.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello"], 269)
        >>> ids, endings, complete = bytepair.engines.cover(tok, "hello he")
        >>> tok.decode(ids), [tok.decode(ending) for ending in endings], complete
        ('hello', [' he', ' hel', ' hello'], True)
    """
    limit = check_whole("limit", limit, least=1)
    is_scanned = _core.split_engine(tokenizer) not in {"table", "regex", "steps", "whole"}
    normalizer = _core.text_rules(tokenizer).normalizer
    if not is_scanned or not all(step.startswith("spaces") for step in normalizer):
        raise PatternError(
            "covers are exact only with a published split pattern (bytepair.PATTERNS but "
            f"kimi, or a variation) without normalization; this pattern is {tokenizer.pattern!r}"
        )
    before, text = _after_special(tokenizer, text, special)
    session = _core.Session(tokenizer)
    session.append(text)
    stable = before + session.ids[: session.stable]
    if not session.rest:
        return Cover(stable, [[]], True)
    endings = _endings(tokenizer, session.rest, limit)
    return Cover(stable, [list(ids) for ids in endings[:limit]], len(endings) <= limit)


def _after_special(
    tokenizer: _core.Tokenizer, text: str, special: SpecialMode
) -> tuple[list[int], str]:
    """The ids up to the last special token in a text, and the text after it."""
    if special is None or special == "text":
        return [], text
    ids, _, spans = tokenizer.encode_offsets(text, special=special)
    names = {id: name for name, id in tokenizer.special_tokens.items()}
    for last in reversed(range(len(ids))):
        if (name := names.get(ids[last])) is not None:
            end = int(spans[last, 1])
            if _core.text_rules(tokenizer).trim_offsets is not None:
                end += len(name) - len(name.rstrip())  # what the span leaves out
            return ids[: last + 1], text[end:]
    return [], text


def _endings(tokenizer: _core.Tokenizer, rest: str, limit: int) -> list[tuple[int, ...]]:
    """The endings, sorted; the search ends when there are more than `limit`."""
    splits = sorted(_splits(tokenizer, rest))
    candidates = chain.from_iterable(_candidates(tokenizer, *split) for split in splits)
    endings: set[tuple[int, ...]] = set()
    while batch := list(islice(candidates, _BATCH_CANDIDATES)):
        unknown = [one for one in dict.fromkeys(batch) if one.ids not in endings]
        endings.update(_witnessed(tokenizer, rest, unknown))
        if len(endings) > limit:
            break
    return sorted(endings)


def _splits(tokenizer: _core.Tokenizer, rest: str) -> set[tuple[tuple[int, ...], bytes]]:
    """All ways to split a text, depending on the continuation.

    Each is the ids of all pretokens but the last, and the bytes of the last, which may continue.
    """
    splits = set()
    for more in _CONTINUATIONS:
        start, pretokens = 0, []
        for pretoken in _core.pretokenize(tokenizer, rest + more):
            if start + len(pretoken) >= len(rest):
                break
            start += len(pretoken)
            pretokens.append(pretoken)
        splits.add((tuple(pretokens), rest[start:]))
    encode = partial(_core.encode_pretoken, tokenizer)
    return {
        (tuple(i for pretoken in before for i in encode(pretoken.encode())), last.encode())
        for before, last in splits
    }


def _candidates(
    tokenizer: _core.Tokenizer, before: tuple[int, ...], last: bytes
) -> Iterator[_Candidate]:
    """The possible covers of a pretoken that begins with `last`, considering only merges."""
    vocabulary = _index(tokenizer)
    for start in range(max(0, len(last) - vocabulary.longest), len(last)):
        for token, id in vocabulary.starting_with(last[start:]):
            more = token[len(last) - start :]
            if start == 0 and vocabulary.whole_wins:
                yield _Candidate((*before, id), more)
                if vocabulary.merging is tokenizer:
                    continue
            merged = _core.encode_pretoken(vocabulary.merging, last[:start] + token)
            if merged and merged[-1] == id:  # uncovered bytes may be left out
                yield _Candidate((*before, *merged), more)


def _witnessed(
    tokenizer: _core.Tokenizer, rest: str, candidates: list[_Candidate]
) -> Iterator[tuple[int, ...]]:
    """The candidates with which the encoding of some text begins."""
    whole: list[tuple[tuple[int, ...], str]] = []
    for ids, more in candidates:
        begun = b""  # the bytes of an incomplete last character
        try:
            text = rest + more.decode()
        except UnicodeDecodeError as error:
            if error.reason != "unexpected end of data":
                continue  # no text has these bytes
            text, begun = rest + more[: error.start].decode(), more[error.start :]
        if not begun:
            whole.append((ids, text))
        elif _any_begins(tokenizer, ids, (text + end for end in _ends(begun))):
            yield ids
    for continuation in _CONTINUATIONS:
        if not whole:
            break
        encoded = tokenizer.encode_batch([text + continuation for _, text in whole])
        left = []
        for (ids, text), result in zip(whole, encoded, strict=True):
            if tuple(result[: len(ids)]) == ids:
                yield ids
            else:
                left.append((ids, text))
        whole = left


def _any_begins(tokenizer: _core.Tokenizer, ids: tuple[int, ...], texts: Iterator[str]) -> bool:
    """Whether the encoding of a text begins with these ids."""
    while batch := list(islice(texts, 64)):
        if any(tuple(one[: len(ids)]) == ids for one in tokenizer.encode_batch(batch)):
            return True
    return False


def _ends(begun: bytes) -> Iterator[str]:
    """Continuations of a text that ends with these first bytes of a character.

    Usually only the class of the next character matters; for white space and upper-case letters,
    the character after it matters too.
    """
    yield from _characters(begun)
    for character in _characters(begun):
        if character.isspace():
            yield from (character + more for more in _CONTINUATIONS)
        elif character.isupper() or character.istitle():
            yield from (character + more for more in _KINDS)


def _characters(begun: bytes) -> Iterator[str]:
    """All characters whose UTF-8 begins with these bytes."""
    missing = {0xC: 1, 0xD: 1, 0xE: 2}.get(begun[0] >> 4, 3) - len(begun) + 1
    for rest in product(range(0x80, 0xC0), repeat=missing):
        try:
            yield (begun + bytes(rest)).decode()
        except UnicodeDecodeError:
            continue


class _Index(NamedTuple):
    """The ordinary tokens, and a tokenizer that always merges."""

    ids: dict[bytes, int]
    tokens: list[bytes]  # sorted
    merging: _core.Tokenizer  # encodes a pretoken by merging even if it is a token
    whole_wins: bool  # whether a pretoken that is a token becomes that token without merging
    longest: int  # in bytes

    def starting_with(self, prefix: bytes) -> Iterator[tuple[bytes, int]]:
        """The tokens with this prefix, and their ids."""
        for place in range(bisect_left(self.tokens, prefix), len(self.tokens)):
            token = self.tokens[place]
            if not token.startswith(prefix):
                break
            yield token, self.ids[token]


@lru_cache(maxsize=4)
def _index(tokenizer: _core.Tokenizer) -> _Index:
    ids, merging = tokenizer.mergeable_ranks(), tokenizer
    by_ranks, ignores = tokenizer.merge_rule == "ranks", _core.ignores_merges(tokenizer)
    if not by_ranks and ignores:
        model = _core.Model.from_parts(ids, tokenizer.pattern, {}, merges=tokenizer.merges())
        merging = _core.Tokenizer(model)
    elif by_ranks and (unmade := set(_core.whole_only_ids(tokenizer))):
        tokens = {token: id for token, id in ids.items() if id not in unmade}
        merging = _core.Tokenizer(_core.Model.from_parts(tokens, tokenizer.pattern, {}))
    longest = max(map(len, ids), default=0)
    return _Index(ids, sorted(ids), merging, by_ranks or ignores, longest)
