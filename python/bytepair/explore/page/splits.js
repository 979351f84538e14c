// Splits as they are sent: for each how many tokens there are, their ids, how many bytes each stands
// for, and whether others do not have it.

/** Splits; `starts` has one place more than there are tokens. */
export function splitsFrom(buffer) {
  const numbers = new Uint32Array(buffer);
  const splits = [];
  for (let at = 0; at < numbers.length; ) {
    const count = numbers[at];
    const [ids, lengths, different] = [0, 1, 2].map((n) => numbers.subarray(at + 1 + n * count, at + 1 + (n + 1) * count));
    const starts = new Uint32Array(count + 1);
    for (let i = 0; i < count; i++) starts[i + 1] = starts[i] + lengths[i];
    splits.push({ ids, starts, different });
    at += 1 + 3 * count;
  }
  return splits;
}
