// The merges of one word, step by step, as on a blackboard.

import * as api from "./api.js";
import { describe, fill, fromHex } from "./bytes.js";
import { make } from "./panes.js";

const at = (id) => document.getElementById(id);
const word = at("word");
const slider = at("step");
const list = at("steps");
const encoder = new TextEncoder();
const number = new Intl.NumberFormat("en");
let taken = ""; // the word; the field cannot hold a newline
let steps = [];
let request = 0;
let timer = null;
let changed = () => {};

export function start(onChange) {
  changed = onChange;
  word.addEventListener("input", () => load({ text: word.value }));
  at("merges-of").addEventListener("change", () => load());
  slider.addEventListener("input", () => (stop(), show()));
  const go = (place) => () => (stop(), move(place()));
  at("first").addEventListener("click", go(() => 0));
  at("previous").addEventListener("click", go(() => Number(slider.value) - 1));
  at("next").addEventListener("click", go(() => Number(slider.value) + 1));
  at("last").addEventListener("click", go(() => steps.length - 1));
  at("play").addEventListener("click", () => (timer ? stop() : play()));
}

/** Take a word apart, and show its last step. */
export async function load({ text, t } = {}) {
  stop();
  if (text !== undefined) {
    taken = text;
    if (word.value !== text) word.value = text;
  }
  if (t !== undefined) at("merges-of").value = t;
  const now = ++request;
  changed();
  const bytes = encoder.encode(taken);
  list.hidden = !taken;
  if (!taken) return (at("step-said").textContent = "Type a word, or choose a token of a text.");
  if (!at("merges-of").value) return (at("step-said").textContent = "Add a tokenizer above.");
  try {
    const found = await api.steps(at("merges-of").value, bytes);
    if (now !== request) return;
    steps = found.steps;
  } catch (error) {
    if (now === request) {
      steps = [];
      list.replaceChildren();
      at("step-said").textContent = error.message;
    }
    return;
  }
  slider.max = steps.length - 1;
  slider.value = steps.length - 1;
  show();
}

function move(step) {
  slider.value = step;
  show();
}

function play() {
  if (Number(slider.value) >= steps.length - 1) move(0);
  playing(true);
  timer = setInterval(() => {
    move(Number(slider.value) + 1);
    if (Number(slider.value) >= steps.length - 1) stop();
  }, 700);
}

function stop() {
  clearInterval(timer);
  timer = null;
  playing(false);
}

function playing(now) {
  at("play").dataset.playing = now;
  at("play").lastElementChild.textContent = now ? "Pause" : "Play";
}

function show() {
  const now = Number(slider.value);
  list.replaceChildren(...steps.slice(0, now + 1).map((step, n) => row(step, steps[n + 1], n === now)));
  list.scrollTop = list.scrollHeight;
  const { parts, rank } = steps[now] ?? { parts: [] };
  const left = parts.length === 1 ? "one token" : `${parts.length} ${now === steps.length - 1 ? "tokens" : "parts"}`;
  at("step-said").textContent = `step ${now} of ${Math.max(0, steps.length - 1)}: ${left}${rank === null || rank === undefined ? "" : `, by rank ${number.format(rank)}`}`;
}

/** The parts at one step: what was just merged, and under a line what goes next. */
function row(step, following, current) {
  const item = make("li", current ? "current" : "");
  const line = make("span", "line");
  step.parts.forEach(({ hex, id, pretoken }, n) => {
    const part = fill(make("span", "part"), fromHex(hex), { spaces: true });
    if (n === step.merged) part.classList.add("merged");
    if (following && (n === following.merged || n === following.merged + 1)) part.classList.add("next");
    if (n && pretoken !== step.parts[n - 1].pretoken) part.classList.add("border");
    part.title = id === null ? "no token" : `id ${id}`;
    line.append(part);
  });
  item.append(line);
  const note = make("span", "faint note");
  if (step.rank !== null) {
    note.textContent = `rank ${number.format(step.rank)}`;
  } else {
    note.textContent = "the bytes";
  }
  item.append(note);
  item.setAttribute("aria-label", step.parts.map(({ hex }) => describe(fromHex(hex))).join(" | "));
  return item;
}
