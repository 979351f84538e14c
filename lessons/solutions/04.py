# %% merge_word
from collections import Counter


def merge_word(ids, pair, new):
    """Merge a pair in a word, and say which pairs it loses and gains."""
    first, second = pair
    out, changes, n = [], Counter(), 0
    while n < len(ids):
        if n + 1 == len(ids) or (ids[n], ids[n + 1]) != pair:
            out.append(ids[n])
            n += 1
            continue
        changes[pair] -= 1
        if out:
            changes[out[-1], first] -= 1
            changes[out[-1], new] += 1
        if n + 2 < len(ids):
            changes[second, ids[n + 2]] -= 1
            changes[new, ids[n + 2]] += 1
        out.append(new)
        n += 2
    return out, {changed: change for changed, change in changes.items() if change}


# %% merge_pair
def merge_pair(words, pairs, places, pair, new):
    """Merge a pair in all words, and bring the counts and places up to date."""
    touched = set()
    for number in sorted(places.pop(pair)):
        ids, times = words[number]
        merged, changes = merge_word(ids, pair, new)
        words[number] = merged, times
        for changed, change in changes.items():
            pairs[changed] = pairs.get(changed, 0) + change * times
            touched.add(changed)
            if change > 0:
                places.setdefault(changed, set()).add(number)
    for changed in touched:
        if pairs[changed] == 0:
            del pairs[changed]


# %% find_rebirths
def find_rebirths(words, merges):
    """Find the steps in which pairs that had been there gain occurrences."""
    before, _ = count_pairs(words)
    known, found = set(before), []
    for step, (pair, new) in enumerate(merges, 1):
        words = [(replace(ids, pair, new), times) for ids, times in words]
        after, _ = count_pairs(words)
        grown = (p for p in after if p in known and after[p] > before.get(p, 0))
        found += [(step, p) for p in sorted(grown)]
        known.update(after)
        before = after
    return found


# %% train_incremental
def train_incremental(counts, merges):
    """Learn merges from the counts of pretokens, without counting pairs again."""
    words = [(list(pretoken), times) for pretoken, times in counts.items()]
    pairs, places = count_pairs(words)
    learned = []
    while len(learned) < merges and pairs:
        pair = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merge_pair(words, pairs, places, pair, 256 + len(learned))
        learned.append(pair)
    return learned
