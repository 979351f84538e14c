// The npm package in node: `node npm.mjs PACKAGE CASES` compares with what Python wrote to CASES.

import { readFileSync } from "node:fs";
import { deepStrictEqual as equal, ok, throws } from "node:assert";
import { pathToFileURL } from "node:url";

const [, , folder, file] = process.argv;
const { Tokenizer, View } = await import(pathToFileURL(`${folder}/node.js`));
const cases = JSON.parse(readFileSync(file));
const bytes = (name) => readFileSync(name);

const loaded = [
  Tokenizer.fromBytes(bytes(cases.native)),
  Tokenizer.fromTokenizerJson(bytes(cases.json)),
  Tokenizer.fromRanks(bytes(cases.ranks), cases.pattern, cases.special),
];
for (const tokenizer of loaded) {
  equal(tokenizer.fingerprint, cases.fingerprint);
  equal(tokenizer.specialTokens, cases.special);
  equal(tokenizer.vocabSize, cases.size);
  equal(tokenizer.lossless, true);
  for (const { text, ids, special, offsets } of cases.texts) {
    equal(Array.from(tokenizer.encode(text)), ids);
    equal(Array.from(tokenizer.encode(text, { special: "all", prepend: 5 })), [5, ...special]);
    equal(tokenizer.count(text), ids.length);
    equal(tokenizer.decode(ids), text);
    const found = tokenizer.encodeWithOffsets(text);
    equal([Array.from(found.ids), Array.from(found.offsets)], [ids, offsets]);
    const decoding = tokenizer.decodeStream();
    equal(ids.map((id) => decoding.push(id)).join("") + decoding.flush(), text);
    const encoding = tokenizer.encodeStream();
    const pieces = Array.from(text, (piece) => Array.from(encoding.push(piece)));
    equal([...pieces.flat(), ...encoding.flush()], ids);
  }
}

const [tokenizer] = loaded;
equal(tokenizer.encode("a\ud800b"), tokenizer.encode("a\ufffdb"));
equal(Tokenizer.fromBytes(tokenizer.toBytes()).fingerprint, cases.fingerprint);
equal(Tokenizer.fromTokenizerJson(new TextEncoder().encode(tokenizer.toTokenizerJson())).fingerprint, cases.fingerprint);
equal(tokenizer.tokenId(tokenizer.tokenBytes(300)), 300);
equal(tokenizer.tokenId(new Uint8Array([1, 2, 3, 4, 5])), undefined);

const around = Tokenizer.fromTokenizerJson(bytes(cases.around.file));
const [text, ...ids] = [cases.around.text, ...cases.around.ids];
equal(Array.from(around.encode(text, { addSpecialTokens: true })), ids);
equal(Array.from(around.encode(text, { addSpecialTokens: true, prepend: 7, append: 8 })), [7, ...ids, 8]);
equal(around.count(text, { addSpecialTokens: true }), ids.length);
equal(Array.from(around.encode(text, { addSpecialTokens: false })), Array.from(around.encode(text)));
equal(Array.from(tokenizer.encode(text, { addSpecialTokens: true })), Array.from(tokenizer.encode(text)));

const { texts, size, fingerprint, specialTokens, pattern } = cases.trained;
equal(Tokenizer.train(texts, size, { specialTokens, pattern }).fingerprint, fingerprint);

// A pattern that only the regex engine can split reads the clock, which a browser has elsewhere.
const slow = Tokenizer.train(["aaa bbb"], 258, { pattern: "(?<=a)b|.+?(?=c)|\\s+|." });
ok(slow.count("aaabbbccc".repeat(2000)) > 0);

