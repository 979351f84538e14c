// The page: the views, the text and its splits, and the link that brings them back.

import * as api from "./api.js";
import { characters, learn } from "./bytes.js";
import * as chat from "./chat.js";
import { compare, inWords, tellAll } from "./compare.js";
import * as cost from "./cost.js";
import * as field from "./field.js";
import { LONGEST, packed, unpacked } from "./link.js";
import * as merges from "./merges.js";
import { Pane, make } from "./panes.js";
import * as token from "./token.js";
import * as vocabulary from "./vocabulary.js";

const at = (id) => document.getElementById(id);
const VIEWS = ["text", "merges", "chat", "vocabulary", "cost"];
const MOST_PANES = 6;
const PROMPT = "Hello, world! How is this split? 안녕하세요, 你好，مرحبا 👋🏽\n1234567 tokens — naïve café";
const encoder = new TextEncoder();
const number = new Intl.NumberFormat("en");

const about = await api.about();
learn(about);
const names = about.tokenizers.map((one) => one.name);
const panes = names.map((name, index) => new Pane(index, name, { hover, leave, choose }));
const shown = new Set([...names.keys()].slice(0, MOST_PANES));
let view = "text";
let asking = null;
let waiting = null;
let saving = null;
let current = { bytes: new Uint8Array(), splits: [], visible: [] };

// ---------------------------------------------------------------- the text

/** Split the text anew: at once if it is short, else when typing pauses. */
function changed() {
  clearTimeout(waiting);
  waiting = setTimeout(split, field.text().length < 30000 ? 0 : 150);
}

async function split() {
  asking?.abort();
  asking = new AbortController();
  const { signal } = asking;
  const bytes = encoder.encode(field.text());
  const visible = panes.filter((pane) => shown.has(pane.index));
  save();
  try {
    const ask = (pane) => api.split(pane.index, bytes, at("special").checked, signal);
    const splits = await Promise.all(visible.map(ask));
    if (signal.aborted) return;
    current = { bytes, splits, visible };
    draw();
  } catch (error) {
    if (error.name !== "AbortError") at("sizes").textContent = `No answer: ${error.message}`;
  }
}

function draw() {
  const { bytes, splits, visible } = current;
  leave();
  const size = characters(bytes);
  at("sizes").textContent = `${number.format(size)} characters, ${number.format(bytes.length)} bytes in UTF-8`;
  compare(current, at("display").value);
  if (view === "cost") cost.open(visible.map((pane) => pane.index), splits.map(({ ids }) => ids.length));
  clearTimeout(draw.saying);
  draw.saying = setTimeout(() => (at("said").textContent = inWords(current)), 800);
}

/** A token is pointed at: say a few words about it, and mark the same text in the other panes. */
function hover(one, element) {
  const end = one.start + one.bytes.length;
  for (const pane of current.visible) if (pane !== one.pane) pane.same(one.start, end);
  token.hover(one, element);
}

function leave() {
  for (const pane of panes) pane.same();
  token.leave();
}

/** A token was clicked: show all about it, and offer the merges of its word. */
function choose({ pane, i, id, start }) {
  const special = at("special").checked;
  const bytes = current.bytes;
  token.inspect(pane.index, id, {
    names,
    beside: document.getElementById(`p${pane.index}-${i}`),
    around: pane.partOf(i),
    merges: async () => {
      const { hex, start: from } = await api.pretoken(pane.index, bytes, start, special);
      const word = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(from, from + hex.length / 2));
      token.close();
      open("merges");
      merges.load({ text: word, t: pane.index });
    },
  });
}

function arrange() {
  at("panes").replaceChildren(...panes.filter((pane) => shown.has(pane.index)).map((pane) => pane.element));
  document.documentElement.dataset.mono = at("mono").checked;
  document.documentElement.dataset.marks = at("marks").checked;
  at("legend").hidden = !at("marks").checked || shown.size < 2;
}

// ---------------------------------------------------------------- views

function open(name) {
  view = VIEWS.includes(name) ? name : "text";
  for (const tab of document.querySelectorAll("[role=tab]")) {
    const chosen = tab.dataset.view === view;
    tab.setAttribute("aria-selected", chosen);
    tab.tabIndex = chosen ? 0 : -1;
    at(`view-${tab.dataset.view}`).hidden = !chosen;
  }
  leave();
  const compares = view === "text" || view === "cost";
  at("names").hidden = !compares || names.length < 2;
  if (compares) split();
  if (view === "vocabulary") vocabulary.search();
  save();
}

function tabs() {
  const all = [...document.querySelectorAll("[role=tab]")];
  for (const [n, tab] of all.entries()) {
    tab.addEventListener("click", () => open(tab.dataset.view));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const other = all[(n + step + all.length) % all.length];
      other.focus();
      open(other.dataset.view);
    });
  }
}

