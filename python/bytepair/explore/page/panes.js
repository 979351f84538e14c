// One tokenizer's view of the text. Only what is near the window is in the document: a megabyte is
// some hundred thousand tokens, so they stand in blocks, and a block that is far away is empty space.

import { characterAround, draw, toHex } from "./bytes.js";

const SMALL = 100; // a block of this many tokens ends with the line
const LARGE = 300; // and at the latest after so many
const UNBROKEN = 24; // a token of at most this many bytes stays on one line if some are no text
const LINE = 31; // pixels, for blocks that were never shown
const number = new Intl.NumberFormat("en");

export class Pane {
  constructor(index, name, { hover, leave, choose }) {
    this.index = index;
    this.name = name;
    this.active = -1;
    this.calls = { hover, leave, choose };
    this.head = make("header", "pane-head");
    this.title = make("h2", "", name);
    this.count = make("p", "count");
    this.facts = make("p", "faint facts");
    this.copy = make("button", "quiet copy", "Copy ids");
    this.copy.setAttribute("aria-label", `Copy the ids of ${name}`);
    this.copy.addEventListener("click", () => this.#copied());
    this.head.append(this.title, this.count, this.facts, this.copy);
    this.body = make("div", "tokens");
    this.body.tabIndex = 0;
    this.body.setAttribute("role", "listbox");
    this.body.setAttribute("aria-label", `Tokens of ${name}`);
    this.element = make("article", "pane");
    this.element.append(this.head, this.body);
    this.observer = new IntersectionObserver((entries) => this.#near(entries), {
      root: this.body,
      rootMargin: "500px 0px",
    });
    this.#listen();
  }

  /** Show a split of `bytes`; `different` says of each token whether others do not have it. */
  show({ ids, starts, different }, bytes, display) {
    Object.assign(this, { ids, starts, bytes, different, display });
    this.active = Math.min(this.active, ids.length - 1);
    this.body.dataset.display = display;
    this.observer.disconnect();
    this.blocks = blocks(starts, bytes);
    const across = Math.max(20, this.body.clientWidth / (display === "bytes" ? 11 : 8));
    const elements = [];
    for (let b = 0; b + 1 < this.blocks.length; b++) {
      const element = make("div", "block");
      const size = starts[this.blocks[b + 1]] - starts[this.blocks[b]];
      element.dataset.block = b;
      element.style.minHeight = `${Math.ceil(size / across) * LINE}px`;
      elements.push(element);
    }
    this.body.replaceChildren(...elements);
    if (!elements.length) this.body.append(make("p", "faint", "Type or paste a text above: its tokens appear here."));
    if (elements.length) this.#fill(elements[0]); // the first is there before anyone looks
    for (const element of elements) this.observer.observe(element);
  }

  say(text, count, tone) {
    this.count.textContent = number.format(count);
    this.count.append(make("small", "", count === 1 ? " token" : " tokens"));
    this.facts.replaceChildren(...text);
    this.facts.dataset.tone = tone;
  }

  token(i) {
    const bytes = this.bytes.subarray(this.starts[i], this.starts[i + 1]);
    return { pane: this, i, id: this.ids[i], bytes, start: this.starts[i] };
  }

  /** The whole character that a token is a part of. */
  partOf(i) {
    const around = characterAround(this.bytes, this.starts[i]);
    const end = this.starts[i + 1];
    if (!around || (around.start === this.starts[i] && end >= around.start + around.size)) return null;
    return around;
  }

  /** Mark the tokens that hold any of the bytes from `start` to `end`; without them none. */
  same(start, end) {
    for (const span of this.body.querySelectorAll(".same")) span.classList.remove("same");
    if (start === undefined || !this.ids) return;
    for (let i = this.#at(start); i < this.ids.length && this.starts[i] < end; i++) this.#span(i)?.classList.add("same");
  }

  /** The token that holds a byte. */
  #at(byte) {
    let [low, high] = [0, this.ids.length];
    while (low + 1 < high) {
      const middle = (low + high) >> 1;
      if (this.starts[middle] <= byte) low = middle;
      else high = middle;
    }
    return low;
  }

