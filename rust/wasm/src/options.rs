//! The options of calls: objects of JavaScript, read by the names of their members.

use std::sync::Arc;

use bytepair::bulk::conversations::Segment;
use bytepair::tokenizer::decode_stream;
use bytepair::tokenizer::decode_stream::Stops;
use bytepair::{EncodeOptions, Special, Tokenizer};
use js_sys::{Array, Object, RangeError, Reflect, TypeError};
use wasm_bindgen::prelude::*;

use crate::arguments::{string, strings, whole, wrong_type};
use crate::error;
use crate::streams::DecodeStream;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** How the text of special tokens is encoded: as ordinary text ("text", the default), as their ids
 * ("all"), or as the ids of those that are named; "error" throws at one, and "none" finds neither
 * special nor other added tokens. */
export type Special = "text" | "all" | "none" | "error" | string[];

export interface EncodeOptions {
    special?: Special;
    /** A special token by name, or any id, to begin with. */
    prepend?: string | number;
    /** A special token by name, or any id, to end with. */
    append?: string | number;
    /** Whether the ids that the post-processor of a tokenizer.json puts around a text are added
     * (false is the default). They stand between those of prepend and append. */
    addSpecialTokens?: boolean;
}

export interface DecodeStreamOptions {
    /** A string or several at which the text ends. */
    stop?: string | string[];
    /** Whether the text keeps the string that ends it (false is the default). */
    keepStop?: boolean;
}

/** A part of a conversation: a text, which never becomes a special token, or a special token by name,
 * or any id; and whether a model is trained on it (false is the default). */
export type Segment =
    | { text: string; trained?: boolean }
    | { token: string | number; trained?: boolean };

export interface Rendered {
    ids: Uint32Array;
    /** For each id, 1 if a model is trained on it, else 0. */
    mask: Uint8Array;
}

export interface TrainOptions {
    /** The name of a split pattern, such as "gpt4" (the default), or a regular expression. */
    pattern?: string;
    /** Special tokens, which get the last ids. */
    specialTokens?: string[];
}

export interface Offsets {
    ids: Uint32Array;
    /** Where each id starts and ends in the string: two numbers for each id. */
    offsets: Uint32Array;
}
"#;

#[wasm_bindgen]
extern "C" {
    /// Ids and their offsets.
    #[wasm_bindgen(typescript_type = "Offsets")]
    pub type JsOffsets;
    /// Ids and their mask.
    #[wasm_bindgen(typescript_type = "Rendered")]
    pub type JsRendered;
    /// Names and ids.
    #[wasm_bindgen(typescript_type = "Record<string, number>")]
    pub type JsSpecialTokens;
}

/// A member of an object; `None` if it is missing, or there is no object.
pub(crate) fn member(object: &JsValue, name: &str) -> Option<JsValue> {
    if !object.is_object() {
        return None;
    }
    let value = Reflect::get(object, &name.into()).ok()?;
    (!value.is_undefined() && !value.is_null()).then_some(value)
}

/// Fails unless a value is an object, or missing, and if it has a member that is not used.
pub(crate) fn check(object: &JsValue, options: &[&str]) -> Result<(), JsValue> {
    if object.is_undefined() || object.is_null() {
        return Ok(());
    }
    let plain = object.dyn_ref::<Object>().filter(|_| !Array::is_array(object));
    let Some(object) = plain else {
        return Err(wrong_type("options", "an object", object));
    };
    let names = Object::keys(object).iter().filter_map(|name| name.as_string()).collect::<Vec<_>>();
    match names.iter().find(|name| !options.contains(&name.as_str())) {
        Some(name) => {
            let options = options.join(", ");
            Err(TypeError::new(&format!("there is no option {name}; there are {options}")).into())
        }
        None => Ok(()),
    }
}

