"""The whole algorithm in plain Python: the definition that the fast library is tested against.

Byte-level BPE has three parts. A text is *split* into pretokens; *training* counts the pretokens of
a corpus and repeatedly merges the most frequent pair of neighbours; *encoding* merges the bytes of
new text in the same order. This code is written to be obvious, not fast; where the fast library
produces a different result, the fast library is wrong.

    >>> counts = count(["low low lower", "lowest"], r" ?[a-z]+")
    >>> counts
    {b'low': 1, b' low': 1, b' lower': 1, b'lowest': 1}
    >>> tokens = vocabulary(train(counts, 3))
    >>> tokens[256:]
    [b'lo', b'low', b' low']
    >>> ids = encode(b"lowly", {token: i for i, token in enumerate(tokens)})
    >>> [tokens[i] for i in ids]
    [b'low', b'l', b'y']
    >>> decode(ids, tokens)
    b'lowly'

Special tokens are left out: they are cut out of a text before it is split. Plain versions of
features that few tokenizers need (parity, superwords, byte fallback, pruning, rows) are
in `tests/reference_twins.py`.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from bytepair._core import PATTERNS

__all__ = [
    "count", "count_pairs", "decode", "encode", "encode_merges", "learn", "replace", "split",
    "steps", "tie_break", "train", "vocabulary",
]  # fmt: skip

Pair = tuple[int, int]


def split(text: str, pattern: str | Sequence[str]) -> list[bytes]:
    """Split a text into pretokens: the matches of the pattern, and the text between them.

    A match of no characters is ignored, and the search goes on at the next character: if the
    pattern prefers such a match at some place, no other match begins there.

    The pattern is a name in `bytepair.PATTERNS`, a regular expression, or a list of several, of
    which each splits the pieces of the previous one. Needs the third-party
    package `regex`, whose character classes follow its own version of Unicode.
    """
    from bytepair._internal.extras import regex

    first, *later = [pattern] if isinstance(pattern, str) else pattern
    source = PATTERNS.get(first, first)
    # Only this version has `&&` in classes, and only the other one folds case as the core does.
    expression = regex.compile(source, regex.V1 if "&&" in source else regex.V0)
    pieces, end, at = [], 0, 0
    while at <= len(text) and (match := expression.search(text, at)):
        at = max(match.end(), match.start() + 1)
        if match.group():
            pieces += [text[end : match.start()], match.group()]
            end = match.end()
    pieces = [piece for piece in (*pieces, text[end:]) if piece]
    if later:
        return [pretoken for piece in pieces for pretoken in split(piece, later)]
    return [piece.encode() for piece in pieces]


def count(texts: Iterable[str], pattern: str | Sequence[str]) -> dict[bytes, int]:
    """Count the pretokens of many texts; the dict is in order of first occurrence."""
    return dict(Counter(pretoken for text in texts for pretoken in split(text, pattern)))


def count_pairs(words: Iterable[tuple[Sequence[int], int]]) -> dict[Pair, int]:
    """Count the pairs of neighbours, overlapping ones included: `aaa` holds `(a, a)` twice.

    The dict is in order of first occurrence.
    """
    pairs: Counter[Pair] = Counter()
    for ids, times in words:
        for pair in itertools.pairwise(ids):
            pairs[pair] += times
    return dict(pairs)


def replace(ids: Sequence[int], pair: Pair, new: int) -> list[int]:
    """Replace each occurrence of `pair` by `new`, from left to right, without overlap.

    >>> replace([7, 7, 7], (7, 7), 9)
    [9, 7]
    """
    out: list[int] = []
    for i in ids:
        if out and (out[-1], i) == pair:  # out[-1] is never `new`, which is not in `pair`
            out[-1] = new
        else:
            out.append(i)
    return out


def tie_break(ties: str, tokens: Sequence[bytes]) -> Callable[[Pair], Any]:
    """Return the sort key for pairs with equal counts: the pair with the smallest key is merged.

    `rustbpe`: the smallest pair of ids. `hf`: the same, with the 256 bytes in the order of GPT-2's
    characters. `first-seen`: the pair that occurs first in the corpus after the merges so far.
    `bytes-max`: the greatest pair of byte strings. `characters-max`: the same, with the 256 bytes
    in the order of GPT-2's characters.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}

    def place(i: int) -> tuple[bool, bool, int]:
        return (i >= 256, i < 256 and i not in printable, i)

    def negated(token: Iterable[int]) -> list[int]:
        return [*(-byte for byte in token), 1]  # the 1 makes a prefix the lesser byte string

    def characters(token: bytes) -> list[int]:
        return [byte + 256 * (byte not in printable) for byte in token]

    keys: dict[str, Callable[[Pair], Any]] = {
        "rustbpe": lambda pair: pair,
        "hf": lambda pair: [place(i) for i in pair],
        "first-seen": lambda _: 0,  # `min` keeps the first of equals, and the dict is ordered
        "bytes-max": lambda pair: [negated(tokens[i]) for i in pair],
        "characters-max": lambda pair: [negated(characters(tokens[i])) for i in pair],
    }
    return keys[ties]


