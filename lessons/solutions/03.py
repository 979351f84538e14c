# %% count_pairs
from itertools import pairwise


def count_pairs(words):
    """Count the pairs of neighbours, and find the words that hold them."""
    pairs, places = {}, {}
    for number, (ids, times) in enumerate(words):
        for pair in pairwise(ids):
            pairs[pair] = pairs.get(pair, 0) + times
            places.setdefault(pair, set()).add(number)
    return pairs, places


# %% changes
def changes(before, after):
    """Compare the counts of pairs before and after a merge."""
    both = before.keys() & after.keys()
    return {
        "born": after.keys() - before.keys(),
        "grown": {pair for pair in both if after[pair] > before[pair]},
        "fallen": {pair for pair in both if after[pair] < before[pair]},
        "gone": before.keys() - after.keys(),
    }


# %% train_from_iterator
import regex


def next_pair(heap, pairs):
    """Take the most frequent pair out of the heap; its old entries are brought up to date."""
    while True:
        count, pair = heapq.heappop(heap)
        now = pairs.get(pair, 0)
        if -count == now:
            return pair
        if now:
            heapq.heappush(heap, (-now, pair))


def train_from_iterator(texts, vocab_size, pattern):
    """Learn a vocabulary from texts."""
    counts = Counter(match.encode() for text in texts for match in regex.findall(pattern, text))
    words = [(list(pretoken), times) for pretoken, times in counts.items()]
    tokens = [bytes([byte]) for byte in range(256)]
    pairs, places = count_pairs(words)
    heap = [(-count, pair) for pair, count in pairs.items()]
    heapq.heapify(heap)
    while len(tokens) < vocab_size and pairs:
        pair = next_pair(heap, pairs)
        for number in places[pair]:
            ids, times = words[number]
            words[number] = replace(ids, pair, len(tokens)), times
        tokens.append(tokens[pair[0]] + tokens[pair[1]])
        before, (pairs, places) = pairs, count_pairs(words)
        for born in pairs.keys() - before.keys():
            heapq.heappush(heap, (-pairs[born], born))
    return [(token, rank) for rank, token in enumerate(tokens)]