/** The names of the tokenizers: switches, if there are several. */
function switches() {
  if (names.length < 2) return;
  for (const [index, name] of names.entries()) {
    const button = make("button", "switch", name);
    button.setAttribute("aria-pressed", shown.has(index));
    button.addEventListener("click", () => {
      if (!shown.has(index) && shown.size >= MOST_PANES) return notice(`At most ${MOST_PANES} tokenizers stand side by side: switch one off first.`);
      if (shown.has(index) && shown.size > 1) shown.delete(index);
      else shown.add(index);
      notice("");
      button.setAttribute("aria-pressed", shown.has(index));
      arrange();
      split();
    });
    at("names").append(button);
  }
}

function choices() {
  for (const id of ["merges-of", "chat-of", "search-in"]) {
    at(id).append(...names.map((name, index) => new Option(name, index)));
    at(id).closest("label").hidden = names.length < 2;
  }
  at("sample").append(...Object.keys(about.samples).map((name) => new Option(name, name)));
  at("sample").addEventListener("change", (event) => {
    const text = about.samples[event.target.value];
    if (text === undefined) return;
    event.target.value = "";
    field.put(text);
  });
  field.start(changed, () => view === "text" || view === "cost" || open("text"));
  at("display").addEventListener("change", () => (draw(), save()));
  at("special").addEventListener("change", split);
  for (const id of ["mono", "marks"]) at(id).addEventListener("change", () => (arrange(), save()));
  at("marks-label").hidden = names.length < 2;
  at("share").addEventListener("click", share);
}

// ---------------------------------------------------------------- the link

function state() {
  return {
    view,
    text: field.text(),
    shown: [...shown].map((index) => names[index]),
    display: at("display").value,
    special: at("special").checked,
    mono: at("mono").checked,
    marks: at("marks").checked,
    word: at("word").value,
    of: ["merges-of", "chat-of", "search-in"].map((id) => names[at(id).value]),
    chat: chat.state(),
    query: at("query").value,
    kind: at("kind").value,
    cost: cost.state(),
  };
}

function save() {
  clearTimeout(saving);
  saving = setTimeout(async () => {
    const hash = await packed(state());
    history.replaceState(null, "", hash === null ? location.pathname : `#${hash}`);
  }, 250);
}

async function share() {
  const hash = await packed(state());
  if (hash === null) {
    notice(`This is too long for a link, which holds ${number.format(LONGEST)} characters once the text is compressed. A text of at most 1 MiB can be shared as a file instead: bytepair explore --export page.html`);
    return tell("Too long");
  }
  notice("");
  const link = `${location.origin}${location.pathname}#${hash}`;
  history.replaceState(null, "", `#${hash}`);
  try {
    await navigator.clipboard.writeText(link);
    tell("Copied");
  } catch {
    tell("It is in the address bar");
  }
}

function tell(text) {
  at("share").textContent = text;
  at("said").textContent = text;
  setTimeout(() => (at("share").textContent = "Copy link"), 2500);
}

/** Say something at the top of the page until there is something else to say. */
function notice(text) {
  at("notice").hidden = !text;
  at("notice").textContent = text;
}

/** Show what the address of the page holds, and say what of it cannot be shown. */
async function follow() {
  const found = await unpacked(location.hash);
  restore(found ?? {});
  const known = (name) => typeof name !== "string" || names.includes(name);
  const missing = Array.isArray(found?.shown) ? found.shown.slice(0, MOST_PANES).filter((name) => !known(name)) : [];
  if (found === null) notice("The link is damaged or too long. This is the page without it.");
  else if (missing.length) notice(`The link also shows ${missing.join(", ").slice(0, 300)}, which this page was not started with. Add it to the command: bytepair explore TOKENIZERS`);
  else notice("");
}

function restore(found) {
  const text = typeof found.text === "string" ? found.text : PROMPT;
  field.put(text);
  if (Array.isArray(found.shown)) {
    const known = found.shown.map((name) => names.indexOf(name)).filter((index) => index >= 0);
    if (known.length) shown.clear();
    for (const index of known.slice(0, MOST_PANES)) shown.add(index);
  }
  const set = (id, value) => {
    const before = at(id).value;
    if (typeof value === "string") at(id).value = value;
    if (at(id).value === "") at(id).value = before;
  };
  set("display", found.display);
  set("kind", found.kind);
  at("special").checked = found.special === true;
  at("mono").checked = found.mono === true;
  at("marks").checked = found.marks === true;
  at("query").value = typeof found.query === "string" ? found.query : "";
  for (const [n, id] of ["merges-of", "chat-of", "search-in"].entries()) {
    const index = names.indexOf(found.of?.[n]);
    if (index >= 0) at(id).value = index;
  }
  cost.restore(found.cost);
  chat.open(found.chat);
  merges.load({ text: typeof found.word === "string" ? found.word : " tokenization" });
  for (const [index, button] of [...at("names").children].entries()) button.setAttribute("aria-pressed", shown.has(index));
  arrange();
  open(found.view ?? "text");
}

tabs();
switches();
choices();
merges.start(save);
chat.start(about, save);
vocabulary.start(about, save);
cost.start(names, () => (tellAll(current), save()));
document.title = `${names.join(", ")} · bytepair explore`;
await follow();
addEventListener("hashchange", follow);
document.documentElement.dataset.ready = "true";
