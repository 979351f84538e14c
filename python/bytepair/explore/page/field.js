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
let taken = () => {};
let tokenizers = null;

export const text = () => kept ?? field.value;

/** Call `onChange` when there is another text, and `onFile` when it came as a file; files that hold
 * tokenizers are for `others`. */
export function start(onChange, onFile, others) {
  changed = onChange;
  taken = onFile;
  tokenizers = others;
  field.addEventListener("input", () => {
    told.hidden = true;
    if (isLarge(field.value)) put(field.value);
    else changed();
  });
  field.addEventListener("paste", (event) => pasted(event, event.clipboardData.getData("text/plain")));
  field.addEventListener("drop", (event) => {
    if (!event.dataTransfer.files.length) pasted(event, event.dataTransfer.getData("text/plain"));
  });
  dropped();
  const chosen = document.getElementById("file");
  chosen.addEventListener("change", async () => {
    await takeOne(chosen.files);
    chosen.value = ""; // so that the same file can be chosen again
  });
  document.getElementById("anew").addEventListener("click", () => (put(""), field.focus()));
}

/** Files may be dropped anywhere; a browser would leave the page for one that falls beside the field. */
function dropped() {
  const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
  const mark = (on) => (document.documentElement.dataset.dropping = on);
  addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    mark(true);
  });
  addEventListener("dragleave", (event) => event.relatedTarget || mark(false));
  addEventListener("drop", async (event) => {
    mark(false);
    if (!hasFiles(event)) return;
    event.preventDefault();
    const files = [...event.dataTransfer.files];
    for (const file of files.filter(tokenizers.isTokenizer)) await tokenizers.addFile(file);
    await takeOne(files.filter((file) => !tokenizers.isTokenizer(file)));
  });
}

/** Take the only file. */
async function takeOne(files) {
  if (!files.length) return;
  taken();
  if (files.length > 1) refuse(`${files.length} files are not shown: drop one at a time.`);
  else await take(files[0]);
}

function refuse(why) {
  told.textContent = why;
  told.hidden = false;
}

/** Take a file byte for byte, or say why not. */
async function take(file) {
  const not = `${file.name} is not shown`;
  if (file.size > MOST_BYTES) return refuse(`${not}: it has ${number.format(file.size)} bytes, and at most ${number.format(MOST_BYTES)} are.`);
  const bytes = new Uint8Array(await file.arrayBuffer());
  try {
    put(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch {
    refuse(`${not}: it is not text in UTF-8. Convert it, with iconv for instance.`);
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
