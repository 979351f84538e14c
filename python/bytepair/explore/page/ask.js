// Questions to the server that the page came from. Where there is no server, another file stands in
// the place of this one.

// What other pages have: samples, and what is fetched from a hub.
export const fetches = false;
export const shelf = [];
export const fetched = null;

/** Ask a question, with a text or bytes; the answer is a value of JSON or a buffer of numbers. */
export async function ask({ what, ...members }, body, signal) {
  const query = new URLSearchParams(Object.entries(members).filter(([, value]) => value !== undefined));
  const how = body === undefined ? {} : { method: "POST", body };
  const response = await fetch(`api/${what}?${query}`, { ...how, signal });
  if (!response.ok) {
    const { error } = await response.json().catch(() => ({ error: response.statusText }));
    throw new Error(error);
  }
  const isJson = response.headers.get("Content-Type").startsWith("application/json");
  return isJson ? response.json() : response.arrayBuffer();
}
