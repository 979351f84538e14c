// In node: the module is read from the package.

import { readFileSync } from "node:fs";
import { initSync } from "./bytepair.js";

initSync({ module: readFileSync(new URL("./bytepair_bg.wasm", import.meta.url)) });

export { DecodeStream, EncodeStream, Tokenizer, View } from "./bytepair.js";
