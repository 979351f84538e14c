//! Parses untrusted JSON into values that know their places.
//!
//! The two tables of a model are read entry by entry, and borrow their names from the text. The
//! small rest becomes a [`Value`], in which no object names a field twice; a [`JsonNode`] is such a
//! value with its place in the file, which every error names.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::error::{Error, Reason, Result};
use crate::formats;
use crate::memory;
use crate::rules::growth::MAX_STEPS;
use crate::text::from_utf8;

/// A file breaks a rule of its format.
pub(super) fn invalid(place: impl Into<String>, reason: impl Into<Reason>) -> Error {
    Error::Format { place: place.into(), reason: reason.into() }
}

/// A file asks for something that is not reproduced exactly.
pub(super) fn unsupported(place: impl Into<String>, reason: impl Into<Reason>) -> Error {
    Error::Unsupported { place: place.into(), reason: reason.into() }
}

/// Parse a part of a file.
pub(super) fn parse<'t, T: Deserialize<'t>>(text: &'t str, place: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| broken(&error, place))
}

/// What is wrong with a text that is not JSON, or not of the expected type.
fn broken(error: &serde_json::Error, place: &str) -> Error {
    let text = error.to_string();
    if text.starts_with("lone leading surrogate")
        || text.starts_with("unexpected end of hex escape")
    {
        let at = format!("line {} column {}", error.line(), error.column());
        return invalid(place, format!("a string has an unpaired surrogate, at {at}"));
    }
    let kind = if error.is_data() { "unexpected content" } else { "invalid JSON" };
    invalid(place, format!("{kind}: {text}"))
}

// ---------------------------------------------------------------------------- names and objects

/// A string, borrowed from the file unless it contains escapes.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Name<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// The entries of an object, in the order of the file.
pub(super) struct Object<'a, V>(pub(super) Vec<(Name<'a>, V)>);

impl<V> Object<'_, V> {
    /// The value of a name.
    pub(super) fn get(&self, name: &str) -> Option<&V> {
        self.0.iter().find(|(other, _)| other.0 == name).map(|(_, value)| value)
    }
}

/// Fails if a name occurs twice in an object.
pub(super) fn check_names<V>(object: &[(Name<'_>, V)], place: &str) -> Result<()> {
    let mut names = HashSet::with_capacity(object.len());
    match object.iter().find(|(name, _)| !names.insert(&*name.0)) {
        Some((Name(name), _)) => {
            Err(invalid(place, format!("invalid JSON: duplicate name {name:?} in an object")))
        }
        None => Ok(()),
    }
}

/// Collects all entries of an object.
struct EntriesVisitor<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for EntriesVisitor<V> {
    type Value = Vec<(Name<'de>, V)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(
        self,
        mut map: A,
    ) -> std::result::Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(entries)
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Object<'de, V> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        from.deserialize_map(EntriesVisitor(PhantomData)).map(Self)
    }
}

// ---------------------------------------------------------------------------- values

/// The largest number of objects and lists around a value.
const MAX_DEPTH: usize = 128;
const TOO_DEEP: &str = "the JSON is nested too deeply";

/// Places in errors are about this long at most.
const MAX_PLACE_BYTES: usize = 200;

/// Parse a small part of a file, in which no object may name a field twice.
fn value(text: &str, depth: usize) -> Result<Value> {
    if depth == MAX_DEPTH {
        return Err(invalid("", TOO_DEEP));
    }
    if text.starts_with('{') {
        return fields(&parse(text, "")?, |_| true, depth + 1);
    }
    if text.starts_with('[') {
        let items: Vec<&RawValue> = parse(text, "")?;
        let item = |(at, item): (usize, &&RawValue)| {
            value(item.get(), depth + 1).map_err(|error| within(&format!("[{at}]"), error))
        };
        return items.iter().enumerate().map(item).collect::<Result<_>>().map(Value::Array);
    }
    parse(text, "")
}

/// The fields of an object that are read.
fn fields(
    object: &Object<'_, &RawValue>,
    is_read: impl Fn(&str) -> bool,
    depth: usize,
) -> Result<Value> {
    check_names(&object.0, "")?;
    let field = |(Name(name), value): &(Name<'_>, &RawValue)| {
        let value = self::value(value.get(), depth).map_err(|error| within(name, error))?;
        Ok((name.to_string(), value))
    };
    let all = object.0.iter().filter(|(name, _)| is_read(&name.0));
    all.map(field).collect::<Result<_>>().map(Value::Object)
}

/// The error of a value in an object or list. Only an error writes the names of all objects around a
/// value, which a file may make long. Of a long place, the outer part is kept.
fn within(place: &str, error: Error) -> Error {
    let Error::Format { place: inner, reason } = error else { return error };
    let dot = if inner.is_empty() || inner.starts_with('[') { "" } else { "." };
    let is_short = place.len() + inner.len() < MAX_PLACE_BYTES && reason.text() != TOO_DEEP;
    invalid(if is_short { [place, dot, &inner].concat() } else { place.to_owned() }, reason)
}

/// A value and its place in the file.
#[derive(Clone)]
pub(super) struct JsonNode<'v> {
    pub(super) value: &'v Value,
    pub(super) place: String,
}

