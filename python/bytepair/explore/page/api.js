// What the page asks of the server it came from.

import { sections, splitFrom } from "./splits.js";

const cache = new Map();

async function asked(path, options) {
  const response = await fetch(path, options);
  if (response.ok) return response;
  const { error } = await response.json().catch(() => ({ error: response.statusText }));
  throw new Error(error);
}

async function remembered(path, read) {
  if (!cache.has(path)) {
    if (cache.size > 500) cache.clear();
    cache.set(path, asked(path).then(read).catch((error) => (cache.delete(path), Promise.reject(error))));
  }
  return cache.get(path);
}

const json = (response) => response.json();
const flag = (special) => (special ? 1 : 0);

export const about = () => asked("api/about").then(json);
export const token = (t, id) => remembered(`api/token?t=${t}&id=${id}`, json);

/** Ids, and where each token starts; one place more than there are tokens. */
export async function split(t, bytes, special, signal) {
  const path = `api/split?t=${t}&special=${flag(special)}`;
  const response = await asked(path, { method: "POST", body: bytes, signal });
  return splitFrom(await response.arrayBuffer());
}

/** All tokens: where each starts in their bytes. */
export const vocabulary = (t) =>
  remembered(`api/vocabulary?t=${t}`, async (response) => {
    const buffer = await response.arrayBuffer();
    const [count, lengths] = sections(buffer, 1);
    return { lengths, bytes: new Uint8Array(buffer, 4 + 4 * count) };
  });

/** What the same text costs in sixty languages: a list of code, name, bytes and tokens. */
export const languages = (t) => remembered(`api/languages?t=${t}`, json);

export const pretoken = (t, bytes, at, special) =>
  asked(`api/pretoken?t=${t}&at=${at}&special=${flag(special)}`, { method: "POST", body: bytes }).then(json);

export const steps = (t, bytes) => asked(`api/steps?t=${t}`, { method: "POST", body: bytes }).then(json);

export const chat = (t, template, messages, signal) =>
  asked(`api/chat?t=${t}&template=${encodeURIComponent(template)}`, {
    method: "POST",
    body: JSON.stringify({ messages }),
    signal,
  }).then(json);
