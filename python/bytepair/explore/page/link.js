// The state of the page in its address, behind the #, which browsers keep to themselves.

export const LONGEST = 16_000; // characters behind the #: browsers, chats and mail carry so many
const LONGEST_STATE = 1_000_000; // more is not even compressed

/** Make an address part of a state; null if it would be too long. */
export async function packed(state) {
  const text = JSON.stringify(state);
  if (text.length > LONGEST_STATE) return null;
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  if (bytes.length > LONGEST) return null;
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  const hash = btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  return hash.length > LONGEST ? null : hash;
}

/**
 * The state that an address holds; an empty one if it holds none, null if it is damaged or too long.
 * The limit bounds what is unpacked, too: deflate makes at most a thousand bytes of one.
 */
export async function unpacked(address) {
  const hash = address.replace(/^#/, "");
  if (!hash) return {};
  if (hash.length > LONGEST) return null;
  try {
    const binary = atob(hash.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    const state = JSON.parse(await new Response(stream).text());
    return state && typeof state === "object" ? state : null;
  } catch {
    return null;
  }
}
