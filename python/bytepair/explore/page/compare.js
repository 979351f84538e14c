// Splits of one text in, panes side by side out: how many tokens, what they cost, and what differs.

import { priced } from "./cost.js";
import { make } from "./panes.js";

const number = new Intl.NumberFormat("en");

/** Show each split of `bytes` in its pane. */
export function compare({ bytes, splits, visible }, display) {
  visible.forEach((pane, n) => {
    pane.show(splits[n], bytes, display);
    tell({ bytes, splits, visible }, n);
  });
}

/** Say again what the tokens cost, without drawing them again. */
export function tellAll(current) {
  for (const n of current.visible.keys()) tell(current, n);
}

/** Say of one pane how many tokens there are, against the first, and what they cost. */
function tell({ bytes, splits, visible }, n) {
  const pane = visible[n];
  const count = splits[n].ids.length;
  const facts = [`${count ? (bytes.length / count).toFixed(2) : "0"} bytes per token`];
  let tone = "";
  if (n && splits[0].ids.length) {
    const more = count / splits[0].ids.length - 1;
    tone = more > 0 ? "more" : more < 0 ? "fewer" : "";
    const said = more === 0 ? "as many as" : `${Math.abs(100 * more).toFixed(1)} % ${more > 0 ? "more" : "fewer"} than`;
    facts.push(", ", make("b", "", said), ` ${visible[0].name}`);
  }
  const money = priced(pane.index, count);
  if (money) facts.push(`, costs ${money}`);
  pane.say(facts, count, tone);
}

/** The counts of all panes in words. */
export function inWords({ splits, visible }) {
  return visible.map((pane, n) => `${number.format(splits[n].ids.length)} tokens under ${pane.name}`).join(", ");
}
