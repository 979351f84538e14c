// Ids that are typed become text.

import * as api from "./api.js";

const at = (id) => document.getElementById(id);

/** Call `put` with the text of the ids that are typed. */
export function start(put) {
  at("typed-ids").addEventListener("input", () => say(""));
  at("from-ids").addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const { text, exact } = await api.decode(at("ids-of").value, at("typed-ids").value);
      put(text);
      say(exact ? "" : "Encoding this text gives other ids than those that were typed.");
    } catch (error) {
      say(error.message, true);
    }
  });
}

/** Say something beside the field, in red if it is an error. */
function say(text, wrong = false) {
  at("ids-said").textContent = text;
  at("ids-said").hidden = !text;
  at("ids-said").className = wrong ? "wrong" : "faint";
  at("typed-ids").ariaInvalid = wrong;
}
