export { DecodeStream, EncodeStream, Tokenizer, View } from "./bytepair.js";
export type { DecodeStreamOptions, EncodeOptions, Offsets, Special, TrainOptions } from "./bytepair.js";
