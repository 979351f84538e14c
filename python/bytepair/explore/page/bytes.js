// A token in, something to read out: the one place on this page that says how a token is drawn, as
// bytepair/view.py says it elsewhere. What is no whole character is shown byte by byte, characters that
// cannot be seen as their number, and a special token never as text that spells it.

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const NAMES = { 9: "tab", 10: "newline", 13: "return", 32: "space", 160: "no-break space" };
let special = [];
let split = null; // at characters that are marked, and at a space at either end
let splitAll = null; // at every space, too

/** Take from the server which characters are marked, and which ids of each tokenizer are special. */
export function learn({ marked, tokenizers }) {
  const ranges = marked.map((ends) => ends.map((code) => `\\u{${code.toString(16)}}`).join("-"));
  split = new RegExp(`([\\x00-\\x1f\\x7f${ranges.join("")}]|^ | $)`, "u");
  splitAll = new RegExp(`([\\x00-\\x20\\x7f${ranges.join("")}])`, "u");
  special = [];
  for (const one of tokenizers) special[one.t] = new Set(Object.values(one.special));
}

export const isSpecial = (t, id) => special[t].has(id);

export function fromHex(hex) {
  const bytes = new Uint8Array(hex.length / 2);
  for (let i = 0; i < bytes.length; i++) bytes[i] = parseInt(hex.slice(2 * i, 2 * i + 2), 16);
  return bytes;
}

export function toHex(bytes, between = " ") {
  return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join(between);
}

/** How many bytes the character has that begins with this byte; 0 if none does. */
function width(byte) {
  if (byte < 0x80) return 1;
  if (byte >= 0xc2 && byte < 0xe0) return 2;
  if (byte >= 0xe0 && byte < 0xf0) return 3;
  return byte >= 0xf0 && byte < 0xf5 ? 4 : 0;
}

function decoded(bytes) {
  try {
    return strict.decode(bytes);
  } catch {
    return null;
  }
}

/** Cut bytes into stretches of text, and single bytes that are no text: strings and numbers. */
export function pieces(bytes) {
  const whole = decoded(bytes);
  if (whole !== null) return whole ? [whole] : [];
  const found = [];
  for (let i = 0; i < bytes.length; ) {
    const size = width(bytes[i]);
    const text = size && i + size <= bytes.length ? decoded(bytes.subarray(i, i + size)) : null;
    if (text === null) {
      found.push(bytes[i++]);
    } else {
      if (typeof found.at(-1) === "string") found[found.length - 1] += text;
      else found.push(text);
      i += size;
    }
  }
  return found;
}

/** Draw the token `id` of tokenizer `t`: its bytes, whether it is special, and its words. */
export function draw(element, { t, id, bytes }, options = {}) {
  element.classList.toggle("special", isSpecial(t, id));
  element.setAttribute("aria-label", name(t, id, bytes));
  return fill(element, bytes, options);
}

/** A token in words. */
export function name(t, id, bytes) {
  return `${isSpecial(t, id) ? "special token " : ""}${describe(bytes)}, id ${id}`;
}

/**
 * Put bytes into an element, as text nodes and small marks, never as HTML. With `spaces` a space at
 * either end is a mark, too, and stands for itself; with `dots` every space is, over itself; with
 * `hex` every byte is shown as its number.
 */
export function fill(element, bytes, { spaces = false, dots = false, hex = false } = {}) {
  let run = null;
  for (const piece of hex ? bytes : pieces(bytes)) {
    if (typeof piece === "number") {
      if (run === null) element.append((run = make("bytes")));
      run.append(make("byte", piece.toString(16).padStart(2, "0").toUpperCase()));
      continue;
    }
    run = null;
    piece.split(dots ? splitAll : split).forEach((part, n) => {
      if (part) element.append(n % 2 && (spaces || dots || part !== " ") ? mark(part, spaces) : part);
    });
  }
  return element;
}

function make(className, text = "") {
  const element = document.createElement("span");
  element.className = className;
  element.textContent = text;
  return element;
}

/** A character that cannot be seen has a picture; in text it stays there, too, so that it is copied. */
function mark(part, alone) {
  const code = part.codePointAt(0);
  const picture = make(code < 0x80 ? "control" : "control mark");
  picture.dataset.picture = pictured(code);
  if (!alone) picture.append(make("raw", part));
  return picture;
}

function pictured(code) {
  const own = { 9: "→", 10: "↵", 32: "·", 127: "␡" }[code];
  if (own) return own;
  return code < 32 ? String.fromCodePoint(0x2400 + code) : `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
}

/** Say bytes in words, for those who listen. */
export function describe(bytes) {
  const said = (part, n) => {
    const code = part.codePointAt(0);
    return n % 2 && !(code in NAMES) ? ` ${pictured(code)} ` : part.replace(/\s/g, (c) => ` ${NAMES[c.codePointAt(0)] ?? "space"} `);
  };
  const words = pieces(bytes).map((piece) => (typeof piece === "number" ? `byte ${piece.toString(16)}` : piece.split(split).map(said).join("")));
  return words.join(" ").replace(/ +/g, " ").trim() || "nothing";
}

/** How many characters there are in UTF-8. */
export function characters(bytes) {
  let count = 0;
  for (let i = 0; i < bytes.length; i++) if ((bytes[i] & 0xc0) !== 0x80) count++;
  return count;
}

/** The character that a byte is inside of, and where it begins; null if it is whole text there. */
export function characterAround(bytes, at) {
  let start = at;
  while (start > 0 && at - start < 3 && (bytes[start] & 0xc0) === 0x80) start--;
  const size = width(bytes[start]);
  if (size < 2 || start + size <= at) return null;
  const text = decoded(bytes.subarray(start, start + size));
  return text === null ? null : { text, start, size };
}
