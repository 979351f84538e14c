// The merges of a vocabulary in the order in which they were learned; those of a training on this
// page appear one after another.

import * as api from "./api.js";
import { fill, fromHex } from "./bytes.js";
import { make } from "./panes.js";
import { inspect } from "./token.js";

const at = (id) => document.getElementById(id);
const PAUSE = 40; // milliseconds between two merges that appear
const MOST_WATCHED = 150;
const number = new Intl.NumberFormat("en");
let request = 0;

export function start() {
  at("more-learned").addEventListener("click", () => append(Number(at("merges-of").value)));
}

/** Show the first merges; with `watch` one after another. */
export async function show(t, { watch = false } = {}) {
  at("learned").replaceChildren();
  await append(t, watch && !matchMedia("(prefers-reduced-motion: reduce)").matches);
}

async function append(t, watch = false) {
  const now = ++request;
  const list = at("learned");
  const found = await api.learned(t, list.childElementCount).catch((error) => ({ error }));
  if (now !== request) return;
  if (found.error) return (at("learned-said").textContent = found.error.message);
  at("learned-said").textContent = `${number.format(found.all)} merges`;
  const some = watch ? found.merges.slice(0, MOST_WATCHED) : found.merges;
  for (const one of some) {
    list.append(row(t, one));
    if (!watch) continue;
    list.scrollTop = list.scrollHeight;
    await new Promise((done) => setTimeout(done, PAUSE));
    if (now !== request) return;
  }
  at("more-learned").hidden = list.childElementCount >= found.all;
}

/** A merge: its place, the two parts, what they become, and how often. */
function row(t, { rank, id, hex, parts, count }) {
  const item = make("li");
  const line = make("span", "line");
  const part = (digits) => fill(make("span", "part"), fromHex(digits), { spaces: true });
  const token = fill(make("button", "part merged"), fromHex(hex), { spaces: true });
  if (id === null) token.disabled = true;
  else token.addEventListener("click", () => inspect(t, id, { beside: token }));
  line.append(make("span", "faint", `${rank}`), part(parts[0]), part(parts[1]), make("span", "faint", "→"), token);
  item.append(line, make("span", "faint note", count === null ? "" : `${number.format(count)} times`));
  return item;
}
