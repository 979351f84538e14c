// A conversation and what it becomes: ids, coloured by the mask.

import * as api from "./api.js";
import { describe, fill, fromHex } from "./bytes.js";
import { make } from "./panes.js";
import { inspect } from "./token.js";

const at = (id) => document.getElementById(id);
const ROLES = ["system", "user", "assistant"];
let about = null;
let asking = null;
let changed = () => {};
let messages = [
  { role: "user", content: "What is a token?" },
  { role: "assistant", content: "A piece of text that a model reads as one number." },
];

export function start(found, onChange) {
  about = found;
  changed = onChange;
  at("chat-of").addEventListener("change", () => (templates(), render()));
  at("template").addEventListener("change", render);
  at("add").addEventListener("click", () => {
    const last = messages.at(-1)?.role;
    messages.push({ role: last === "user" ? "assistant" : "user", content: "" });
    draw();
    at("messages").lastElementChild.querySelector("textarea").focus();
    render();
  });
  const able = about.tokenizers.findIndex((one) => one.templates.length);
  at("chat-of").value = Math.max(0, able);
}

export const state = () => ({ messages, template: at("template").value });

/** Show the view, with what a link brought. */
export function open(found) {
  if (Array.isArray(found?.messages)) {
    messages = found.messages
      .filter((one) => typeof one?.content === "string")
      .map(({ role, content }) => ({ role: ROLES.includes(role) ? role : "user", content }));
  }
  templates();
  if (found?.template) at("template").value = found.template;
  draw();
  render();
}

function templates() {
  const names = about.tokenizers[Number(at("chat-of").value)].templates;
  at("template").replaceChildren(...names.map((name) => new Option(name, name)));
}

function draw() {
  at("messages").replaceChildren(...messages.map(card));
}

function card(message, n) {
  const box = make("div", `message ${message.role}`);
  const role = make("select");
  role.append(...ROLES.map((name) => new Option(name, name)));
  role.value = message.role;
  role.setAttribute("aria-label", `Role of message ${n + 1}`);
  role.addEventListener("change", () => {
    message.role = role.value;
    box.className = `message ${role.value}`;
    render();
  });
  const text = make("textarea");
  text.value = message.content;
  text.dir = "auto";
  text.rows = 2;
  text.setAttribute("aria-label", `Content of message ${n + 1}`);
  text.addEventListener("input", () => ((message.content = text.value), render()));
  const remove = make("button", "quiet", "✕");
  remove.setAttribute("aria-label", `Remove message ${n + 1}`);
  remove.addEventListener("click", () => (messages.splice(n, 1), draw(), render()));
  box.append(role, text, remove);
  return box;
}

async function render() {
  changed();
  const t = Number(at("chat-of").value);
  const said = at("chat-said");
  if (!at("template").value) {
    said.textContent = `${about.tokenizers[t].name} has the special tokens of no template that is known here.`;
    at("chat-tokens").replaceChildren();
    return;
  }
  asking?.abort();
  asking = new AbortController();
  try {
    const { tokens } = await api.chat(t, at("template").value, messages, asking.signal);
    const trained = tokens.filter((one) => one.trained).length;
    said.textContent = `${tokens.length} tokens, ${trained} of them trained on`;
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

function shown({ id, hex, trained, special }, t) {
  const bytes = fromHex(hex);
  // No button: those are boxes that tear letters of one word apart and ignore its direction.
  const span = fill(make("span", `t ${trained ? "on" : "off"}${special ? " special" : ""}`), bytes);
  span.setAttribute("role", "listitem");
  span.setAttribute("aria-label", `${describe(bytes)}, id ${id}, ${trained ? "trained on" : "only read"}`);
  span.title = `id ${id}`;
  span.tabIndex = 0;
  const open = () => inspect(t, id, { names: about.tokenizers.map((one) => one.name) });
  span.addEventListener("click", open);
  span.addEventListener("keydown", (event) => event.key === "Enter" && open());
  return span;
}
