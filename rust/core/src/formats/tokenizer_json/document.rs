//! Reads the bytes of a `tokenizer.json` into its fields.
//!
//! The two tables of the model stay text, since they are most of the file; the other fields become
//! values. Here it is decided whether the file is a tokenizer of type BPE at all.

use serde_json::Value;
use serde_json::value::RawValue;

use super::json::{JsonNode, Object, Strict, invalid, kind_of, parse, unsupported};
use crate::error::Result;
use crate::formats::kind;
use crate::text::from_utf8;

/// The name of the file, for errors about the whole of it.
pub(super) const FILE: &str = "tokenizer.json";

/// The fields of a file.
pub(super) struct Document<'t> {
    /// The small fields, by name.
    fields: Value,
    /// The settings of the model.
    settings: Value,
    /// The tables of the model.
    pub(super) vocabulary: &'t RawValue,
    pub(super) merges: &'t RawValue,
}

/// Fields that are read as values; all others are ignored, as `tokenizers` ignores them.
const FIELDS: [&str; 8] = [
    "version",
    "truncation",
    "padding",
    "added_tokens",
    "normalizer",
    "pre_tokenizer",
    "post_processor",
    "decoder",
];

impl<'t> Document<'t> {
    /// Read the fields. Fails if the text is not that of a tokenizer of type BPE.
    pub(super) fn parse(text: &'t str) -> Result<Self> {
        let first = text.trim_start_matches([' ', '\t', '\r', '\n']).chars().next();
        if matches!(first, Some('[' | '"' | '0'..='9' | '-')) {
            let _: &RawValue = parse(text, FILE)?;
            return Err(invalid(
                FILE,
                "this JSON is no tokenizer: it is not an object with fields",
            ));
        }
        let document: Object<'_, &RawValue> = parse(text, FILE)?;
        document.check_names(FILE)?;
        let Some(model) = document.get("model").filter(|model| model.get() != "null") else {
            return Err(invalid(FILE, no_tokenizer(&document)));
        };
        if !model.get().starts_with('{') {
            let Strict(value) = parse(model.get(), "model")?;
            return Err(invalid("model", format!("expected an object, not {}", kind_of(&value))));
        }
        let model: Object<'_, &RawValue> = parse(model.get(), "model")?;
        model.check_names("model")?;
        let settings = values(&model, |name| !["vocab", "merges"].contains(&name), "model.")?;
        check_kind(&settings, &model)?;
        let table = |name: &str, open: char| {
            let place = format!("model.{name}");
            let Some(table) = model.get(name).copied() else {
                return Err(invalid("model", format!("the field {name:?} is missing")));
            };
            if table.get().starts_with(open) {
                return Ok(table);
            }
            let expected = if open == '{' { "an object" } else { "a list" };
            let Strict(value) = parse(table.get(), &place)?;
            Err(invalid(place, format!("expected {expected}, not {}", kind_of(&value))))
        };
        let (vocabulary, merges) = (table("vocab", '{')?, table("merges", '[')?);
        let fields = values(&document, |name| FIELDS.contains(&name), "")?;
        let this = Self { fields, settings, vocabulary, merges };
        this.check_version()?;
        Ok(this)
    }

    fn check_version(&self) -> Result<()> {
        match self.field("version") {
            Some(version) if version.value != "1.0" => {
                Err(version.unsupported(format!("{} is not 1.0", version.value)))
            }
            _ => Ok(()),
        }
    }

    /// A field of the file, unless it is missing or null.
    pub(super) fn field(&self, name: &'static str) -> Option<JsonNode<'_>> {
        let value = self.fields.get(name).filter(|value| !value.is_null());
        value.map(|value| JsonNode::new(value, name))
    }

    /// The settings of the model.
    pub(super) fn model(&self) -> JsonNode<'_> {
        JsonNode::new(&self.settings, "model")
    }
}

/// The text of a file, whose first bytes are those of no other kind of file.
pub(super) fn text(data: &[u8]) -> Result<&str> {
    if let Some(reason) = kind::mistaken(data) {
        return Err(invalid(FILE, reason));
    }
    from_utf8(data).map_err(|_| {
        let at = std::str::from_utf8(data).map_or_else(|error| error.valid_up_to(), str::len);
        invalid(format!("{FILE}, byte {at}"), "the JSON is not UTF-8")
    })
}

/// The fields of an object whose names `is_selected` accepts.
fn values(
    object: &Object<'_, &RawValue>,
    is_selected: impl Fn(&str) -> bool,
    place: &str,
) -> Result<Value> {
    let fields = object.0.iter().filter(|(name, _)| is_selected(&name.0));
    fields
        .map(|(name, value)| {
            let Strict(value) = parse(value.get(), &[place, &name.0].concat())?;
            Ok((name.0.to_string(), value))
        })
        .collect::<Result<_>>()
        .map(Value::Object)
}

/// Why an object without a model is no tokenizer, and which file it may be.
fn no_tokenizer(document: &Object<'_, &RawValue>) -> String {
    let has = |name: &str| document.get(name).is_some();
    let are_ids = document.0.len() > 1
        && document
            .0
            .iter()
            .all(|(_, value)| value.get().bytes().all(|byte| byte.is_ascii_digit()));
    let kind = if are_ids {
        "; it is a vocabulary, such as vocab.json, whose merges are in merges.txt"
    } else if has("tokenizer_class") || has("added_tokens_decoder") {
        "; it is a tokenizer_config.json, which stands beside a tokenizer.json"
    } else if has("architectures") || has("model_type") {
        "; it is the configuration of a model"
    } else {
        ""
    };
    format!("this JSON is no tokenizer: it has no model{kind}")
}

/// Refuse models that do not merge, by their names; old files do not say their type.
fn check_kind(settings: &Value, model: &Object<'_, &RawValue>) -> Result<()> {
    let kind = match settings.get("type") {
        Some(kind) => JsonNode::new(kind, "model.type").text()?,
        None if model.get("merges").is_some() => "BPE",
        None if model.get("vocab").is_some_and(|table| table.get().starts_with('[')) => "Unigram",
        None if settings.get("max_input_chars_per_word").is_some() => "WordPiece",
        None => "WordLevel",
    };
    if kind == "BPE" {
        return Ok(());
    }
    let reason = format!(
        "a {kind} model is not BPE: it chooses tokens without merging; keep to the library \
         tokenizers for it"
    );
    Err(unsupported("model.type", reason))
}
