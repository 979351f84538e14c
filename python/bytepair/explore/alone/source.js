// What the module needs, from the elements of this page: it is all in the page, compressed.

export const fetches = false;
export const shelf = [];
export const fetched = null;

/** The script of the thread, the module, the material and the tokenizers. */
export async function parts() {
  const names = JSON.parse(document.getElementById("tokenizer-names").textContent);
  const [wasm, material, script, ...files] = await Promise.all(["wasm", "material", "worker", ...names.map((_, n) => `tokenizer-${n}`)].map(unpacked));
  const decoder = new TextDecoder();
  return {
    wasm,
    material: decoder.decode(material),
    script: URL.createObjectURL(new Blob([script], { type: "text/javascript" })),
    tokenizers: names.map((name, n) => ({ name, bytes: files[n] })),
  };
}

/** The bytes of an element: deflated, in base64. */
async function unpacked(id) {
  const binary = atob(document.getElementById(id).textContent);
  const bytes = Uint8Array.from(binary, (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
