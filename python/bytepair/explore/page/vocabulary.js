// The vocabulary, searched by text, regular expression, bytes or id.

import * as api from "./api.js";
import { make } from "./panes.js";
import { chip, inspect } from "./token.js";

const at = (id) => document.getElementById(id);
const number = new Intl.NumberFormat("en");
let names = [];
let request = 0;
let shown = null; // what is shown: the question, and how many tokens fit
let changed = () => {};

export function start(found, onChange) {
  names = found; // each at its number; it changes as tokenizers come and go
  changed = onChange;
  at("query").addEventListener("input", search);
  at("kind").addEventListener("change", search);
  at("search-in").addEventListener("change", search);
  at("more").addEventListener("click", more);
}

export async function search() {
  changed();
  const question = [Number(at("search-in").value), at("kind").value, at("query").value];
  const found = await asking(question, 0);
  if (!found) return;
  shown = { question, count: found.count };
  const none = `None of ${number.format(found.all)} tokens matches. Search for a shorter text, or by its bytes.`;
  at("found").textContent = found.count ? `${number.format(found.count)} of ${number.format(found.all)} tokens` : none;
  at("results").replaceChildren();
  append(found.tokens);
}

async function more() {
  const found = await asking(shown.question, at("results").childElementCount);
  if (found) append(found.tokens);
}

/** The answer to a question, unless there is none, or a newer question. */
async function asking(question, from) {
  const now = ++request;
  const found = await api.search(...question, from).catch((error) => ({ error: error.message }));
  if (now !== request) return null;
  if (!found.error) return found;
  at("found").textContent = found.error;
  at("results").replaceChildren();
  at("more").hidden = true;
  return null;
}

function append(tokens) {
  const [t] = shown.question;
  for (const one of tokens) {
    const item = make("div");
    item.setAttribute("role", "listitem");
    item.append(chip(t, one, (id) => inspect(t, id, { name: names[t] })));
    at("results").append(item);
  }
  at("more").hidden = at("results").childElementCount >= shown.count;
}
