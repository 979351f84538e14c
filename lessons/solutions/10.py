"""Solutions of lesson 10."""

# %% merge_by_rank
from itertools import pairwise


def merge_by_rank(data, ranks):
    """The tokens of some bytes: of all neighbours that make a token, the lowest rank first."""
    parts = [data[n : n + 1] for n in range(len(data))]
    while True:
        joined = [left + right for left, right in pairwise(parts)]
        found = [(ranks[token], n) for n, token in enumerate(joined) if token in ranks]
        if not found:
            return parts
        _, n = min(found)
        parts[n : n + 2] = [joined[n]]


# %% unreachable
def unreachable(ranks):
    """The tokens that merging their own bytes does not produce, in the order of the table."""
    return [token for token in ranks if merge_by_rank(token, ranks) != [token]]


# %% recover_merges
def recover_merges(ranks):
    """The pairs of parts that merge into the tokens of a table, in the order of the ranks."""
    pairs = []
    for token in sorted(ranks, key=ranks.get):
        others = {**ranks}
        del others[token]
        parts = merge_by_rank(token, others) if len(token) > 1 else []
        if len(parts) == 2:
            pairs.append(tuple(parts))
    return pairs


# %% encode_special
import re


def encode_special(text, special, encode):
    """The ids of a text in which names of special tokens become their ids."""
    if not special:
        return encode(text)
    names = sorted(special, key=len, reverse=True)
    parts = re.split(f"({'|'.join(map(re.escape, names))})", text)
    return [id for part in parts for id in ([special[part]] if part in special else encode(part))]
