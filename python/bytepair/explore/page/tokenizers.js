// The tokenizers of the page: their names as switches, and the panel in which they are added: from a
// file, from the shelf or a hub where the page has them, or trained on the text.

import * as api from "./api.js";
import { fetched, fetches, shelf } from "./ask.js";
import { make } from "./panes.js";

export const MOST_PANES = 6;
export const SELECTS = ["merges-of", "chat-of", "search-in", "ids-of"]; // each chooses a tokenizer
const TOKENIZER_FILE = /(^tokenizer.*\.json|\.tiktoken|\.bytepair|\.tokenizer)$/i;
const at = (id) => document.getElementById(id);

export const names = []; // each at its number; numbers of removed tokenizers are left out
export const shown = new Set();
const sizes = [];
let calls = {};

/** Call `changed` when others are shown, `came` with a number and a notice when one was added,
 * `gone` when one was removed, and `say` with a notice. */
export function start(found) {
  calls = found;
  at("add-tokenizer").addEventListener("click", () => toggle(at("adding").hidden));
  at("adding-close").addEventListener("click", () => toggle(false));
  const chosen = at("tokenizer-file");
  chosen.addEventListener("change", async () => {
    for (const file of chosen.files) await addFile(file);
    chosen.value = "";
  });
  at("train").addEventListener("click", train);
  at("hub").hidden = !fetches;
  at("hub").addEventListener("submit", (event) => {
    event.preventDefault();
    const name = at("repository").value.trim();
    if (name) busy(`Fetching ${name} …`, async () => add(name, await fetched(name)));
  });
  at("shelf").hidden = !shelf.length;
  for (const one of shelf) {
    const button = make("button", "", one.name);
    button.addEventListener("click", () => busy(`Loading ${one.name} …`, async () => add(one.name, await one.load())));
    at("shelf").append(button);
  }
}

function toggle(open) {
  at("adding").hidden = !open;
  at("add-tokenizer").setAttribute("aria-expanded", open);
  if (open) at("tokenizer-file").focus();
  else at("add-tokenizer").focus();
}

/** Take the tokenizers that there are, and the names of patterns. */
export function take(about) {
  names.length = 0;
  for (const one of about.tokenizers) [names[one.t], sizes[one.t]] = [one.name, one.size];
  for (const t of shown) if (!(t in names)) shown.delete(t);
  if (!shown.size) about.tokenizers.slice(0, MOST_PANES).forEach((one) => shown.add(one.t));
  for (const id of SELECTS) choices(at(id));
  if (at("pattern").options.length < 2) at("pattern").append(...about.patterns.map((name) => new Option(name, name)));
  draw();
}

function choices(select) {
  const before = select.value;
  select.replaceChildren();
  names.forEach((name, t) => select.append(new Option(name, t)));
  if (names[before] !== undefined) select.value = before;
  select.closest("label").hidden = Object.keys(names).length < 2;
}

/** The names as switches, each with a button that removes the tokenizer; the shelf offers the others. */
export function draw() {
  for (const button of at("shelf").children) button.hidden = names.includes(button.textContent);
  const several = Object.keys(names).length > 1;
  at("names").replaceChildren();
  names.forEach((name, t) => {
    if (!several) return;
    const box = make("span", "switches");
    const button = make("button", "switch", name);
    button.setAttribute("aria-pressed", shown.has(t));
    button.addEventListener("click", () => turn(t));
    const remove = make("button", "quiet remove", "✕");
    remove.setAttribute("aria-label", `Remove ${name}`);
    remove.addEventListener("click", () => removed(t));
    box.append(button, remove);
    at("names").append(box);
  });
}

/** Switch a tokenizer on or off. */
function turn(t) {
  if (!shown.has(t) && shown.size >= MOST_PANES) return calls.say(`At most ${MOST_PANES} tokenizers stand side by side: switch one off first.`);
  if (!shown.has(t)) shown.add(t);
  else if (shown.size > 1) shown.delete(t);
  calls.say("");
  draw();
  [...at("names").querySelectorAll(".switch")][Object.keys(names).indexOf(String(t))]?.focus();
  calls.changed();
}

async function removed(t) {
  const name = names[t];
  await busy(`Removing ${name} …`, async () => {
    await api.remove(t);
    await calls.gone(`${name} was removed.`);
    at("add-tokenizer").focus();
  });
}

/** Whether the name of a file says that it holds a tokenizer. */
export const isTokenizer = (file) => TOKENIZER_FILE.test(file.name);

export const addFile = (file) => busy(`Reading ${file.name} …`, async () => add(file.name, new Uint8Array(await file.arrayBuffer())));

async function add(name, bytes) {
  const t = await api.add(free(name), at("pattern").value, bytes);
  await came(t, `${free(name)} was added.`);
}

function train() {
  const size = Number(at("train-size").value);
  const name = free(`trained ${size}`);
  return busy("Training on the text of the page …", async () => {
    const t = await api.train(name, at("pattern").value, size, calls.text());
    await came(t, `${name} was trained on the text of the page.`);
    calls.trained(t);
    if (sizes[t] < size) calls.say(`${name} has ${sizes[t]} ids: the text has no more pairs to merge.`);
  });
}

/** Show a tokenizer that was added; if there is no room, the one that was shown last makes it. */
async function came(t, notice) {
  if (shown.size >= MOST_PANES) shown.delete([...shown].at(-1));
  shown.add(t);
  await calls.came(notice);
}

/** A name that no tokenizer has. */
function free(name) {
  let found = name;
  for (let n = 2; names.includes(found); n++) found = `${name} (${n})`;
  return found;
}

/** Do something, saying what meanwhile, and why not if it fails. */
async function busy(what, work) {
  calls.say(what);
  try {
    await work();
  } catch (error) {
    calls.say(`${what.replace(/ …$/, "")} failed: ${error.message}`);
    at("adding").hidden = false;
    at("add-tokenizer").setAttribute("aria-expanded", true);
  }
}
