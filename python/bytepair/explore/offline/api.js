// What the page asks, answered from the data that stand in the page itself: no server is asked.

import { fromHex } from "./bytes.js";
import { splitsFrom } from "./splits.js";

const data = JSON.parse(document.getElementById("data").textContent);
const byHex = data.tokens.map((all) => new Map(all.filter((one) => !one.special).map((one) => [one.hex, one])));
const byId = data.tokens.map((all) => new Map(all.filter((one) => one.id !== null).map((one) => [one.id, one])));

export const about = data.about;
export const text = data.text;
export const splits = splitsFrom(fromHex(data.compared).buffer);

export const languages = async (t) => data.languages[t];

/** One token and how it was built; what only a server knows, its neighbours, is left out. */
export async function token(t, id) {
  const one = byId[t].get(id);
  if (!one) throw new Error("This token is not in the page, which holds one text.");
  return { ...one, tree: one.special ? null : tree(t, one.hex), near: [], alike: [], children: [], children_count: 0 };
}

function tree(t, hex) {
  const { id, parts } = byHex[t].get(hex);
  return parts ? { hex, id, parts: parts.map((part) => tree(t, part)) } : { hex, id };
}
