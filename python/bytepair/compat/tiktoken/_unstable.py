"""What may come after a text that ends in the middle of a word, as tiktoken works it out.

The ids of a text are stable up to its last pretoken: more text could change those after. The rest,
in bytes, may go on as one token, as a token that begins inside it, or, if it ends in white space,
as two halves that later text would split.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import takewhile

from bytepair import _core

_SPACE = frozenset(b" \n\t")


def unstable_length(tokenizer: _core.Tokenizer, ids: Sequence[int], length: int) -> int:
    """How many ids at the end are unstable, given how many the last pretoken has.

    White space before white space may be split in another way when more text comes.
    """
    special = frozenset(tokenizer.special_tokens.values())

    def is_space(id: int) -> bool:
        return id not in special and _SPACE.issuperset(tokenizer.token_bytes(id))

    if length and is_space(ids[len(ids) - length]):
        while length < len(ids) and is_space(ids[len(ids) - length - 1]):
            length += 1
    return length


def completions(
    tokenizer: _core.Tokenizer, tokens: Sequence[bytes], rest: bytes
) -> list[list[int]]:
    """Sequences of ids whose bytes begin with `rest`; `tokens` are the ordinary ones, sorted."""
    if not rest:
        return []
    sequences: set[tuple[int, ...]] = {
        (tokenizer.token_id(token),) for token in _starting_with(tokens, rest)
    }
    for cut in range(1, len(rest)):
        for token in _starting_with(tokens, rest[cut:]):
            ids = _encode(tokenizer, rest[:cut] + token)
            sequences.add(_covering(tokenizer, ids, len(rest)))
    if halves := _halves(rest):
        sequences.add(tuple(id for half in halves for id in _core.encode_pretoken(tokenizer, half)))
    return [list(ids) for ids in sorted(sequences)]


def _starting_with(tokens: Sequence[bytes], prefix: bytes) -> Iterator[bytes]:
    following = (tokens[place] for place in range(bisect_left(tokens, prefix), len(tokens)))
    return takewhile(lambda token: token.startswith(prefix), following)


def _encode(tokenizer: _core.Tokenizer, possible: bytes) -> list[int]:
    """Encode with splitting where the bytes are text, else without."""
    try:
        return tokenizer.encode(possible.decode())
    except UnicodeDecodeError:
        return _core.encode_pretoken(tokenizer, possible)


def _covering(tokenizer: _core.Tokenizer, ids: Sequence[int], length: int) -> tuple[int, ...]:
    """The first ids whose bytes are at least `length`."""
    covered = 0
    for count, id in enumerate(ids, 1):
        covered += len(tokenizer.token_bytes(id))
        if covered >= length:
            return tuple(ids[:count])
    return tuple(ids)


def _halves(rest: bytes) -> tuple[bytes, bytes] | None:
    """The bytes before a last character of white space, and that character."""
    last = rest.decode(errors="surrogateescape")[-1]
    size = len(last.encode(errors="surrogateescape"))
    # Python counts four control characters as white space that Unicode does not.
    if len(rest) > size and last.isspace() and last not in "\x1c\x1d\x1e\x1f":
        return rest[:-size], rest[-size:]
    return None
