"""Solutions of lesson 1."""

# %% count_pairs
from collections import Counter
from itertools import pairwise


def count_pairs(ids):
    """How often each pair of neighbours occurs: a dict from pairs to counts."""
    return Counter(pairwise(ids))


# %% merge
def merge(ids, pair, new):
    """The list with `new` for each occurrence of `pair`, from left to right, without overlap."""
    out = []
    for id in ids:
        if out and (out[-1], id) == pair:  # never with a `new` on the left: it is not in `pair`
            out[-1] = new
        else:
            out.append(id)
    return out


# %% train
def train(ids, steps):
    """Learn at most `steps` merges: the most frequent pair each time, of equals the smallest."""
    merges = []
    for new in range(256, 256 + steps):
        pairs = count_pairs(ids)
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        ids = merge(ids, best, new)
    return merges


# %% encode_and_decode
def encode(text, merges):
    """The ids of a text: its bytes, and then one merge after the other."""
    ids = list(text.encode())
    for new, pair in enumerate(merges, 256):
        ids = merge(ids, pair, new)
    return ids


def decode(ids, merges):
    """The text of ids; bytes that are not UTF-8 become U+FFFD."""
    vocabulary = [bytes([n]) for n in range(256)]
    for left, right in merges:
        vocabulary.append(vocabulary[left] + vocabulary[right])
    return b"".join(vocabulary[id] for id in ids).decode(errors="replace")


# %% save_and_load
def save(merges, path):
    """Write merges to a text file, one in a line."""
    path.write_text("".join(f"{left} {right}\n" for left, right in merges))


def load(path):
    """Read the merges of a file: a list of pairs."""
    return [tuple(map(int, line.split())) for line in path.read_text().splitlines()]
