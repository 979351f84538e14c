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
