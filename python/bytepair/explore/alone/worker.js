// The thread of the compiled module. What comes before this file is its JavaScript, which defines
// `wasm_bindgen`.

let view = null;
let failure = "";

self.onmessage = ({ data }) => {
  if (data.wasm) return begin(data);
  try {
    if (!view) throw new Error(failure);
    const answer = view.ask(data.question, data.body ?? new Uint8Array());
    self.postMessage({ n: data.n, answer }, typeof answer === "string" ? [] : [answer.buffer]);
  } catch (error) {
    self.postMessage({ n: data.n, error: error.message });
  }
};

function begin({ wasm, material, tokenizers }) {
  try {
    wasm_bindgen.initSync({ module: wasm });
    view = new wasm_bindgen.View(material);
    for (const { name, bytes } of tokenizers) view.ask(JSON.stringify({ what: "add", name }), bytes);
  } catch (error) {
    failure = `The module does not run here: ${error.message}`;
    view = null;
  }
}