for (const [work, reason] of [
  [() => Tokenizer.fromBytes(new Uint8Array(9)), /BYTEPAIR/],
  [() => Tokenizer.fromTokenizerJson(new Uint8Array(9)), /JSON|json|UTF-8|line/],
  [() => Tokenizer.fromRanks(bytes(cases.ranks), "gpt5"), /gpt5/],
  [() => Tokenizer.train(["a"], 10), /256/],
  [() => tokenizer.encode("a", { specials: "all" }), /no option specials/],
  [() => tokenizer.encode("a", { special: "some" }), /special must be/],
  [() => tokenizer.encode("a", { prepend: "<none>" }), /<none>/],
  [() => tokenizer.encode("a", { append: 1.5 }), /append must be/],
  [() => tokenizer.encode("a", { addSpecialTokens: 1 }), /addSpecialTokens must be/],
  [() => tokenizer.decode([1 << 30]), /is not in the vocabulary/],
  [() => tokenizer.tokenBytes(1 << 30), /is not in the vocabulary/],
  [() => new View("["), /not JSON/],
]) throws(work, reason);

// A conversation: texts never become special tokens, and the mask says what is trained on.
const { segments, ids: chatIds, mask } = cases.chat;
const rendered = tokenizer.render(segments);
equal([Array.from(rendered.ids), Array.from(rendered.mask)], [chatIds, mask]);
equal(tokenizer.render([]).ids.length, 0);
for (const [value, reason] of [
  ["a", /segments must be/],
  [["a"], /segments\[0\] must be an object with either text or token/],
  [[{ text: "a", token: 1 }], /either text or token/],
  [[{ text: 5 }], /segments\[0\].text must be a string/],
  [[{ token: 1.5 }], /segments\[0\].token must be/],
  [[{ token: 1 << 30 }], /is not in the vocabulary/],
  [[{ token: "<none>" }], /<none>/],
  [[{ text: "a", trained: 1 }], /trained must be/],
]) throws(() => tokenizer.render(value), reason);

// A stop string ends a stream, across tokens.
for (const [options, expected] of [[{ stop: ["User:", "\n\n"] }, "one"], [{ stop: "\n\nUser:", keepStop: true }, "one\n\nUser:"]]) {
  const stream = tokenizer.decodeStream(options);
  const ids = Array.from(tokenizer.encode("one\n\nUser: two"));
  equal(ids.map((id) => stream.push(id)).join("") + stream.flush(), expected);
  equal(stream.stopped, [options.stop].flat().at(-1));
}
equal(tokenizer.decodeStream().stopped, undefined);
throws(() => tokenizer.decodeStream({ stop: "" }), /stop string/);

