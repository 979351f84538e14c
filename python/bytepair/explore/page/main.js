// The page: the views, the text and its splits, and the link that brings them back.

import * as api from "./api.js";
import { characters, learn } from "./bytes.js";
import * as chat from "./chat.js";
import { compare, inWords, tellAll } from "./compare.js";
import * as cost from "./cost.js";
import * as field from "./field.js";
import * as ids from "./ids.js";
import * as learned from "./learned.js";
import { LONGEST, packed, unpacked } from "./link.js";
import * as merges from "./merges.js";
import { Pane } from "./panes.js";
import * as token from "./token.js";
import * as tokenizers from "./tokenizers.js";
import * as vocabulary from "./vocabulary.js";

const at = (id) => document.getElementById(id);
const VIEWS = ["text", "merges", "chat", "vocabulary", "cost"];
const PROMPT = "Hello, world! How is this split? 안녕하세요, 你好，مرحبا 👋🏽\n1234567 tokens — naïve café";
const { MOST_PANES, names, shown } = tokenizers;
const encoder = new TextEncoder();
const number = new Intl.NumberFormat("en");
const panes = []; // each at the number of its tokenizer

let about = null;
let view = "text";
let asking = null;
let waiting = null;
let saving = null;
let current = { bytes: new Uint8Array(), splits: [], visible: [] };

// ---------------------------------------------------------------- the tokenizers

/** Ask which tokenizers there are, and show it everywhere. */
async function meet() {
  about = await api.about();
  learn(about);
  tokenizers.take(about);
  names.forEach((name, t) => (panes[t] ??= new Pane(t, name, { hover, leave, choose })));
  panes.forEach((_, t) => t in names || delete panes[t]);
  chat.take(about);
  cost.take(names);
  at("marks-label").hidden = Object.keys(names).length < 2;
  at("nothing").hidden = Object.keys(names).length > 0;
  const here = `bytepair ${document.querySelector("h1 small").textContent}`;
  document.title = [Object.values(names).join(", "), here].filter(Boolean).join(" · ");
}

/** Others are shown, or there are others: draw all that depends on them. */
async function met(said) {
  await meet();
  arrange();
  merges.load();
  chat.open();
  open(view);
  notice(said);
}

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
    const some = visible.map((pane) => pane.index);
    const splits = some.length ? await api.compare(some, bytes, at("special").checked, signal) : [];
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
  panes.forEach((pane) => pane.same());
  token.leave();
}

/** A token was clicked: show all about it, and offer the merges of its word. */
function choose({ pane, i, id, start }) {
  const special = at("special").checked;
  const bytes = current.bytes;
  token.inspect(pane.index, id, {
    name: names[pane.index],
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
  document.documentElement.dataset.spaces = at("spaces").checked;
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
  at("names").hidden = !compares;
  if (compares) split();
  if (view === "vocabulary" && at("search-in").value) vocabulary.search();
  if (view === "merges" && at("merges-of").value) learned.show(Number(at("merges-of").value));
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

function choices() {
  at("sample").append(...Object.keys(about.samples).map((name) => new Option(name, name)));
  at("sample").addEventListener("change", (event) => {
    const text = about.samples[event.target.value];
    if (text === undefined) return;
    event.target.value = "";
    field.put(text);
  });
  field.start(changed, () => view === "text" || view === "cost" || open("text"), tokenizers);
  ids.start(field.put);
  at("display").addEventListener("change", () => (draw(), save()));
  at("special").addEventListener("change", split);
  for (const id of ["mono", "marks"]) at(id).addEventListener("change", () => (arrange(), save()));
  at("spaces").addEventListener("change", () => (arrange(), draw(), save()));
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
    spaces: at("spaces").checked,
    word: at("word").value,
    of: tokenizers.SELECTS.map((id) => names[at(id).value]),
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
  const link = `${location.href.replace(/#.*/s, "")}#${hash}`;
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
  const saved = at("state"); // a page that was exported for a text begins with it
  const found = saved && !location.hash ? JSON.parse(saved.textContent) : await unpacked(location.hash);
  restore(found ?? {});
  const known = (name) => typeof name !== "string" || names.includes(name);
  const missing = Array.isArray(found?.shown) ? found.shown.slice(0, MOST_PANES).filter((name) => !known(name)) : [];
  if (found === null) notice("The link is damaged or too long. This is the page without it.");
  else if (missing.length) notice(`The link also shows ${missing.join(", ").slice(0, 300)}, which this page does not have. Add it here, or to the command: bytepair explore TOKENIZERS`);
  else notice((about.missing ?? []).map((reason) => `Not shown: ${reason}`).join(" "));
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
  at("spaces").checked = found.spaces === true;
  at("query").value = typeof found.query === "string" ? found.query : "";
  for (const [n, id] of tokenizers.SELECTS.entries()) {
    const index = names.indexOf(found.of?.[n]);
    if (index >= 0) at(id).value = index;
  }
  cost.restore(found.cost);
  chat.open(found.chat);
  merges.load({ text: typeof found.word === "string" ? found.word : " tokenization" });
  tokenizers.draw();
  arrange();
  open(found.view ?? "text");
}

tabs();
tokenizers.start({
  text: () => field.text(),
  say: notice,
  changed: () => (arrange(), split()),
  came: met,
  gone: met,
  trained(t) {
    at("merges-of").value = t;
    open("merges");
    merges.load();
    learned.show(t, { watch: true });
  },
});
try {
  await meet();
} catch (error) {
  notice(`This page cannot start: ${error.message}`);
  throw error;
}
choices();
merges.start(save);
learned.start();
at("merges-of").addEventListener("change", () => learned.show(Number(at("merges-of").value)));
chat.start(save);
vocabulary.start(names, save);
cost.start(() => (tellAll(current), save()));
await follow();
addEventListener("hashchange", follow);
document.documentElement.dataset.ready = "true";