  async #copied() {
    let said = "Copied";
    try {
      await navigator.clipboard.writeText(`[${Array.from(this.ids).join(", ")}]`);
    } catch {
      said = "The browser refused";
    }
    this.copy.textContent = said;
    setTimeout(() => (this.copy.textContent = "Copy ids"), 2500);
  }

  #near(entries) {
    for (const { isIntersecting, target } of entries) {
      if (isIntersecting) {
        this.#fill(target);
      } else if (target.firstChild && !target.contains(document.activeElement)) {
        target.style.minHeight = `${target.offsetHeight}px`;
        target.replaceChildren();
      }
    }
  }

  #fill(block) {
    if (block.firstChild) return;
    const b = Number(block.dataset.block);
    const parts = document.createDocumentFragment();
    let group = null; // the tokens of one character
    for (let i = this.blocks[b]; i < this.blocks[b + 1]; i++) {
      group = this.#character(i) ?? (this.#cut(i) ? group : null);
      if (group && !group.isConnected && !group.parentNode) parts.append(group);
      (group ?? parts).append(this.#token(i));
    }
    block.append(parts);
    block.style.minHeight = "";
  }

  /** Whether token i begins inside a character. */
  #cut(i) {
    const around = this.starts[i] > 0 && this.starts[i] < this.bytes.length && characterAround(this.bytes, this.starts[i]);
    return around && around.start < this.starts[i];
  }

  /** A box for the tokens of one character, if its second token is the one after token i. */
  #character(i) {
    if (this.#cut(i) || i + 1 >= this.ids.length || !this.#cut(i + 1)) return null;
    const { text } = characterAround(this.bytes, this.starts[i + 1]);
    const box = make("span", "character");
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", `one character: ${text}`);
    return box;
  }

  #token(i) {
    const { id, bytes } = this.token(i);
    const span = make("span", `t c${i % 5}`);
    if (this.different?.[i]) span.classList.add("different");
    if (i === this.active) span.classList.add("active");
    span.id = `p${this.index}-${i}`;
    span.dataset.i = i;
    span.setAttribute("role", "option");
    span.setAttribute("aria-selected", i === this.active);
    draw(span, { t: this.index, id, bytes }, { spaces: this.display !== "text", dots: document.documentElement.dataset.spaces === "true" });
    if (this.display === "text") {
      span.classList.toggle("whole", bytes.length <= UNBROKEN && span.querySelector(".bytes") !== null);
      return span;
    }
    if (this.display === "ids") span.textContent = id;
    else if (this.display === "bytes") span.textContent = toHex(bytes);
    else this.#over(span, id);
    const pair = document.createDocumentFragment();
    pair.append(span, bytes.at(-1) === 10 ? "\n" : " "); // what is copied has the tokens apart
    return pair;
  }

  /** A token over its id. */
  #over(span, id) {
    const over = make("span", "over");
    over.append(...span.childNodes);
    span.append(over, make("small", "", id));
  }

  /** Make a token the active one, bring it into view and tell. */
  activate(i, { scroll = true } = {}) {
    if (i < 0 || i >= this.ids.length) return;
    this.#span(this.active)?.classList.remove("active");
    this.#span(this.active)?.setAttribute("aria-selected", "false");
    this.active = i;
    let b = 0;
    while (this.blocks[b + 1] <= i) b++;
    this.#fill(this.body.children[b]);
    const span = this.#span(i);
    span.classList.add("active");
    span.setAttribute("aria-selected", "true");
    this.body.setAttribute("aria-activedescendant", span.id);
    if (scroll) span.scrollIntoView({ block: "nearest" });
    return span;
  }

  #span(i) {
    return document.getElementById(`p${this.index}-${i}`);
  }

  #listen() {
    const index = (event) => Number(event.target.closest?.(".t")?.dataset.i ?? -1);
    this.body.addEventListener("pointerover", (event) => {
      const i = index(event);
      if (i >= 0 && event.pointerType !== "touch") this.calls.hover(this.token(i), event.target.closest(".t"));
    });
    this.body.addEventListener("pointerout", () => this.calls.leave());
    this.body.addEventListener("blur", () => this.calls.leave());
    this.body.addEventListener("scroll", () => this.calls.leave(), { passive: true });
    this.body.addEventListener("click", (event) => {
      const i = index(event);
      if (i < 0 || String(getSelection())) return;
      this.activate(i, { scroll: false });
      this.calls.choose(this.token(i));
    });
    this.body.addEventListener("keydown", (event) => this.#key(event));
  }

  #key(event) {
    const last = (this.ids?.length ?? 0) - 1;
    const places = { ArrowRight: this.active + 1, ArrowDown: this.active + 10, ArrowLeft: this.active - 1, ArrowUp: this.active - 10, Home: 0, End: last };
    if (event.ctrlKey || event.metaKey || event.altKey || last < 0) return;
    if (event.key in places) {
      event.preventDefault();
      const span = this.activate(Math.max(0, Math.min(last, places[event.key])));
      this.calls.hover(this.token(this.active), span);
    } else if (event.key === "Enter" && this.active >= 0) {
      event.preventDefault();
      this.calls.choose(this.token(this.active));
    } else if (event.key === "Escape") {
      this.calls.leave();
    }
  }
}

/** The first token of each block, and how many tokens there are. */
function blocks(starts, bytes) {
  const firsts = [0];
  const last = starts.length - 1;
  for (let i = 0; i < last; i++) {
    const size = i + 1 - firsts.at(-1);
    const line = bytes[starts[i + 1] - 1] === 10;
    if (i + 1 < last && (size >= LARGE || (line && size >= SMALL))) firsts.push(i + 1);
  }
  if (last > 0) firsts.push(last);
  return firsts;
}

export function make(tag, className = "", text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}