// Every argument of every call: a wrong type is a TypeError, a wrong number a RangeError, and both name it.
const decoding = tokenizer.decodeStream();
const encoding = tokenizer.encodeStream();
const pages = new View("{}");
const calls = {
  file: [(file) => Tokenizer.fromBytes(file), (file) => Tokenizer.fromTokenizerJson(file), (file) => Tokenizer.fromRanks(file, "gpt4")],
  pattern: [(one) => Tokenizer.fromRanks(bytes(cases.ranks), one), (pattern) => pattern == null || Tokenizer.train(["a"], 257, { pattern })],
  specialTokens: [(one) => one == null || Tokenizer.fromRanks(bytes(cases.ranks), "gpt4", one), (specialTokens) => specialTokens == null || Tokenizer.train(["a"], 257, { specialTokens })],
  texts: [(texts) => Tokenizer.train(texts, 257)],
  vocabSize: [(size) => Tokenizer.train(["a"], size)],
  options: [(one) => one == null || tokenizer.encode("a", one), (one) => one == null || tokenizer.count("a", one), (one) => one == null || tokenizer.encodeWithOffsets("a", one), (one) => one == null || Tokenizer.train(["a"], 257, one)],
  text: [(text) => tokenizer.encode(text), (text) => tokenizer.count(text), (text) => tokenizer.encodeWithOffsets(text), (text) => encoding.push(text)],
  stop: [(stop) => stop == null || tokenizer.decodeStream({ stop })],
  keepStop: [(keepStop) => keepStop == null || tokenizer.decodeStream({ keepStop })],
  special: [(special) => special == null || tokenizer.encode("a", { special })],
  prepend: [(prepend) => prepend == null || tokenizer.encode("a", { prepend })],
  append: [(append) => append == null || tokenizer.encode("a", { append })],
  addSpecialTokens: [(one) => one == null || tokenizer.encode("a", { addSpecialTokens: one })],
  segments: [(segments) => tokenizer.render(segments)],
  ids: [(ids) => tokenizer.decode(ids), (ids) => tokenizer.decodeBytes(ids)],
  id: [(id) => tokenizer.tokenBytes(id), (id) => decoding.push(id)],
  bytes: [(one) => tokenizer.tokenId(one)],
  material: [(one) => new View(one)],
  name: [(one) => pages.add(one, tokenizer)],
  question: [(one) => pages.ask(one, new Uint8Array())],
  body: [(one) => pages.ask("{}", one)],
};
for (const [name, uses] of Object.entries(calls)) {
  for (const use of uses) {
    for (const value of [5, 1.5, -1, NaN, 1e400, "abc", true, [5.5], [{}], {}, undefined, null, Symbol("a"), () => 1, 10n]) {
      try {
        use(value);
      } catch (thrown) {
        ok(thrown instanceof Error && !(thrown instanceof WebAssembly.RuntimeError), `${name}: ${thrown}`);
        const typed = thrown instanceof TypeError || thrown instanceof RangeError;
        ok(!typed || thrown.message.startsWith(name) || /no option/.test(thrown.message), thrown.message);
      }
    }
  }
}
for (const [work, kind, name] of [
  [() => tokenizer.encode(5), TypeError, "text"],
  [() => tokenizer.encode(), TypeError, "text"],
  [() => tokenizer.decode("abc"), TypeError, "ids"],
  [() => tokenizer.decode(["1"]), TypeError, "ids[0]"],
  [() => tokenizer.decode([1, -1]), RangeError, "ids[1]"],
  [() => decoding.push(1.5), RangeError, "id"],
  [() => Tokenizer.train("abc", 300), TypeError, "texts"],
  [() => Tokenizer.train(["a", 5], 300), TypeError, "texts[1]"],
  [() => Tokenizer.train(["a"], -1), RangeError, "vocabSize"],
  [() => Tokenizer.fromBytes("abc"), TypeError, "file"],
  [() => Tokenizer.fromBytes(new Uint8Array(3e9)), RangeError, "file has 3000000000 elements"],
  [() => tokenizer.encode("a", "all"), TypeError, "options"],
]) throws(work, (thrown) => thrown instanceof kind && thrown.message.startsWith(name));
equal(tokenizer.decode([104, 105]), tokenizer.decode(new Uint32Array([104, 105])));
pages.free();

const table = JSON.parse(bytes(cases.table));
const encoded = (value) => new TextEncoder().encode(JSON.stringify(value));
for (const { document, ids, error } of table) {
  if (error) {
    throws(() => Tokenizer.fromTokenizerJson(encoded(document)), (thrown) => error.every((part) => thrown.message.includes(part)));
    continue;
  }
  const read = Tokenizer.fromTokenizerJson(encoded(document));
  for (const [text, expected] of ids) {
    equal(Array.from(read.encode(text, { special: "all" })), expected);
    const stream = read.decodeStream();
    equal(expected.map((id) => stream.push(id)).join("") + stream.flush(), read.decode(expected));
  }
}

const view = new View("{}");
view.add("one", tokenizer);
const { tokenizers } = JSON.parse(view.ask('{"what": "about"}', new Uint8Array()));
equal(tokenizers.map((one) => one.name), ["one"]);
ok(view.ask('{"what": "compare", "shown": "0"}', new TextEncoder().encode("a")) instanceof Uint8Array);
console.log("equal");
