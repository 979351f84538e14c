// The vocabulary, searched by text, regular expression, bytes or id.

import * as api from "./api.js";
import { isSpecial, toHex } from "./bytes.js";
import { make } from "./panes.js";
import { chip, inspect } from "./token.js";

const at = (id) => document.getElementById(id);
const PAGE = 300; // tokens that are shown at once
const PATIENCE = 2000; // milliseconds until a search is ended
const number = new Intl.NumberFormat("en");
let names = [];
let worker = null;
let loaded = null;
let asked = 0;
let results = [];
let end = null;
let changed = () => {};

export function start(found, onChange) {
  names = found.tokenizers.map((one) => one.name);
  changed = onChange;
  at("query").addEventListener("input", search);
  at("kind").addEventListener("change", search);
  at("search-in").addEventListener("change", search);
  at("more").addEventListener("click", () => more());
}

export async function search() {
  changed();
  const now = ++asked;
  const t = Number(at("search-in").value);
  const words = await api.vocabulary(t).catch((error) => ({ error }));
  if (now !== asked) return;
  if (words.error) return say(words.error.message);
  clearTimeout(end);
  if (worker === null) {
    worker = new Worker("search-worker.js");
    loaded = null;
    worker.onmessage = ({ data }) => answer(data);
  }
  const { lengths, bytes } = words;
  worker.postMessage({ asked: now, query: at("query").value, kind: at("kind").value, load: loaded === t ? undefined : { lengths, bytes } });
  loaded = t;
  end = setTimeout(() => {
    worker.terminate();
    worker = null;
    say("This takes too long; a simpler expression may not.");
  }, PATIENCE);
}

async function answer({ asked: number_, ids, error }) {
  if (number_ !== asked) return;
  clearTimeout(end);
  if (error) return say(error);
  const t = Number(at("search-in").value);
  const words = await api.vocabulary(t);
  const starts = (words.starts ??= placed(words.lengths));
  results = ordered(words, ids).map((id) => ({ id, hex: toHex(words.bytes.subarray(starts[id], starts[id + 1]), "") }));
  at("found").textContent = `${number.format(results.length)} of ${number.format(words.lengths.length)} tokens`;
  at("results").replaceChildren();
  more();
}

/** Without a question merges come first, then special tokens, then single bytes. */
function ordered(words, ids) {
  if (at("query").value) return Array.from(ids);
  const kind = (id) => (isSpecial(Number(at("search-in").value), id) ? 1 : words.lengths[id] > 1 ? 0 : 2);
  const groups = [[], [], []];
  for (const id of ids) groups[kind(id)].push(id);
  return groups.flat();
}

function placed(lengths) {
  const starts = new Uint32Array(lengths.length + 1);
  for (let i = 0; i < lengths.length; i++) starts[i + 1] = starts[i] + lengths[i];
  return starts;
}

function more() {
  const box = at("results");
  const t = Number(at("search-in").value);
  const next = results.slice(box.childElementCount, box.childElementCount + PAGE);
  for (const one of next) {
    const item = make("div");
    item.setAttribute("role", "listitem");
    item.append(chip(t, one, (id) => inspect(t, id, { names })));
    box.append(item);
  }
  at("more").hidden = box.childElementCount >= results.length;
}

function say(text) {
  results = [];
  at("found").textContent = text;
  at("results").replaceChildren();
  at("more").hidden = true;
}
