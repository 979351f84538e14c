// One token: a few words beside the pointer, and everything about it in the panel at the side.

import * as api from "./api.js";
import { characters, draw, fill, fromHex, isSpecial, name, toHex } from "./bytes.js";
import { make } from "./panes.js";

const NARROW = "(max-width: 60rem)"; // as in views.css: the panel is as wide as the page
const number = new Intl.NumberFormat("en");
const tip = document.getElementById("tip");
const inspector = document.getElementById("inspector");
const inspected = document.getElementById("inspected");
let hovered = 0;
let shown = 0;
let opener = null;

/** The facts of a token that are known without asking. */
function facts(id, bytes, around) {
  const list = make("dl", "facts-list");
  const add = (name, value, className) => list.append(make("dt", "", name), make("dd", className, value));
  add("id", id);
  add("bytes", toHex(bytes.subarray(0, 64)) + (bytes.length > 64 ? " …" : ""), "code");
  const many = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;
  const long = many(bytes.length, "byte");
  add("length", around ? long : `${long}, ${many(characters(bytes), "character")}`);
  if (around) add("part of", `${around.text}  (${around.size} bytes)`);
  return { list, add };
}

/** Show a token beside an element; what must be asked comes a moment later. */
export async function hover({ pane, i, id, bytes }, element) {
  const now = ++hovered;
  const { list, add } = facts(id, bytes, pane.partOf(i));
  const word = make("p", "word");
  word.append(draw(make("span"), { t: pane.index, id, bytes: bytes.subarray(0, 200) }, { spaces: true }));
  tip.replaceChildren(word, list);
  place(element);
  await new Promise((done) => setTimeout(done, 90));
  if (now !== hovered) return;
  const found = await api.token(pane.index, id).catch(() => null);
  if (!found || now !== hovered) return;
  add("rank", found.special ? "none: it is special" : found.rank === null ? "none" : number.format(found.rank));
  if (found.tree?.parts) tip.append(tree(found.tree));
  place(element);
}

export function leave() {
  hovered++;
  tip.hidden = true;
}

function place(element) {
  if (!element.isConnected) return;
  tip.hidden = false;
  // A token on two lines has two boxes; the wider one is where its letters are.
  const boxes = [...element.getClientRects()].sort((a, b) => b.width - a.width);
  const box = boxes[0] ?? element.getBoundingClientRect();
  const left = Math.max(8, Math.min(box.left, innerWidth - tip.offsetWidth - 8));
  const below = box.bottom + 8;
  const above = box.top - tip.offsetHeight - 8;
  const top = below + tip.offsetHeight > innerHeight && above > 0 ? above : below;
  tip.style.left = `${left}px`;
  tip.style.top = `${top}px`;
}

/** A token above the two that it was merged from, down to the bytes. */
export function tree(node, choose) {
  const box = make("div", "node");
  const label = fill(make(choose && node.id !== null ? "button" : "span", "leaf"), fromHex(node.hex), { spaces: true });
  if (node.id !== null) label.title = `id ${node.id}`;
  if (choose && node.id !== null) label.addEventListener("click", () => choose(node.id));
  box.append(label);
  if (node.parts) {
    const parts = make("div", "parts");
    parts.append(...node.parts.map((part) => tree(part, choose)));
    box.append(parts);
  }
  return box;
}

/** A button for a token that leads to it; a single byte is shown by its number. */
export function chip(t, { id, hex }, choose) {
  const button = make("button", "chip");
  const bytes = fromHex(hex);
  const single = bytes.length === 1 && !isSpecial(t, id);
  const word = draw(make("span"), { t, id, bytes }, { spaces: true, hex: single });
  if (single && bytes[0] > 0x20 && bytes[0] < 0x7f) word.append(` ${String.fromCharCode(bytes[0])}`);
  word.removeAttribute("aria-label");
  button.append(word, make("small", "", id));
  button.setAttribute("aria-label", name(t, id, bytes));
  button.addEventListener("click", () => choose(id));
  return button;
}

/** Show everything about a token at the side. */
export async function inspect(t, id, { name: of, around, merges, beside, focus = true } = {}) {
  const now = ++shown;
  leave();
  if (inspector.hidden) opener = document.activeElement;
  const found = await api.token(t, id).catch((error) => ({ error: error.message }));
  if (now !== shown) return;
  if (found.error) {
    inspected.replaceChildren(make("p", "faint", found.error));
    open(beside);
    return;
  }
  const again = (other) => inspect(t, other, { name: of, beside });
  const bytes = fromHex(found.hex);
  const { list, add } = facts(id, bytes, around);
  add("rank", found.special ? "none: it is special" : found.rank === null ? "none: no merge makes it" : number.format(found.rank));
  if (of) add("in", of);
  const word = make("p", "word large");
  word.append(draw(make("span"), { t, id, bytes }, { spaces: true }));
  const parts = [word, list];
  if (merges) {
    const button = make("button", "", "Step through the merges of this word");
    button.addEventListener("click", merges);
    parts.push(button);
  }
  if (found.tree?.parts) parts.push(make("h3", "", "How it was built"), tree(found.tree, again));
  const groups = {
    "Looks alike": found.alike,
    "Near it in the vocabulary": found.near,
    [`Built from it: ${number.format(found.children_count)}`]: found.children,
  };
  for (const [title, tokens] of Object.entries(groups)) {
    if (!tokens.length) continue;
    const box = make("div", "chips");
    box.append(...tokens.map((one) => chip(t, one, again)));
    parts.push(make("h3", "", title), box);
  }
  inspected.replaceChildren(...parts);
  open(beside);
  inspector.scrollTop = 0;
  if (focus) document.getElementById("close").focus({ preventScroll: true });
}

/** Open the panel over the page, on the side where it does not cover what it is about. */
function open(beside) {
  inspector.hidden = false;
  inspector.dataset.away = false;
  document.body.style.paddingBottom = matchMedia(NARROW).matches ? `${inspector.offsetHeight}px` : "";
  if (!beside?.isConnected) return;
  const box = beside.getBoundingClientRect();
  const panel = inspector.getBoundingClientRect();
  inspector.dataset.away = box.right > panel.left && box.left < panel.right && box.bottom > panel.top && box.top < panel.bottom;
}

export function close() {
  shown++;
  document.body.style.paddingBottom = "";
  if (inspector.hidden) return;
  inspector.hidden = true;
  opener?.focus?.({ preventScroll: true });
  opener = null;
}

document.getElementById("close").addEventListener("click", close);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") (tip.hidden ? close : leave)();
});