/// Prepare the options of encoding.
pub(crate) fn encode_options(
    tokenizer: &Tokenizer,
    options: &JsValue,
) -> Result<EncodeOptions, JsValue> {
    check(options, &["special", "prepend", "append", "addSpecialTokens"])?;
    let special = member(options, "special").map_or(Ok(Special::Text), |one| special(&one))?;
    let id = |name| member(options, name).map(|one| id(tokenizer, &one, name)).transpose();
    let (prepend, append) = (id("prepend")?, id("append")?);
    let adds = flag(options, "addSpecialTokens")?;
    let (prepend, append) = tokenizer.around(prepend, append, adds);
    tokenizer.options(&special, &prepend, &append).map_err(error)
}

/// Start a stream that decodes, with the options of stop strings.
pub(crate) fn decode_stream(
    tokenizer: &Arc<Tokenizer>,
    options: &JsValue,
) -> Result<DecodeStream, JsValue> {
    check(options, &["stop", "keepStop"])?;
    let stops = member(options, "stop").map_or(Ok(Vec::new()), |stop| match stop.as_string() {
        Some(one) => Ok(vec![one]),
        None => strings(&stop, "stop"),
    })?;
    let keep = flag(options, "keepStop")?;
    let stops = Arc::new(Stops::new(tokenizer, &stops, keep).map_err(error)?);
    Ok(DecodeStream(decode_stream::DecodeStream::new(tokenizer).stopping(stops)))
}

/// The parts of a conversation, and which of them are trained on.
pub(crate) struct Segments {
    parts: Vec<Part>,
    pub(crate) trained: Vec<bool>,
}

enum Part {
    Text(String),
    Id(u32),
}

impl Segments {
    /// Fails at the first part that is neither a text nor a token.
    pub(crate) fn new(tokenizer: &Tokenizer, value: &JsValue) -> Result<Self, JsValue> {
        let array: Option<&Array> = value.dyn_ref();
        let array = array.ok_or_else(|| wrong_type("segments", "an array of objects", value))?;
        let (mut parts, mut trained) = (Vec::new(), Vec::new());
        for (at, one) in array.iter().enumerate() {
            let name = |field: &str| format!("segments[{at}].{field}");
            parts.push(match (member(&one, "text"), member(&one, "token")) {
                (Some(text), None) => Part::Text(string(&text, &name("text"))?),
                (None, Some(token)) => Part::Id(id(tokenizer, &token, &name("token"))?),
                _ => {
                    let expected = "an object with either text or token";
                    return Err(wrong_type(&format!("segments[{at}]"), expected, &one));
                }
            });
            trained.push(flag(&one, "trained")?);
        }
        Ok(Self { parts, trained })
    }

    pub(crate) fn parts(&self) -> Vec<Segment<'_>> {
        let part = |part| match part {
            &Part::Id(id) => Segment::Id(id),
            Part::Text(text) => Segment::Text(text),
        };
        self.parts.iter().map(part).collect()
    }
}

/// A member that is true or false; false if it is missing.
fn flag(options: &JsValue, name: &str) -> Result<bool, JsValue> {
    let wrong = |one: &JsValue| wrong_type(name, "true or false", one);
    member(options, name).map_or(Ok(false), |one| one.as_bool().ok_or_else(|| wrong(&one)))
}

fn special(value: &JsValue) -> Result<Special, JsValue> {
    Ok(match value.as_string().as_deref() {
        Some("text") => Special::Text,
        Some("all") => Special::All,
        Some("none") => Special::None,
        Some("error") => Special::Error,
        Some(other) => {
            return Err(RangeError::new(&format!(
                "special must be \"text\", \"all\", \"none\", \"error\" or an array of names, not \
                 {other:?}"
            ))
            .into());
        }
        None => Special::Only(strings(value, "special")?),
    })
}

/// The id of a special token by name, or any id.
fn id(tokenizer: &Tokenizer, value: &JsValue, name: &str) -> Result<u32, JsValue> {
    if let Some(token) = value.as_string() {
        return tokenizer.special_id(&token).map_err(error);
    }
    let id = whole(value, name)?;
    tokenizer.token_bytes(id).map(|_| id).map_err(error)
}
