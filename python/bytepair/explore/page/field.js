// The field for the text. Browsers are slow with large texts in a field that can be edited, and turn
// carriage returns into newlines there; such a text is kept beside it, and the field shows its beginning.

const MOST_CHARACTERS = 50_000;
const MOST_LINES = 3000;
const MOST_BYTES = 64 * 2 ** 20; // the server takes no more
const SHOWN = 2000; // characters of a text that is kept
const number = new Intl.NumberFormat("en");
const field = document.getElementById("text");
const note = document.getElementById("kept");
const told = document.getElementById("refused");
let kept = null;
let changed = () => {};

export const text = () => kept ?? field.value;

export function start(onChange) {
  changed = onChange;
  field.addEventListener("input", () => {
    told.hidden = true;
    if (isLarge(field.value)) put(field.value);
    else changed();
  });
  field.addEventListener("paste", (event) => pasted(event, event.clipboardData.getData("text/plain")));
  field.addEventListener("dragover", (event) => event.preventDefault());
  field.addEventListener("drop", async (event) => {
    const [file] = event.dataTransfer.files;
    if (!file) return pasted(event, event.dataTransfer.getData("text/plain"));
    event.preventDefault();
    await take(file);
  });
  document.getElementById("anew").addEventListener("click", () => (put(""), field.focus()));
}

/** Take a file byte for byte, or say why not. */
async function take(file) {
  const refuse = (why) => {
    told.textContent = `${file.name} is not shown: ${why}`;
    told.hidden = false;
  };
  if (file.size > MOST_BYTES) return refuse(`it has ${number.format(file.size)} bytes, and at most ${number.format(MOST_BYTES)} are.`);
  const bytes = new Uint8Array(await file.arrayBuffer());
  try {
    put(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch {
    refuse("it is not text in UTF-8. Convert it, with iconv for instance.");
  }
}

/** Take another text. */
export function put(value) {
  const large = isLarge(value);
  kept = large || value.includes("\r") ? value : null;
  told.hidden = true;
  field.readOnly = kept !== null;
  note.hidden = kept === null;
  const beginning = value.length > SHOWN ? `${value.slice(0, SHOWN)} …` : value;
  field.value = kept === null ? value : beginning;
  if (kept !== null) {
    const size = `${number.format(value.length)} characters`;
    const why = large ? `A text of ${size}: here is its beginning, below are all its tokens.` : `A text of ${size} with carriage returns, which a field cannot hold: it is kept as it is, and cannot be edited here.`;
    note.firstElementChild.textContent = why;
  }
  changed();
}

/** A paste that makes the text large never reaches the field; its lines end as they would there. */
function pasted(event, added) {
  const { value, selectionStart, selectionEnd } = field;
  const lines = added.replace(/\r\n?/g, "\n");
  const whole = kept === null ? value.slice(0, selectionStart) + lines + value.slice(selectionEnd) : lines;
  if (kept === null && !isLarge(whole)) return;
  event.preventDefault();
  put(whole);
}

function isLarge(value) {
  if (value.length > MOST_CHARACTERS) return true;
  let lines = 0;
  for (let at = value.indexOf("\n"); at >= 0; at = value.indexOf("\n", at + 1)) if (++lines > MOST_LINES) return true;
  return false;
}
