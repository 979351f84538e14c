export { DecodeStream, EncodeStream, Tokenizer, View } from "./bytepair.js";
export type { EncodeOptions, Offsets, Special, TrainOptions } from "./bytepair.js";
