// The page that holds one text: its tokens side by side, and what they cost.

import { about, splits, text } from "./api.js";
import { characters, learn } from "./bytes.js";
import { compare, inWords, tellAll } from "./compare.js";
import * as cost from "./cost.js";
import { Pane } from "./panes.js";
import * as token from "./token.js";

const at = (id) => document.getElementById(id);
const number = new Intl.NumberFormat("en");
const bytes = new TextEncoder().encode(text);
const names = about.tokenizers.map((one) => one.name);

// The parts of the page that ask for other texts are not displayed; the others stand one below the other.
for (const [view, label] of [["view-text", "Text"], ["view-cost", "Cost"]]) {
  for (const name of ["hidden", "role", "aria-labelledby"]) at(view).removeAttribute(name);
  at(view).setAttribute("aria-label", label);
}
Object.assign(at("text"), { readOnly: true, placeholder: "", ariaLabel: "Text that is split" });
Object.assign(document.querySelector(".skip"), { href: "#panes", textContent: "Skip to the tokens" });

learn(about);
const visible = names.map((name, index) => new Pane(index, name, { hover, leave, choose }));
const current = { bytes, splits, visible };

function hover(one, element) {
  const end = one.start + one.bytes.length;
  for (const pane of visible) if (pane !== one.pane) pane.same(one.start, end);
  token.hover(one, element);
}

function leave() {
  for (const pane of visible) pane.same();
  token.leave();
}

function choose({ pane, i, id }) {
  const beside = at(`p${pane.index}-${i}`);
  token.inspect(pane.index, id, { name: names[pane.index], beside, around: pane.partOf(i) });
}

function style() {
  document.documentElement.dataset.mono = at("mono").checked;
  document.documentElement.dataset.marks = at("marks").checked;
  document.documentElement.dataset.spaces = at("spaces").checked;
  at("legend").hidden = !at("marks").checked;
}

at("text").value = text;
at("sizes").textContent = `${number.format(characters(bytes))} characters, ${number.format(bytes.length)} bytes in UTF-8`;
at("panes").append(...visible.map((pane) => pane.element));
at("marks-label").hidden = names.length < 2;
at("display").addEventListener("change", () => compare(current, at("display").value));
for (const id of ["mono", "marks"]) at(id).addEventListener("change", style);
at("spaces").addEventListener("change", () => (style(), compare(current, at("display").value)));
style();
compare(current, "text");
cost.start(() => tellAll(current));
cost.take(names);
cost.open([...names.keys()], splits.map(({ ids }) => ids.length));
at("said").textContent = inWords(current);
document.documentElement.dataset.ready = "true";
