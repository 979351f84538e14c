// The state of the page in its address, behind the #, which browsers keep to themselves.

const LONGEST = 20000; // characters of text that go into a link

/** Make an address part of a state; null if the text is too long to be in it. */
export async function packed(state) {
  const text = JSON.stringify(state);
  if (text.length > LONGEST) return null;
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** The state that an address holds; an empty one if it holds none, or a damaged one. */
export async function unpacked(hash) {
  try {
    const binary = atob(hash.replace(/^#/, "").replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    const state = JSON.parse(await new Response(stream).text());
    return state && typeof state === "object" ? state : {};
  } catch {
    return {};
  }
}