def train(
    counts: Mapping[bytes, int], merges: int, ties: str = "rustbpe", min_count: int = 1
) -> list[Pair]:
    """Learn up to `merges` merges from counted pretokens.

    Ids below 256 are bytes; merge `i` makes id `256 + i`. Stops early when no pair occurs
    `min_count` times.
    """
    words = [(list(pretoken), times) for pretoken, times in counts.items()]
    return learn(words, [], merges, ties, min_count, lambda _: True)


def learn(
    words: list[tuple[list[int], int]],
    first: list[Pair],
    merges: int,
    ties: str,
    min_count: int,
    allowed: Callable[[bytes], bool],
) -> list[Pair]:
    """Continue after the merges `first`, up to `merges` in all; tokens must be `allowed`."""
    learnt, tokens = list(first), vocabulary(first)
    while len(learnt) < merges:
        pairs = {
            pair: n
            for pair, n in count_pairs(words).items()
            if n >= min_count and allowed(tokens[pair[0]] + tokens[pair[1]])
        }
        if not pairs:
            break
        key = tie_break(ties, tokens)
        best = min(pairs, key=lambda pair: (-pairs[pair], key(pair)))
        words = [(replace(ids, best, len(tokens)), times) for ids, times in words]
        tokens.append(tokens[best[0]] + tokens[best[1]])
        learnt.append(best)
    return learnt


def vocabulary(merges: Iterable[Pair]) -> list[bytes]:
    """The bytes of each id: the 256 bytes, then the joined bytes of each merge."""
    tokens = [bytes([byte]) for byte in range(256)]
    for left, right in merges:
        tokens.append(tokens[left] + tokens[right])
    return tokens


def steps(parts: list[bytes], rank: Callable[[bytes, bytes], int | None]) -> Iterator[list[bytes]]:
    """Merge the parts of one pretoken, pair by pair: the lowest rank first, of equals the leftmost.

    `rank` returns the rank of two neighbours, or None if they do not merge. Yields the parts at the
    start, and after each merge.

    >>> list(steps([b"l", b"o", b"w"], lambda left, right: 7 if left + right == b"ow" else None))
    [[b'l', b'o', b'w'], [b'l', b'ow']]
    """
    while True:
        yield parts
        ranks = [rank(left, right) for left, right in itertools.pairwise(parts)]
        candidates = [(n, i) for i, n in enumerate(ranks) if n is not None]
        if not candidates:
            return
        _, i = min(candidates)
        parts = [*parts[:i], parts[i] + parts[i + 1], *parts[i + 2 :]]


def encode(pretoken: bytes, ranks: Mapping[bytes, int]) -> list[int]:
    """Encode one pretoken by the rule of ranks, which is tiktoken's.

    A pretoken that is a token is encoded as that token. Otherwise any two neighbours whose joined
    bytes are a token merge.
    """
    if pretoken in ranks:
        return [ranks[pretoken]]
    *_, parts = steps(
        [bytes([byte]) for byte in pretoken], lambda left, right: ranks.get(left + right)
    )
    return [ranks[part] for part in parts]


def encode_merges(
    pretoken: bytes,
    ids: Mapping[bytes, int],
    merges: Sequence[tuple[bytes, bytes]],
    ignore_merges: bool = False,
) -> list[int]:
    """Encode one pretoken by the rule of merges, which is that of Hugging Face tokenizers.

    Only listed pairs merge, in the order of the list. With `ignore_merges` a pretoken that is a
    token is encoded as that token.
    """
    if ignore_merges and pretoken in ids:
        return [ids[pretoken]]
    # If a pair is listed twice, its first place counts.
    order = {pair: rank for rank, pair in reversed(list(enumerate(merges)))}
    *_, parts = steps(
        [bytes([byte]) for byte in pretoken], lambda left, right: order.get((left, right))
    )
    return [ids[part] for part in parts]


def decode(ids: Iterable[int], tokens: Sequence[bytes] | Mapping[int, bytes]) -> bytes:
    """Concatenate the bytes of the ids; the result need not be UTF-8."""
    return b"".join(tokens[i] for i in ids)
