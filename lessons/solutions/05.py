# %% push
def push(heap, entry):
    """Add an entry to a heap."""
    heap.append(entry)
    n = len(heap) - 1
    while n and entry < heap[parent := (n - 1) // 2]:
        heap[n], heap[parent] = heap[parent], entry
        n = parent


# %% pop
def pop(heap):
    """Take the smallest entry out of a heap."""
    last = heap.pop()
    if not heap:
        return last
    smallest, heap[0] = heap[0], last
    n = 0
    while (child := 2 * n + 1) < len(heap):
        if child + 1 < len(heap) and heap[child + 1] < heap[child]:
            child += 1
        if not heap[child] < last:
            break
        heap[n], heap[child] = heap[child], last
        n = child
    return smallest


# %% take_best
def take_best(heap, pairs):
    """Take the most frequent pair out of a heap whose entries may be out of date."""
    while heap:
        count, pair = pop(heap)
        now = pairs.get(pair, 0)
        if now == -count:
            return pair
        if now:
            push(heap, (-now, pair))
    return None


# %% train_with_heap
def train_with_heap(counts, merges):
    """Learn merges from the counts of pretokens; a heap finds the next pair."""
    words = [(list(pretoken), times) for pretoken, times in counts.items()]
    pairs, places = count_pairs(words)
    heap, learned = [], []
    for pair, count in pairs.items():
        push(heap, (-count, pair))
    while len(learned) < merges and (pair := take_best(heap, pairs)) is not None:
        new = 256 + len(learned)
        learned.append(pair)
        for born in merge_pair(words, pairs, places, pair, new):
            push(heap, (-pairs[born], born))
    return learned
