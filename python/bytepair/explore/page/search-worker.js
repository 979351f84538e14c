// Searches a vocabulary in a thread of its own, so that an expression that never ends can be ended.

let lengths = null;
let bytes = null;
let starts = null;
let texts = null;

function load(message) {
  ({ lengths, bytes } = message);
  starts = new Uint32Array(lengths.length + 1);
  for (let i = 0; i < lengths.length; i++) starts[i + 1] = starts[i] + lengths[i];
  texts = null;
}

function read() {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  texts ??= Array.from(lengths, (_, i) => decoder.decode(bytes.subarray(starts[i], starts[i + 1])));
}

const KINDS = {
  text(query) {
    read();
    const wanted = query.toLowerCase();
    const exact = query !== wanted; // capitals are meant
    return (i) => (exact ? texts[i] : texts[i].toLowerCase()).includes(exact ? query : wanted);
  },
  regex(query) {
    read();
    const expression = new RegExp(query, "u");
    return (i) => expression.test(texts[i]);
  },
  bytes(query) {
    const digits = query.replace(/0x|[\s,]/gi, "");
    if (!/^([0-9a-f]{2})*$/i.test(digits)) throw new Error("bytes are pairs of the digits 0 to f, as in e4 bd");
    const wanted = digits.match(/../g)?.map((pair) => parseInt(pair, 16)) ?? [];
    return (i) => {
      for (let at = starts[i]; at + wanted.length <= starts[i + 1]; at++) {
        if (wanted.every((byte, n) => bytes[at + n] === byte)) return true;
      }
      return false;
    };
  },
  id(query) {
    const wanted = query.trim();
    if (!/^[0-9]*$/.test(wanted)) throw new Error("an id is a whole number");
    return (i) => String(i).startsWith(wanted);
  },
};

self.onmessage = ({ data }) => {
  if (data.load) load(data.load);
  try {
    const fits = KINDS[data.kind](data.query);
    const ids = [];
    for (let i = 0; i < lengths.length; i++) if (lengths[i] && fits(i)) ids.push(i);
    self.postMessage({ asked: data.asked, ids: Uint32Array.from(ids) });
  } catch (error) {
    self.postMessage({ asked: data.asked, error: error.message });
  }
};
