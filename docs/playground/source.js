// What the module needs, from beside this file. Only a repository that somebody names is fetched from
// elsewhere: from the hub of Hugging Face, by this browser.

const HUB = "https://huggingface.co";
const beside = (name) => new URL(name, import.meta.url);
const list = await (await get(beside("shelf.json"))).json();

export const fetches = true;
export const shelf = list.map(({ name, file }) => ({ name, load: () => bytes(beside(file)) }));

/** The bytes of the tokenizer.json of a repository. */
export async function fetched(repository) {
  if (!/^[\w.-]+(\/[\w.-]+)?$/.test(repository)) throw new Error("a repository is named OWNER/NAME");
  return bytes(`${HUB}/${repository}/resolve/main/tokenizer.json`);
}

/** The script of the thread, the module, the material and the tokenizers that are there at first. */
export async function parts() {
  const first = list.filter((one) => one.first);
  const [wasm, material, ...files] = await Promise.all(["bytepair_bg.wasm", "material.json", ...first.map((one) => one.file)].map((name) => bytes(beside(name))));
  return {
    wasm,
    material: new TextDecoder().decode(material),
    script: beside("worker.js"),
    tokenizers: first.map(({ name }, n) => ({ name, bytes: files[n] })),
  };
}

async function get(address) {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${address} has the status ${response.status}`);
  return response;
}

const bytes = async (address) => new Uint8Array(await (await get(address)).arrayBuffer());
