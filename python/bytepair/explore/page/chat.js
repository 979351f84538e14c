// A conversation and what it becomes: ids, coloured by the mask.

import * as api from "./api.js";
import { draw as drawToken, fromHex, name } from "./bytes.js";
import { make } from "./panes.js";
import { inspect } from "./token.js";

const at = (id) => document.getElementById(id);
const number = new Intl.NumberFormat("en");
let about = null;
let asking = null;
let changed = () => {};
const EXAMPLES = { python: "12 * 12", python_output: "144" };
let messages = [
  { role: "user", content: "What is a token?" },
  { role: "assistant", content: "A piece of text that a model reads as one number." },
];

export function start(onChange) {
  changed = onChange;
  at("chat-of").addEventListener("change", () => (templates(chosen()?.own?.[0]), draw(), render()));
  at("template").addEventListener("change", () => (draw(), render()));
  at("add").addEventListener("click", () => {
    const last = messages.at(-1)?.role;
    messages.push({ role: last === "user" ? "assistant" : "user", content: "" });
    draw();
    at("messages").lastElementChild.querySelector("textarea").focus();
    render();
  });
}

/** Take what is known of the tokenizers; at first, one that has a template is chosen. */
export function take(found) {
  const first = about === null;
  about = found;
  const able = about.tokenizers.find((one) => one.templates.length);
  if (first && able) at("chat-of").value = able.t;
  templates();
}

const chosen = () => about.tokenizers.find((one) => one.t === Number(at("chat-of").value));

export const state = () => ({ messages, template: at("template").value });

/** Show the view, with what a link brought. */
export function open(found) {
  if (Array.isArray(found?.messages)) messages = found.messages.filter(isMessage);
  templates();
  if ([...at("template").options].some((one) => one.value === found?.template)) at("template").value = found.template;
  draw();
  render();
}

function isMessage(one) {
  const isPart = (part) => typeof part?.type === "string" && typeof part.text === "string";
  const { role, content } = one ?? {};
  return typeof role === "string" && (typeof content === "string" || (Array.isArray(content) && content.every(isPart)));
}

/** Offer the templates of the tokenizer; `wanted` is chosen, else the one that was, else the first. */
function templates(wanted) {
  const before = wanted ?? at("template").value;
  const { templates: names = [], own = [] } = chosen() ?? {};
  const label = (name) => (own.includes(name) ? `${name} (its own)` : name);
  at("template").replaceChildren(...names.map((name) => new Option(label(name), name)));
  at("template").closest("label").hidden = !names.length;
  if (names.includes(before)) at("template").value = before;
}

/** What messages may be under the template: roles, and for each the kinds of parts. */
const roles = () => about.templates[at("template").value] ?? { system: [], user: [], assistant: [], tool: [] };

function draw() {
  at("messages").replaceChildren(...messages.map(card));
}

function card(message, n) {
  const box = make("div", `message ${message.role}`);
  const known = Object.keys(roles());
  const role = choice(known.includes(message.role) ? known : [message.role, ...known], message.role, `Role of message ${n + 1}`);
  role.addEventListener("change", () => {
    message.role = role.value;
    draw();
    render();
  });
  const content = make("div", "content");
  if (typeof message.content === "string") {
    content.append(field(message.content, `Content of message ${n + 1}`, (text) => (message.content = text)));
  } else {
    content.append(...message.content.map((part, m) => partOf(message, part, n, m)));
  }
  if (roles()[message.role]?.length) content.append(adder(message));
  box.append(role, content, remover(`Remove message ${n + 1}`, () => messages.splice(n, 1)));
  return box;
}

/** A part of a message: text, a tool call, or what the tool gave. */
function partOf(message, part, n, m) {
  const box = make("div", "part-of");
  const said = `part ${m + 1} of message ${n + 1}`;
  const known = roles()[message.role] ?? [];
  const type = choice(known.includes(part.type) ? known : [part.type, ...known], part.type, `Type of ${said}`);
  type.addEventListener("change", () => ((part.type = type.value), render()));
  const remove = () => {
    message.content.splice(m, 1);
    if (!message.content.length) message.content = "";
  };
  box.append(type, field(part.text, `Text of ${said}`, (text) => (part.text = text)), remover(`Remove ${said}`, remove));
  return box;
}

/** A button that adds a tool call, its output and text after it; a content of text becomes parts. */
function adder(message) {
  const button = make("button", "quiet", "Add a tool call");
  button.addEventListener("click", () => {
    if (typeof message.content === "string") message.content = message.content ? [{ type: "text", text: message.content }] : [];
    const called = roles()[message.role].filter((type) => type !== "text");
    message.content.push(...called.map((type) => ({ type, text: EXAMPLES[type] ?? "" })), { type: "text", text: "" });
    draw();
    render();
  });
  return button;
}

function choice(names, value, label) {
  const select = make("select");
  select.append(...names.map((one) => new Option(one, one)));
  select.value = value;
  select.setAttribute("aria-label", label);
  return select;
}

function field(value, label, change) {
  const text = make("textarea");
  text.value = value;
  text.dir = "auto";
  text.rows = 2;
  text.setAttribute("aria-label", label);
  text.addEventListener("input", () => (change(text.value), render()));
  return text;
}

function remover(label, remove) {
  const button = make("button", "quiet", "✕");
  button.setAttribute("aria-label", label);
  button.addEventListener("click", () => (remove(), draw(), render()));
  return button;
}

async function render() {
  changed();
  const t = Number(at("chat-of").value);
  const said = at("chat-said");
  if (!at("template").value) {
    said.textContent = `${chosen()?.name ?? "This tokenizer"} has no tokens for conversations. Choose another tokenizer, or load the folder of a chat model.`;
    at("chat-tokens").replaceChildren();
    return;
  }
  asking?.abort();
  asking = new AbortController();
  try {
    const { tokens, no_mask: why } = await api.chat(t, at("template").value, messages, asking.signal);
    const trained = tokens.filter((one) => one.trained).length;
    const count = `${number.format(tokens.length)} tokens`;
    said.textContent = why ? `${count}, no mask: ${why}` : `${count}, ${number.format(trained)} of them trained on`;
    at("chat-tokens").replaceChildren(...runs(tokens, t));
  } catch (error) {
    if (error.name === "AbortError") return;
    said.textContent = error.message;
    at("chat-tokens").replaceChildren();
  }
}

/** The tokens; text between special tokens has a direction of its own. */
function runs(tokens, t) {
  const found = [];
  for (const one of tokens) {
    if (one.special) {
      found.push(shown(one, t));
    } else {
      if (found.at(-1)?.tagName !== "BDI") found.push(make("bdi"));
      found.at(-1).append(shown(one, t));
    }
  }
  return found;
}

function shown({ id, hex, trained }, t) {
  const bytes = fromHex(hex);
  // No button: those are boxes that tear letters of one word apart and ignore its direction.
  const span = drawToken(make("span", `t ${trained ? "on" : "off"}`), { t, id, bytes });
  span.classList.toggle("whole", span.querySelector(".bytes") !== null);
  span.setAttribute("role", "listitem");
  span.setAttribute("aria-label", `${name(t, id, bytes)}, ${trained ? "trained on" : "only read"}`);
  span.title = `id ${id}`;
  span.tabIndex = 0;
  const open = () => inspect(t, id, { name: chosen()?.name, beside: span });
  span.addEventListener("click", open);
  span.addEventListener("keydown", (event) => event.key === "Enter" && open());
  return span;
}
