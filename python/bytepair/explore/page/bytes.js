// Bytes in, something to read out. A token is bytes and need not be text: what is no whole character
// is shown byte by byte.

const strict = new TextDecoder("utf-8", { fatal: true });
const NAMES = { 9: "tab", 10: "newline", 13: "return", 32: "space", 160: "no-break space" };

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

/** Put a token into an element, as text nodes and small marks, never as HTML. */
export function fill(element, bytes, { spaces = false } = {}) {
  for (const piece of pieces(bytes)) {
    if (typeof piece === "number") {
      const mark = document.createElement("span");
      mark.className = "byte";
      mark.textContent = piece.toString(16).padStart(2, "0").toUpperCase();
      element.append(mark);
      continue;
    }
    for (const part of piece.split(/([\x00-\x1f\x7f]|^ | $)/)) {
      if (part) element.append(spaces || part !== " " ? mark(part, spaces) : part);
    }
  }
  return element;
}

/** Control characters have pictures; a newline keeps its effect, too. */
function mark(part, spaces) {
  const code = part.codePointAt(0);
  if (part.length !== 1 || (code > 0x20 && code !== 0x7f) || (part === " " && !spaces)) return part;
  const picture = document.createElement("span");
  picture.className = "control";
  picture.dataset.picture = { 9: "→", 10: "↵", 32: "·" }[code] ?? String.fromCodePoint(code === 0x7f ? 0x2421 : 0x2400 + code);
  if (part === "\n" && !spaces) picture.textContent = "\n";
  return picture;
}

/** Say a token in words, for those who listen. */
export function describe(bytes) {
  const said = pieces(bytes).map((piece) => {
    if (typeof piece === "number") return `byte ${piece.toString(16)}`;
    return piece.replace(/[\s\u00a0]/g, (c) => ` ${NAMES[c.codePointAt(0)] ?? "space"} `);
  });
  return said.join(" ").trim() || "nothing";
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
