// The field for the text. Browsers are slow with large texts in a field that can be edited, so a large
// one is kept beside it, and the field shows its beginning.

const MOST_CHARACTERS = 50_000;
const MOST_LINES = 3000;
const SHOWN = 2000; // characters of a large text in the field
const number = new Intl.NumberFormat("en");
const field = document.getElementById("text");
const note = document.getElementById("large");
let large = null;
let changed = () => {};

export const text = () => large ?? field.value;

export function start(onChange) {
  changed = onChange;
  field.addEventListener("input", () => (isLarge(field.value) ? put(field.value) : changed()));
  field.addEventListener("paste", (event) => pasted(event, event.clipboardData.getData("text/plain")));
  field.addEventListener("dragover", (event) => event.preventDefault());
  field.addEventListener("drop", async (event) => {
    const [file] = event.dataTransfer.files;
    if (!file) return pasted(event, event.dataTransfer.getData("text/plain"));
    event.preventDefault();
    put(await file.text());
  });
  document.getElementById("anew").addEventListener("click", () => (put(""), field.focus()));
}

/** Take another text. */
export function put(value) {
  large = isLarge(value) ? value : null;
  field.readOnly = large !== null;
  note.hidden = large === null;
  field.value = large === null ? value : `${value.slice(0, SHOWN)} …`;
  if (large !== null) note.firstElementChild.textContent = `A text of ${number.format(value.length)} characters: here is its beginning, below are all its tokens.`;
  changed();
}

/** A paste that makes the text large never reaches the field. */
function pasted(event, added) {
  const { value, selectionStart, selectionEnd } = field;
  const whole = large === null ? value.slice(0, selectionStart) + added + value.slice(selectionEnd) : added;
  if (large === null && !isLarge(whole)) return;
  event.preventDefault();
  put(whole);
}

function isLarge(value) {
  if (value.length > MOST_CHARACTERS) return true;
  let lines = 0;
  for (let at = value.indexOf("\n"); at >= 0; at = value.indexOf("\n", at + 1)) if (++lines > MOST_LINES) return true;
  return false;
}
