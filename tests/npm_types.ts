// The npm package as TypeScript sees it: `test_npm.py` compiles this file with --strict. Where an error
// is expected, the compiler fails if there is none.

import { DecodeStream, EncodeStream, Tokenizer, View } from "bytepair";
import type { EncodeOptions, Offsets, Rendered, Segment, Special, TrainOptions } from "bytepair";

const file: Uint8Array = new Uint8Array();
const options: TrainOptions = { pattern: "gpt4", specialTokens: ["<|end|>"] };
const tokenizers: Tokenizer[] = [
  Tokenizer.fromBytes(file),
  Tokenizer.fromTokenizerJson(file),
  Tokenizer.fromRanks(file, "gpt2"),
  Tokenizer.fromRanks(file, "gpt2", { "<|end|>": 50256 }),
  Tokenizer.train(["low lower"], 300),
  Tokenizer.train(["low lower"], 300, options),
];
const [tokenizer] = tokenizers as [Tokenizer];
const special: Special[] = ["text", "all", "none", "error", ["<|end|>"]];
const around: EncodeOptions = { special: special[0], prepend: "<|end|>", append: 5, addSpecialTokens: true };
const ids: Uint32Array = tokenizer.encode("text", around);
const plain: Uint32Array = tokenizer.encode("text");
const found: Offsets = tokenizer.encodeWithOffsets("text", { special: "all" });
const places: Uint32Array = found.offsets;
const parts: Segment[] = [{ token: "<|bos|>" }, { text: "Hi", trained: true }, { token: 5 }];
const { mask }: Rendered = tokenizer.render(parts);
const masked: Uint8Array = mask;
const count: number = tokenizer.count("text") + tokenizer.vocabSize;
const text: string = tokenizer.decode(ids) + tokenizer.toTokenizerJson() + tokenizer.fingerprint;
const bytes: Uint8Array[] = [tokenizer.decodeBytes(plain), tokenizer.tokenBytes(3), tokenizer.toBytes()];
const id: number | undefined = tokenizer.tokenId(file);
const pattern: string | undefined = tokenizer.pattern;
const rule: string = tokenizer.mergeRule;
const lossless: boolean = tokenizer.lossless;
const names: Record<string, number> = tokenizer.specialTokens;
const decoding: DecodeStream = tokenizer.decodeStream();
const piece: string = decoding.push(3) + decoding.flush();
const encoding: EncodeStream = tokenizer.encodeStream();
const rest: Uint32Array[] = [encoding.push("te"), encoding.flush()];
const view = new View("{}");
const number: number = view.add("mine", tokenizer);
const answer: string | Uint8Array = view.ask('{"what": "about"}', file);
tokenizer.free();

// @ts-expect-error: there is no such option
tokenizer.encode("text", { specials: "all" });
// @ts-expect-error: special is not any string
tokenizer.encode("text", { special: "some" });
// @ts-expect-error: addSpecialTokens is true or false
tokenizer.encode("text", { addSpecialTokens: 1 });
// @ts-expect-error: a text is a string
tokenizer.encode(5);
// @ts-expect-error: there is a file to load
new Tokenizer();

export { answer, bytes, count, id, lossless, masked, names, number, pattern, piece, places, rest, rule, text };
