// In a browser: the module is fetched from beside this file.

import init from "./bytepair.js";

await init();

export { DecodeStream, EncodeStream, Tokenizer, View } from "./bytepair.js";
