// What the page asks: one function for each question that `rust/view` answers.

import { ask } from "./ask.js";
import { splitsFrom } from "./splits.js";

const MOST_REMEMBERED = 500;
const cache = new Map();

async function remembered(question) {
  const key = JSON.stringify(question);
  if (!cache.has(key)) {
    if (cache.size >= MOST_REMEMBERED) cache.clear();
    cache.set(key, ask(question).catch((error) => (cache.delete(key), Promise.reject(error))));
  }
  return cache.get(key);
}

const flag = (special) => (special ? 1 : 0);

export const about = () => ask({ what: "about" });
export const token = (t, id) => remembered({ what: "token", t, id });

/** For each of some tokenizers: ids, where each token starts, and whether others do not have it. */
export const compare = async (shown, bytes, special, signal) =>
  splitsFrom(await ask({ what: "compare", shown: shown.join(","), special: flag(special) }, bytes, signal));

/** The tokens that fit a query, from the one numbered `from`, and how many fit. */
export const search = (t, kind, query, from) => ask({ what: "search", t, kind, from }, query);

/** What the same text costs in sixty languages: a list of code, name, bytes and tokens. */
export const languages = (t) => remembered({ what: "languages", t });

export const pretoken = (t, bytes, at, special) => ask({ what: "pretoken", t, at, special: flag(special) }, bytes);
export const steps = (t, bytes) => ask({ what: "steps", t }, bytes);
export const decode = (t, ids) => ask({ what: "decode", t }, ids);
export const chat = (t, template, messages, signal) => ask({ what: "chat", t, template }, JSON.stringify({ messages }), signal);

/** Add the tokenizer in a file, or train one on a text; the answer is its number. */
export const add = (name, pattern, file) => ask({ what: "add", name, pattern }, file);
export const train = (name, pattern, size, text) => ask({ what: "train", name, pattern, size }, text);
export const remove = (t) => ask({ what: "remove", t }, "");
export const learned = (t, from) => ask({ what: "learned", t, from });
export const file = (t, format) => ask({ what: "file", t, format });
