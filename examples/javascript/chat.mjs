// A server's turn of a chat: the conversation is rendered to ids, counted, cut to a context, and the
// answer is streamed until a stop string.
//
//     npm install target/wasm/bytepair
//     node chat.mjs tokenizer.json "Hello" "Hi, what is it?" "Say something"
//
// The stand-in for a model says the last message again, then goes on as if the user spoke.

import { readFileSync } from "node:fs";
import { Tokenizer } from "bytepair";

const CONTEXT = 64;
const [, , file, ...said] = process.argv;
if (said.length % 2 === 0) {
  console.error("usage: node chat.mjs TOKENIZER.JSON MESSAGE [ANSWER MESSAGE]...");
  process.exit(2);
}
const tokenizer = Tokenizer.fromTokenizerJson(readFileSync(file));
const messages = said.map((content, at) => ({ role: ["user", "assistant"][at % 2], content }));
const token = (name, other) => ({ token: name in tokenizer.specialTokens ? name : other });
const [start, end] = [token("<|im_start|>", "<|user_start|>"), token("<|im_end|>", "<|user_end|>")];

/** The ids of messages in ChatML, and of the start of an answer. No content becomes a special token. */
function render(some) {
  const parts = some.flatMap(({ role, content }) => [start, { text: `${role}\n` }, { text: content }, end]);
  return tokenizer.render([...parts, start, { text: "assistant\n" }]).ids;
}

/** The ids of a model, one after the other. */
function* model(prompt) {
  yield* tokenizer.encode(`${said.at(-1)}\nuser\nWhat else?`);
}

let first = 0;
let prompt = render(messages);
while (prompt.length > CONTEXT && first + 2 < messages.length) {
  first += 2;
  prompt = render(messages.slice(first));
}
console.error(`${prompt.length} ids, without the first ${first} messages`);

const stream = tokenizer.decodeStream({ stop: ["\nuser", "<|im_end|>"] });
for (const id of model(prompt)) {
  process.stdout.write(stream.push(id));
  if (stream.stopped !== undefined) break;
}
process.stdout.write(stream.flush());
