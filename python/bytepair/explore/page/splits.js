// A split as the server sends it: how many tokens there are, their ids, how many bytes each stands for.

/** Ids, and where each token starts; one place more than there are tokens. */
export function splitFrom(buffer) {
  const [count, ids, lengths] = sections(buffer, 2);
  const starts = new Uint32Array(count + 1);
  for (let i = 0; i < count; i++) starts[i + 1] = starts[i] + lengths[i];
  return { ids, starts };
}

/** A count, and so many numbers, this many times. */
export function sections(buffer, times) {
  const [count] = new Uint32Array(buffer, 0, 1);
  const parts = [];
  for (let i = 0; i < times; i++) parts.push(new Uint32Array(buffer, 4 + 4 * count * i, count));
  return [count, ...parts];
}