impl<'v> JsonNode<'v> {
    pub(super) fn new(value: &'v Value, place: impl Into<String>) -> Self {
        Self { value, place: place.into() }
    }

    /// The error for a value that breaks a rule.
    pub(super) fn invalid(&self, reason: impl Into<Reason>) -> Error {
        invalid(self.place.clone(), reason)
    }

    /// The error for a value that is not reproduced exactly.
    pub(super) fn unsupported(&self, reason: impl Into<Reason>) -> Error {
        unsupported(self.place.clone(), reason)
    }

    /// The error for a value of another type.
    fn expected(&self, wanted: &str) -> Error {
        self.invalid(format!("expected {wanted}, not {}", self.value))
    }

    /// The value as a type.
    pub(super) fn read<T: Deserialize<'v>>(&self) -> Result<T> {
        T::deserialize(self.value).map_err(|error| {
            let text = error.to_string();
            self.expected(
                match text.rsplit_once("expected ").map_or(&*text, |(_, wanted)| wanted) {
                    "a boolean" => "true or false",
                    "u32" => "a number in 0 … 4294967295",
                    "usize" => "a number of at least 0",
                    wanted => wanted,
                },
            )
        })
    }

    /// A field of this object, unless it is missing or null.
    pub(super) fn find(&self, name: &str) -> Result<Option<Self>> {
        let fields = self.value.as_object().ok_or_else(|| self.expected("an object"))?;
        let value = fields.get(name).filter(|value| !value.is_null());
        Ok(value.map(|value| JsonNode::new(value, format!("{}.{name}", self.place))))
    }

    /// A field of this object.
    pub(super) fn get(&self, name: &str) -> Result<Self> {
        let missing = || self.invalid(format!("the field {name:?} is missing"));
        self.find(name)?.ok_or_else(missing)
    }

    /// A field of this object as a type; `default` if it is missing.
    pub(super) fn field<T: Deserialize<'v>>(&self, name: &str, default: Option<T>) -> Result<T> {
        match (self.find(name)?, default) {
            (None, Some(default)) => Ok(default),
            _ => self.get(name)?.read(),
        }
    }

    pub(super) fn list(&self) -> Result<Vec<Self>> {
        let values = self.value.as_array().ok_or_else(|| self.expected("a list"))?;
        let node = |(at, value)| JsonNode::new(value, format!("{}[{at}]", self.place));
        Ok(values.iter().enumerate().map(node).collect())
    }

    /// The field `type`.
    pub(super) fn kind(&self) -> Result<&'v str> {
        self.field("type", None)
    }

    /// The nodes of nested sequences, in order; `field` holds those of a `Sequence`. Fails if there are
    /// more than [`MAX_STEPS`].
    pub(super) fn flat(&self, field: &str) -> Result<Vec<Self>> {
        if self.kind()? != "Sequence" {
            return Ok(vec![self.clone()]);
        }
        let mut nodes = Vec::new();
        for node in self.get(field)?.list()? {
            nodes.extend(node.flat(field)?);
            if nodes.len() > MAX_STEPS {
                return Err(self.unsupported(format!("it has more than {MAX_STEPS} steps")));
            }
        }
        Ok(nodes)
    }
}

/// One written step, or several as a `Sequence` in the field `field`; null without steps.
pub(super) fn sequence(mut steps: Vec<Value>, field: &str) -> Value {
    match steps.len() {
        0 => Value::Null,
        1 => steps.remove(0),
        _ => json!({"type": "Sequence", field: steps}),
    }
}

