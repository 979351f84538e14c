// What a text costs: tokens and dollars, for the text on the page and for the same text, the Universal
// Declaration of Human Rights, in sixty languages. Prices are what the reader enters; none is built in.

import * as api from "./api.js";
import { make } from "./panes.js";

const at = (id) => document.getElementById(id);
const HIGHEST = 1e9; // dollars for a million tokens
const number = new Intl.NumberFormat("en");
const large = new Intl.NumberFormat("en", { style: "currency", currency: "USD" });
const small = new Intl.NumberFormat("en", { style: "currency", currency: "USD", minimumSignificantDigits: 2, maximumSignificantDigits: 3 });
const prices = new Map(); // of tokenizers, by their index
let names = [];
let current = { visible: [], counts: [], tables: [] };
let request = 0;
let changed = () => {};

export function start(onChange) {
  changed = onChange;
  for (const id of ["times", "order"]) at(id).addEventListener("input", () => (draw(), changed()));
}

/** Take the names of the tokenizers, each at its number; prices stay. */
export function take(found) {
  names = found;
  for (const index of prices.keys()) if (!(index in names)) prices.delete(index);
  at("prices").replaceChildren();
  names.forEach((name, index) => at("prices").append(priceField(name, index)));
}

/** A field for what a million tokens of a tokenizer cost. */
function priceField(name, index) {
  const label = make("label", "", name);
  label.dataset.t = index;
  const input = make("input", "price");
  Object.assign(input, { type: "number", min: "0", max: String(HIGHEST), step: "any", inputMode: "decimal", placeholder: "no price", value: prices.get(index) ?? "" });
  input.setAttribute("aria-label", `Dollars for a million tokens of ${name}`);
  input.addEventListener("input", () => {
    set(index, input.value === "" ? NaN : Number(input.value));
    draw();
    changed();
  });
  label.append(" $ ", input);
  return label;
}

function set(index, price) {
  if (price >= 0 && price <= HIGHEST) prices.set(index, price);
  else prices.delete(index);
}

/** What some tokens cost, as text; empty without a price. */
export function priced(index, tokens) {
  if (!prices.has(index)) return "";
  const dollars = (tokens * prices.get(index)) / 1e6;
  return (dollars >= 1 || dollars === 0 ? large : small).format(dollars);
}

export const state = () => ({ prices: Object.fromEntries([...prices].map(([index, price]) => [names[index], price])), times: at("times").value, order: at("order").value });

/** Take what a link brought. */
export function restore(found) {
  prices.clear();
  for (const label of at("prices").children) {
    const [index, input] = [Number(label.dataset.t), label.querySelector("input")];
    const price = Object.hasOwn(found?.prices ?? {}, names[index]) ? found.prices[names[index]] : NaN;
    if (typeof price === "number") set(index, price);
    input.value = prices.get(index) ?? "";
  }
  if (Number(found?.times) >= 1) at("times").value = found.times;
  if ([...at("order").options].some((one) => one.value === found?.order)) at("order").value = found.order;
}

/** Show the costs under the tokenizers `visible`, of which each has its count for the text on the page. */
export async function open(visible, counts) {
  const now = ++request;
  for (const label of at("prices").children) label.hidden = !visible.includes(Number(label.dataset.t));
  if (!visible.length) return (at("cost-said").textContent = "Add a tokenizer above to see what it costs.");
  if (!current.tables.length) at("cost-said").textContent = "Counting the tokens of sixty languages …";
  try {
    const tables = await Promise.all(visible.map((index) => api.languages(index)));
    if (now !== request) return;
    current = { visible, counts, tables };
    draw();
  } catch (error) {
    if (now === request) at("cost-said").textContent = `No answer: ${error.message}`;
  }
}

/** How many times the text is paid for. */
const times = () => Math.max(1, Math.floor(Number(at("times").value)) || 1);

function draw() {
  const { visible, counts, tables } = current;
  if (!tables.length) return;
  const head = make("tr");
  head.append(column("Text"), ...visible.map((index) => column(names[index])));
  const body = [row("Your text", visible.map((index, n) => cell(index, counts[n], Math.max(...counts))))];
  const english = tables.map((table) => table.find((one) => one.code === "en").tokens);
  const most = Math.max(...tables.flat().map((one) => one.tokens));
  for (const line of ordered(tables)) {
    const cells = visible.map((index, n) => cell(index, tables[n][line].tokens, most, english[n]));
    body.push(row(tables[0][line].name, cells));
  }
  at("costs").tHead.replaceChildren(head);
  at("costs").tBodies[0].replaceChildren(...body);
  const paid = times() === 1 ? "one too" : number.format(times());
  const missing = visible.every((index) => !prices.has(index)) ? " Enter a price to see dollars." : "";
  at("cost-said").textContent = `Token counts are for one copy, dollars for ${paid}.${missing}`;
}

/** The lines of the tables in the order that was chosen; numbers are those of the first tokenizer. */
function ordered(tables) {
  const [first] = tables;
  const sign = { few: 1, many: -1 }[at("order").value];
  const compare = sign ? (a, b) => sign * (first[a].tokens - first[b].tokens) : (a, b) => first[a].name.localeCompare(first[b].name, "en");
  return [...first.keys()].sort(compare);
}

function column(name) {
  const found = make("th", "", name);
  found.scope = "col";
  return found;
}

function row(name, cells) {
  const found = make("tr");
  const head = make("th", "", name);
  head.scope = "row";
  found.append(head, ...cells);
  return found;
}

/** A number of tokens, beside English and in dollars, over a bar that is full for `most` tokens. */
function cell(index, tokens, most, english) {
  const found = make("td");
  const bar = make("i", "length");
  bar.style.width = `${(100 * tokens) / Math.max(1, most)}%`;
  found.append(make("b", "", number.format(tokens)), " ");
  if (english) found.append(make("small", "faint", `${(tokens / english).toFixed(2)} × English`), " ");
  const money = priced(index, tokens * times());
  if (money) found.append(make("span", "money", money));
  found.append(bar);
  return found;
}
