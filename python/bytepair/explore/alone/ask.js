// Questions to the compiled module, which runs in a thread of its own: there is no server.

import * as source from "./source.js";

export const fetches = source.fetches;
export const shelf = source.shelf;
export const fetched = source.fetched;

const encoder = new TextEncoder();
const waiting = new Map();
let next = 0;

const worker = source.parts().then(({ script, wasm, material, tokenizers }) => {
  const made = new Worker(script);
  made.onmessage = ({ data }) => settle(data);
  made.onerror = (event) => waiting.forEach((_, n) => settle({ n, error: event.message ?? "the module does not run" }));
  made.postMessage({ wasm, material, tokenizers });
  return made;
});

function settle({ n, error, answer }) {
  const one = waiting.get(n);
  waiting.delete(n);
  if (!one) return; // nobody waits for it any more
  if (error !== undefined) one.reject(new Error(error));
  else one.resolve(typeof answer === "string" ? JSON.parse(answer) : answer.buffer);
}

/** Ask a question, with a text or bytes; the answer is a value of JSON or a buffer of numbers. */
export async function ask(question, body, signal) {
  const bytes = typeof body === "string" ? encoder.encode(body) : body;
  const to = await worker;
  signal?.throwIfAborted();
  return new Promise((resolve, reject) => {
    const n = next++;
    waiting.set(n, { resolve, reject });
    signal?.addEventListener("abort", () => (waiting.delete(n), reject(signal.reason)));
    to.postMessage({ n, question: JSON.stringify(question), body: bytes });
  });
}
