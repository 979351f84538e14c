//! The tokenizer: loading, training, encoding, decoding, lookup.

use std::sync::Arc;

use bytepair::formats::native::Tables;
use bytepair::formats::tokenizer_json;
use bytepair::tokenizer::session;
use bytepair::train::grow::merges_for;
use bytepair::{Counter, MergeRule, Pattern, Special, Text, train};
use js_sys::{Array, Object, Reflect, Uint8Array, Uint32Array};
use wasm_bindgen::prelude::*;

use crate::arguments::{bytes, ids, string, strings, whole, wrong_type};
use crate::error;
use crate::options::{self, JsOffsets, JsRendered, JsSpecialTokens, Segments};
use crate::streams::{DecodeStream, EncodeStream};

/// An immutable tokenizer.
#[wasm_bindgen]
#[derive(Debug, Clone)]
pub struct Tokenizer(pub(crate) Arc<bytepair::Tokenizer>);

#[wasm_bindgen]
impl Tokenizer {
    /// Load the bytes of a native file, `tokenizer.bytepair`.
    #[wasm_bindgen(js_name = fromBytes)]
    pub fn from_bytes(
        #[wasm_bindgen(unchecked_param_type = "Uint8Array")] file: &JsValue,
    ) -> Result<Tokenizer, JsValue> {
        bytepair::Tokenizer::from_bytes(&bytes(file, "file")?).map(Self::new).map_err(error)
    }

    /// Load the bytes of a `tokenizer.json`.
    #[wasm_bindgen(js_name = fromTokenizerJson)]
    pub fn from_tokenizer_json(
        #[wasm_bindgen(unchecked_param_type = "Uint8Array")] file: &JsValue,
    ) -> Result<Tokenizer, JsValue> {
        bytepair::Tokenizer::from_tokenizer_json(&bytes(file, "file")?)
            .map(Self::new)
            .map_err(error)
    }

