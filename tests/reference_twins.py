"""What few tokenizers do, in plain Python: the twins that the fast library is tested against.

`bytepair.reference` has the algorithm itself. Here are parity and superwords, byte fallback,
the spaces and the user-defined tokens of SentencePiece, pruning, and the packing of rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from bytepair.reference import Pair, count_pairs, learn, replace, steps, tie_break, train


def characters(pretoken: bytes, tokens: Container[bytes]) -> list[bytes]:
    r"""Divide a pretoken into the parts from which merging starts under the rule of characters.

    A character that is a token is one part; any other character is one part for each byte.

    >>> characters("né".encode(), {b"n", "é".encode()}), characters("né".encode(), {b"n"})
    ([b'n', b'\xc3\xa9'], [b'n', b'\xc3', b'\xa9'])
    """
    parts: list[bytes] = []
    for character in pretoken.decode(errors="surrogateescape"):
        part = character.encode(errors="surrogateescape")
        parts += [part] if part in tokens else [bytes([byte]) for byte in part]
    return parts


def encode_characters(
    pretoken: bytes, ids: Mapping[bytes, int], merges: Sequence[tuple[bytes, bytes]]
) -> list[int]:
    """Encode one pretoken by the rule of characters, which is that of models with byte fallback.

    Only listed pairs merge, in the order of the list. `ids` has a token for each byte.
    """
    order = {pair: rank for rank, pair in reversed(list(enumerate(merges)))}
    *_, parts = steps(characters(pretoken, ids), lambda left, right: order.get((left, right)))
    return [ids[part] for part in parts]


def train_superwords(
    counts: Mapping[bytes, int],
    superword_counts: Mapping[bytes, int],
    first: int,
    merges: int,
    max_words: int | None = 4,
    never: Sequence[str] = (": ",),
    ties: str = "rustbpe",
    min_count: int = 1,
) -> list[Pair]:
    """Learn merges in two stages, the second across spaces (SuperBPE, arXiv 2503.13423).

    The first `first` merges are learnt from `counts`, whose pattern splits at spaces. They are then
    applied to the pretokens of `superword_counts`: the same text under a pattern that does not
    split at spaces. The other merges are learnt from these. A pair is skipped if its token has more
    than `max_words` space-separated parts or contains a string of `never`. `merges` is the number
    of merges of both stages.

    >>> from bytepair.reference import vocabulary
    >>> counts, lines = {b"so": 2, b" it": 2}, {b"so it": 2}
    >>> vocabulary(train_superwords(counts, lines, 3, 4))[256:]
    [b' i', b'so', b' it', b'so it']
    >>> len(train_superwords(counts, lines, 3, 4, max_words=1))
    3
    """
    pairs = train(counts, first, ties, min_count)
    words = [(list(pretoken), times) for pretoken, times in superword_counts.items()]
    for new, pair in enumerate(pairs, 256):
        words = [(replace(ids, pair, new), times) for ids, times in words]

    def allowed(token: bytes) -> bool:
        parts = [part for part in token.split(b" ") if part]
        is_short = max_words is None or len(parts) <= max_words
        return is_short and not any(text.encode() in token for text in never)

    return learn(words, pairs, merges, ties, min_count, allowed)


def train_parity(
    groups: Sequence[Mapping[bytes, int]],
    merges: int,
    development: Sequence[Mapping[bytes, int]] = (),
    ratios: Sequence[float] = (),
    window: tuple[int, float] | None = None,
    global_merges: int = 0,
    ties: str = "rustbpe",
    min_count: int = 1,
) -> list[Pair]:
    """Learn each merge from the group that compresses worst (arXiv 2508.04796).

    The group that compresses worst has the most tokens in its development text, or in its own text
    if there is none. With `ratios`, it is the group with the fewest bytes per token, divided by its
    ratio. Of equal groups the first is chosen. With a window of `(size, alpha)`, groups with more
    than `alpha / len(groups)` of the last `size` choices are skipped. A group without a pair to
    merge is excluded from then on. The first `global_merges` are learnt from all groups together.

    >>> train_parity([{b"aabb": 9}, {b"cd": 1}], 2, development=[{b"ab": 1}, {b"cd": 2}])
    [(99, 100), (97, 97)]
    """
    texts = [[(list(p), n) for p, n in counts.items()] for counts in (*groups, *development)]
    open_groups, recent, learnt = list(range(len(groups))), list[int](), list[Pair]()
    sizes = [sum(len(pretoken) * n for pretoken, n in counts.items()) for counts in groups]
    tokens = [bytes([byte]) for byte in range(256)]

    def need(group: int) -> float:
        """Return a number that is smaller the worse the group compresses."""
        length = [sum(len(ids) * n for ids, n in words) for words in texts]
        if ratios:
            return float(sizes[group]) / float(length[group]) / ratios[group]
        return -length[group + len(groups) * bool(development)]

    def chosen() -> int:
        in_order = sorted(open_groups, key=need)
        if window is None:
            return in_order[0]
        size, alpha = window
        within = (g for g in in_order if recent.count(g) / size <= alpha / len(groups))
        recent.append(next(within, in_order[-1]))
        del recent[:-size]
        return recent[-1]

    while len(learnt) < merges and open_groups:
        is_global = len(learnt) < global_merges
        group = None if is_global else chosen()
        chosen_texts = texts[: len(groups)] if group is None else [texts[group]]
        words = list(itertools.chain.from_iterable(chosen_texts))
        pairs = {p: n for p, n in count_pairs(words).items() if n >= min_count}
        if not pairs:
            if group is None:
                break
            open_groups.remove(group)
            continue
        key = tie_break(ties, tokens)
        pair = min(pairs, key=lambda p: (-pairs[p], key(p)))
        texts = [[(replace(ids, pair, len(tokens)), n) for ids, n in words] for words in texts]
        tokens.append(tokens[pair[0]] + tokens[pair[1]])
        learnt.append(pair)
    return learnt


def user_defined_parts(text: bytes, tokens: Collection[bytes]) -> list[tuple[bytes, bool]]:
    r"""Divide a text at user-defined tokens: from left to right, the longest first.

    Returns each part, and whether it is such a token; the other parts are encoded separately.

    >>> user_defined_parts(b"a\n\n\nb", {b"\n", b"\n\n"})
    [(b'a', False), (b'\n\n', True), (b'\n', True), (b'b', False)]
    """
    parts, start, at = [], 0, 0
    while at < len(text):
        longest = max((t for t in tokens if text.startswith(t, at)), key=len, default=b"")
        if longest:
            parts += [(text[start:at], False)] * (start < at) + [(longest, True)]
            start = at + len(longest)
        at = max(at + 1, start)
    return parts + [(text[start:], False)] * (start < len(text))


def spaced(text: str, put: str, start: bool = True) -> str:
    """Convert the spaces of a text as SentencePiece models expect: U+2581 becomes a space.

    `put` says when a space is put before a nonempty part of a text: `never`; `always`; if the part
    does not begin with one (`missing`); or the same, but only at the start of the text (`first`).
    `start` is true if the part is at the start of the text, false if it follows a special token.

    >>> spaced("a\u2581b", "always"), spaced(" a", "missing"), spaced("a", "first", start=False)
    (' a b', ' a', 'a')
    """
    text = text.replace("\u2581", " ")
    missing = not text.startswith(" ")
    puts = {"never": False, "always": True, "missing": missing, "first": missing and start}
    return " " + text if text and puts[put] else text


def prune(
    ids: Mapping[bytes, int],
    pairs: Mapping[bytes, tuple[bytes, bytes]],
    uses: Mapping[bytes, int],
    size: int,
) -> set[bytes]:
    """Remove tokens until `size` are left, and return those that are kept.

    `pairs` has the two parts of each token that merging makes, and `uses` the number of times that
    each token occurs in a corpus. The least used token (of equals, the one with the greatest id)
    that is neither a byte nor a part of another token is removed first; its use is added to that of
    its parts.

    >>> ids = {b"a": 0, b"b": 1, b"ab": 2, b"ba": 3}
    >>> pairs = {b"ab": (b"a", b"b"), b"ba": (b"b", b"a")}
    >>> sorted(prune(ids, pairs, {b"ab": 2, b"ba": 1}, 3))
    [b'a', b'ab', b'b']
    """
    rest, occurrences = set(ids), dict(uses)
    while len(rest) > size:
        parts = {part for token in rest for part in pairs.get(token, ())}
        free = [token for token in rest if len(token) > 1 and token not in parts]
        least = min(free, key=lambda token: (occurrences.get(token, 0), -ids[token]))
        rest.remove(least)
        for part in pairs.get(least, ()):
            occurrences[part] = occurrences.get(part, 0) + occurrences.get(least, 0)
    return rest


def packed_rows(
    groups: Iterable[Sequence[Sequence[Any]]], width: int, buffer: int, filler: Any = None
) -> Iterator[list[Any]]:
    """Pack documents into rows by best fit, as nanochat does; each row begins with a document.

    Whenever fewer than `buffer` documents wait, the next group of documents is read. The longest
    waiting document that fits the rest of the row is appended, of equals the first. If none fits,
    the shortest is cropped to fill the row and its rest is dropped; with a `filler`, no document is
    cropped, and the row is filled with the `filler`. Packing ends when no group is left to read.

    >>> list(packed_rows([["aaa", "bb"], ["cccc", "d"], ["ee"]], 4, 2))
    [['a', 'a', 'a', 'd'], ['c', 'c', 'c', 'c']]
    >>> next(packed_rows([["aaa", "bb"], ["cc"]], 4, 2, filler="-"))
    ['a', 'a', 'a', '-']
    """
    coming, waiting = iter(groups), list[Sequence[Any]]()
    row: list[Any] = []
    while True:
        while len(waiting) < buffer:
            group = next(coming, None)
            if group is None:
                return
            waiting += group
        room = width - len(row)
        fitting = [document for document in waiting if len(document) <= room]
        if fitting or filler is None:
            pick = max(fitting, key=len) if fitting else min(waiting, key=len)
            waiting.pop(next(i for i, document in enumerate(waiting) if document is pick))
            row += pick[:room]
        else:
            row += [filler] * room
        if len(row) == width:
            yield row
            row = []


def stream_batches(
    groups: Iterable[Sequence[Sequence[int]]], rows: int, length: int
) -> Iterator[tuple[list[list[int]], list[list[int]]]]:
    """Concatenate documents and cut them into batches, as nanochat did in 2025.

    A batch takes one id more than it has inputs, so that the last input has a target too; the next
    batch begins after that id.

    >>> next(stream_batches([[[1, 2, 3]], [[4, 5]]], 2, 2))
    ([[1, 2], [3, 4]], [[2, 3], [4, 5]])
    """
    ids = [id for group in groups for document in group for id in document]
    size = rows * length + 1
    for start in range(0, len(ids) - size + 1, size):
        inputs, targets = ids[start : start + size - 1], ids[start + 1 : start + size]
        starts = range(0, rows * length, length)
        yield [inputs[i : i + length] for i in starts], [targets[i : i + length] for i in starts]