/// Declares once how steps are written, and with it a function that reads them and one that writes
/// them: the name of each step, and those of its fields, with the default of a field that may be
/// missing.
///
/// The reader gives `None`, and the writer null, for a step that is none of these.
macro_rules! steps {
    ($type:ident, $read:ident, $write:ident: $($kind:literal => $variant:ident {
        $($field:tt: $value:ident = $name:literal $(or $default:expr)?),*
    })*) => {
        fn $read(node: &JsonNode<'_>) -> Result<Option<$type>> {
            Ok(Some(match node.kind()? {
                $($kind => $type::$variant {
                    $($field: node.field($name, None $(.or(Some($default)))?)?),*
                },)*
                _ => return Ok(None),
            }))
        }

        fn $write(step: &$type) -> Value {
            match step {
                $($type::$variant { $($field: $value),* } => {
                    json!({"type": $kind $(, $name: $value)*})
                })*
                _ => Value::Null,
            }
        }
    };
}
pub(super) use steps;

// ---------------------------------------------------------------------------- the fields of a file

/// The name of the file, for errors about the whole of it.
pub(super) const FILE: &str = "tokenizer.json";

/// The field of the model that is ours, which other programs ignore: the rule of merges, where the
/// merges are also those of the rule of ranks.
pub(super) const OWN: &str = "bytepair";

/// Fields that are read; all others are ignored, as `tokenizers` ignores them.
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

/// Upper bound on memory for each byte of a file that does not belong to a table: `{"a":0}` takes 700.
const MEMORY_PER_SMALL_BYTE: usize = 128;

/// The fields of a file.
pub(super) struct Document<'t> {
    /// The small fields, and the settings of the model.
    fields: Value,
    /// The tables of the model.
    pub(super) vocabulary: &'t RawValue,
    pub(super) merges: &'t RawValue,
}

impl<'t> Document<'t> {
    /// Read the fields. Fails if the text is not that of a tokenizer of type BPE.
    pub(super) fn parse(text: &'t str) -> Result<Self> {
        let no_object = "this JSON is no tokenizer: it is not an object with fields";
        let document: Object<'_, &RawValue> = serde_json::from_str(text).map_err(|error| {
            if error.is_data() { invalid(FILE, no_object) } else { broken(&error, FILE) }
        })?;
        check_names(&document.0, FILE)?;
        let Some(model) = document.get("model").filter(|model| model.get() != "null") else {
            return Err(invalid(FILE, no_tokenizer(&document)));
        };
        let model: Object<'_, &RawValue> = parse(model.get(), "model")?;
        check_names(&model.0, "model")?;
        let table_bytes = |name: &str| model.get(name).map_or(0, |table| table.get().len());
        let small_bytes = text.len() - table_bytes("vocab") - table_bytes("merges");
        memory::check(small_bytes.saturating_mul(MEMORY_PER_SMALL_BYTE))?;
        let settings = fields(&model, |name| !["vocab", "merges"].contains(&name), 0)
            .map_err(|error| within("model", error))?;
        check_kind(&settings, &model)?;
        let table = |name: &str| {
            let missing = || invalid("model", format!("the field {name:?} is missing"));
            model.get(name).copied().ok_or_else(missing)
        };
        let (vocabulary, merges) = (table("vocab")?, table("merges")?);
        let mut fields = fields(&document, |name| FIELDS.contains(&name), 0)?;
        fields["model"] = settings;
        let this = Self { fields, vocabulary, merges };
        match this.field("version").filter(|version| version.value != "1.0") {
            Some(version) => Err(version.unsupported(format!("{} is not 1.0", version.value))),
            None => Ok(this),
        }
    }

    /// A field of the file, unless it is missing or null.
    pub(super) fn field(&self, name: &'static str) -> Option<JsonNode<'_>> {
        let value = self.fields.get(name).filter(|value| !value.is_null());
        value.map(|value| JsonNode::new(value, name))
    }

    /// What is read of a field; its default if it is missing or null.
    pub(super) fn part<T: Default>(
        &self,
        name: &'static str,
        read: impl Fn(&JsonNode<'_>) -> Result<T>,
    ) -> Result<T> {
        self.field(name).map_or_else(|| Ok(T::default()), |node| read(&node))
    }

    /// The settings of the model.
    pub(super) fn model(&self) -> JsonNode<'_> {
        JsonNode::new(&self.fields["model"], "model")
    }
}

/// The text of a file, whose first bytes are those of no other kind of file.
pub(super) fn text(data: &[u8]) -> Result<&str> {
    if let Some(reason) = formats::mistaken(data) {
        return Err(invalid(FILE, reason));
    }
    from_utf8(data).map_err(|error| {
        let place = format!("{FILE}, byte {}", error.valid_up_to());
        invalid(place, "the JSON is not UTF-8")
    })
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
        Some(kind) => JsonNode::new(kind, "model.type").read()?,
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
