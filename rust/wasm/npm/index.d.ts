export { DecodeStream, EncodeStream, Tokenizer, View } from "./bytepair.js";
export type {
    DecodeStreamOptions, EncodeOptions, Offsets, Rendered, Segment, Special, TrainOptions,
} from "./bytepair.js";