    /// Load the bytes of a rank file, as tiktoken publishes them. It contains neither the split
    /// pattern, a name such as "gpt4" or a regular expression, nor the special tokens.
    #[wasm_bindgen(js_name = fromRanks)]
    pub fn from_ranks(
        #[wasm_bindgen(unchecked_param_type = "Uint8Array")] file: &JsValue,
        #[wasm_bindgen(unchecked_param_type = "string")] pattern: &JsValue,
        #[wasm_bindgen(
            js_name = specialTokens,
            unchecked_optional_param_type = "Record<string, number>"
        )]
        special: &JsValue,
    ) -> Result<Tokenizer, JsValue> {
        let file = bytes(file, "file")?;
        let pattern = Pattern::new(&string(pattern, "pattern")?).map_err(error)?;
        let special = pairs(special)?;
        bytepair::Tokenizer::from_rank_file(&file, special, pattern).map(Self::new).map_err(error)
    }

    /// Train on an array of texts. The same texts give the same tokenizer as in Python.
    pub fn train(
        #[wasm_bindgen(unchecked_param_type = "string[]")] texts: &JsValue,
        #[wasm_bindgen(js_name = vocabSize, unchecked_param_type = "number")] size: &JsValue,
        #[wasm_bindgen(unchecked_optional_param_type = "TrainOptions")] options: &JsValue,
    ) -> Result<Tokenizer, JsValue> {
        let texts = strings(texts, "texts")?;
        let size = whole(size, "vocabSize")? as usize;
        options::check(options, &["pattern", "specialTokens"])?;
        let pattern = options::member(options, "pattern").map(|one| string(&one, "pattern"));
        let pattern = pattern.transpose()?;
        let pattern = Pattern::new(pattern.as_deref().unwrap_or("gpt4")).map_err(error)?;
        let special = options::member(options, "specialTokens");
        let special = special.map_or(Ok(Vec::new()), |one| strings(&one, "specialTokens"))?;
        learn(&texts, size, &special, pattern).map(Self::new).map_err(error)
    }

    /// Encode a text.
    pub fn encode(
        &self,
        #[wasm_bindgen(unchecked_param_type = "string")] text: &JsValue,
        #[wasm_bindgen(unchecked_optional_param_type = "EncodeOptions")] options: &JsValue,
    ) -> Result<Vec<u32>, JsValue> {
        let text = string(text, "text")?;
        let options = options::encode_options(&self.0, options)?;
        self.0.encode_with(&text, &options).map_err(error)
    }

    /// Encode a text, with where each id starts and ends in the string.
    #[wasm_bindgen(js_name = encodeWithOffsets)]
    pub fn encode_with_offsets(
        &self,
        #[wasm_bindgen(unchecked_param_type = "string")] text: &JsValue,
        #[wasm_bindgen(unchecked_optional_param_type = "EncodeOptions")] options: &JsValue,
    ) -> Result<JsOffsets, JsValue> {
        let text = string(text, "text")?;
        let options = options::encode_options(&self.0, options)?;
        let spans = self.0.encode_with_spans(&Text::Utf8(&text), &options).map_err(error)?;
        let units = units(&text);
        let unit = |byte: usize| units.get(byte).copied().unwrap_or_default();
        let whole = |end: usize| (end..text.len()).find(|&at| text.is_char_boundary(at));
        let offset = |[start, end]: &[i64; 2]| {
            let [start, end] = [*start, *end].map(|byte| usize::try_from(byte).unwrap_or_default());
            [unit(start), unit(whole(end).unwrap_or(text.len()))]
        };
        let offsets: Vec<u32> = spans.bytes.iter().flat_map(offset).collect();
        object([
            ("ids", Uint32Array::from(&*spans.ids).into()),
            ("offsets", Uint32Array::from(&*offsets).into()),
        ])
    }

    /// The ids and the loss mask of a conversation. Adjacent texts are encoded as one; none becomes a
    /// special token, not even if several segments spell its name. An id that covers several texts is
    /// trained on if one of them is.
    pub fn render(
        &self,
        #[wasm_bindgen(unchecked_param_type = "Segment[]")] segments: &JsValue,
    ) -> Result<JsRendered, JsValue> {
        let segments = Segments::new(&self.0, segments)?;
        let parts = segments.parts();
        let all = 0..parts.len();
        let rendered = self.0.render(&[all], &parts, &segments.trained, true, 1);
        let rendered = rendered.map_err(error)?;
        object([
            ("ids", Uint32Array::from(&*rendered.ids).into()),
            ("mask", Uint8Array::from(&*rendered.mask).into()),
        ])
    }

    /// The number of ids of a text.
    pub fn count(
        &self,
        #[wasm_bindgen(unchecked_param_type = "string")] text: &JsValue,
        #[wasm_bindgen(unchecked_optional_param_type = "EncodeOptions")] options: &JsValue,
    ) -> Result<usize, JsValue> {
        let text = string(text, "text")?;
        let options = options::encode_options(&self.0, options)?;
        self.0.count(&text, &options).map_err(error)
    }

    /// The text of ids; bytes that are not UTF-8 become U+FFFD.
    pub fn decode(
        &self,
        #[wasm_bindgen(unchecked_param_type = "Uint32Array | number[]")] ids: &JsValue,
    ) -> Result<String, JsValue> {
        self.0.decode(&self::ids(ids, "ids")?).map_err(error)
    }

    /// The bytes of ids.
    #[wasm_bindgen(js_name = decodeBytes)]
    pub fn decode_bytes(
        &self,
        #[wasm_bindgen(unchecked_param_type = "Uint32Array | number[]")] ids: &JsValue,
    ) -> Result<Vec<u8>, JsValue> {
        self.0.decode_bytes(&self::ids(ids, "ids")?).map_err(error)
    }

    /// A stream that converts ids to text as they arrive. The text ends where the first of the stop
    /// strings is complete (the longest, if several are); what may be the beginning of one is held
    /// back. The name of a special token also stops at its id.
    #[wasm_bindgen(js_name = decodeStream)]
    pub fn decode_stream(
        &self,
        #[wasm_bindgen(unchecked_optional_param_type = "DecodeStreamOptions")] options: &JsValue,
    ) -> Result<DecodeStream, JsValue> {
        options::decode_stream(&self.0, options)
    }

    /// A stream that encodes a text as it arrives.
    #[wasm_bindgen(js_name = encodeStream)]
    pub fn encode_stream(&self) -> Result<EncodeStream, JsValue> {
        session::EncodeStream::new(&self.0, &Special::Text).map(EncodeStream).map_err(error)
    }

    /// The bytes of a token.
    #[wasm_bindgen(js_name = tokenBytes)]
    pub fn token_bytes(
        &self,
        #[wasm_bindgen(unchecked_param_type = "number")] id: &JsValue,
    ) -> Result<Vec<u8>, JsValue> {
        self.0.token_bytes(whole(id, "id")?).map(<[u8]>::to_vec).map_err(error)
    }

    /// The id of an ordinary token; undefined if there is none with these bytes.
    #[wasm_bindgen(js_name = tokenId)]
    pub fn token_id(
        &self,
        #[wasm_bindgen(unchecked_param_type = "Uint8Array")] bytes: &JsValue,
    ) -> Result<Option<u32>, JsValue> {
        Ok(self.0.vocabulary().id(&self::bytes(bytes, "bytes")?))
    }

    /// The number of ids, special tokens included.
    #[wasm_bindgen(getter, js_name = vocabSize)]
    pub fn vocab_size(&self) -> usize {
        self.0.vocabulary().len()
    }

    /// Whether every text is decoded to itself; some tokenizers change texts before they encode them.
    #[wasm_bindgen(getter)]
    pub fn lossless(&self) -> bool {
        self.0.is_lossless()
    }

    /// The special tokens and their ids.
    #[wasm_bindgen(getter, js_name = specialTokens)]
    pub fn special_tokens(&self) -> JsSpecialTokens {
        let pair = |(name, id): (&str, u32)| Array::of2(&name.into(), &id.into());
        let pairs: Array = self.0.vocabulary().special_tokens().map(pair).collect();
        let object = Object::from_entries(&pairs).map(JsValue::from);
        object.unwrap_or(JsValue::UNDEFINED).unchecked_into()
    }

    /// The split pattern, a regular expression; undefined if one expression does not say how texts
    /// are split.
    #[wasm_bindgen(getter)]
    pub fn pattern(&self) -> Option<String> {
        self.0.pattern()?.regex().map(str::to_owned)
    }

    /// How tokens merge: "ranks", "merges" or "characters".
    #[wasm_bindgen(getter, js_name = mergeRule)]
    pub fn merge_rule(&self) -> String {
        match self.0.rule() {
            MergeRule::Ranks => "ranks",
            MergeRule::Merges { .. } => "merges",
            MergeRule::Characters => "characters",
        }
        .to_owned()
    }

    /// A hash of all that decides about ids; tokenizers with the same one are equal.
    #[wasm_bindgen(getter)]
    pub fn fingerprint(&self) -> String {
        self.0.fingerprint().to_owned()
    }

    /// The bytes of a native file.
    #[wasm_bindgen(js_name = toBytes)]
    pub fn to_bytes(&self) -> Result<Vec<u8>, JsValue> {
        self.0.to_bytes(Tables::Without).map_err(error)
    }

    /// The text of a `tokenizer.json`.
    #[wasm_bindgen(js_name = toTokenizerJson)]
    pub fn to_tokenizer_json(&self) -> Result<String, JsValue> {
        self.0.parts().and_then(|parts| tokenizer_json::write(&parts)).map_err(error)
    }
}

