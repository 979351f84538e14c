// Ids that are typed become text.

import * as api from "./api.js";

const at = (id) => document.getElementById(id);

/** Call `put` with the text of ids, and `first` for the tokenizer that they are of. */
export function start(put, first, say) {
  at("from-ids").addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const { text, exact } = await api.decode(first(), at("typed-ids").value);
      put(text);
      say(exact ? "" : "Encoding this text gives other ids than those that were typed.");
    } catch (error) {
      say(error.message);
    }
  });
}