impl Tokenizer {
    fn new(core: bytepair::Tokenizer) -> Self {
        Self(Arc::new(core))
    }
}

fn learn(
    texts: &[String],
    vocab_size: usize,
    special: &[String],
    pattern: Pattern,
) -> bytepair::Result<bytepair::Tokenizer> {
    let mut counter = Counter::new(&pattern, 1)?;
    counter.add(&texts.iter().map(String::as_str).collect::<Vec<_>>())?;
    let merges = merges_for(vocab_size, special.len())?;
    let options = bytepair::TrainOptions { merges, ..bytepair::TrainOptions::default() };
    train(&counter.finish()?, &options, &mut |_| Ok(()))?.to_tokenizer(special, pattern)
}

/// An object with these members.
fn object<T: JsCast>(members: [(&str, JsValue); 2]) -> Result<T, JsValue> {
    let object = Object::new();
    for (name, value) in members {
        Reflect::set(&object, &name.into(), &value)?;
    }
    Ok(JsValue::from(object).unchecked_into())
}

/// Names and ids of special tokens.
fn pairs(special: &JsValue) -> Result<Vec<(String, u32)>, JsValue> {
    if special.is_undefined() || special.is_null() {
        return Ok(Vec::new());
    }
    let object: &Object = special
        .dyn_ref()
        .ok_or_else(|| wrong_type("specialTokens", "an object of names and ids", special))?;
    let pair = |pair: JsValue| {
        let pair: Array = pair.unchecked_into();
        let name = string(&pair.get(0), "specialTokens")?;
        let id = whole(&pair.get(1), &format!("specialTokens[{name:?}]"))?;
        Ok((name, id))
    };
    Object::entries(object).iter().map(pair).collect()
}

/// For each byte of a text and its end, the number of UTF-16 units before the character that the
/// byte is in.
fn units(text: &str) -> Vec<u32> {
    let mut before = 0;
    let mut units = Vec::with_capacity(text.len() + 1);
    for character in text.chars() {
        units.extend(std::iter::repeat_n(before, character.len_utf8()));
        before += if character.len_utf16() == 2 { 2 } else { 1 };
    }
    units.push(before);
    units
}
