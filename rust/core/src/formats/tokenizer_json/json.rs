//! Parses untrusted JSON into values that know their places.
//!
//! The two tables of a model are read entry by entry, and borrow their names from the text. The
//! small rest becomes a [`Value`], in which no object names a field twice; a [`JsonNode`] is such a
//! value with its place in the file, which every error names.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value};

use crate::error::{Error, Reason, Result};

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
    if text.starts_with("recursion limit exceeded") {
        return invalid(place, "the JSON is nested too deeply");
    }
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
    /// Fails if a name occurs twice.
    pub(super) fn check_names(&self, place: &str) -> Result<()> {
        let mut names = HashSet::with_capacity(self.0.len());
        match self.0.iter().find(|(name, _)| !names.insert(&*name.0)) {
            Some((name, _)) => Err(twice(place, &name.0)),
            None => Ok(()),
        }
    }

    /// The value of a name.
    pub(super) fn get(&self, name: &str) -> Option<&V> {
        self.0.iter().find(|(other, _)| other.0 == name).map(|(_, value)| value)
    }
}

/// The error for a name that occurs twice in an object.
pub(super) fn twice(place: &str, name: &str) -> Error {
    invalid(place, format!("invalid JSON: duplicate name {name:?} in an object"))
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

/// A value in which no object names a field twice.
pub(super) struct Strict(pub(super) Value);

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Strict;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> std::result::Result<Strict, E> {
        Ok(Strict(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> std::result::Result<Strict, E> {
        Ok(Strict(Value::Bool(value)))
    }

    fn visit_u64<E>(self, value: u64) -> std::result::Result<Strict, E> {
        Ok(Strict(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> std::result::Result<Strict, E> {
        Ok(Strict(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> std::result::Result<Strict, E> {
        Ok(Strict(Number::from_f64(value).map_or(Value::Null, Value::Number)))
    }

    fn visit_str<E>(self, text: &str) -> std::result::Result<Strict, E> {
        Ok(Strict(Value::String(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> std::result::Result<Strict, A::Error> {
        let mut values = Vec::new();
        while let Some(Strict(value)) = seq.next_element()? {
            values.push(value);
        }
        Ok(Strict(Value::Array(values)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Strict, A::Error> {
        let mut values = Map::new();
        while let Some((name, Strict(value))) = map.next_entry::<String, Strict>()? {
            if values.contains_key(&name) {
                return Err(A::Error::custom(format!("duplicate name {name:?} in an object")));
            }
            values.insert(name, value);
        }
        Ok(Strict(Value::Object(values)))
    }
}

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        from.deserialize_any(StrictVisitor)
    }
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

    fn wrong_type(&self, expected: &str) -> Error {
        self.invalid(format!("expected {expected}, not {}", kind_of(self.value)))
    }

    /// A field of this object, unless it is missing or null.
    pub(super) fn find(&self, name: &str) -> Result<Option<Self>> {
        let fields = self.value.as_object().ok_or_else(|| self.wrong_type("an object"))?;
        let value = fields.get(name).filter(|value| !value.is_null());
        Ok(value.map(|value| JsonNode::new(value, format!("{}.{name}", self.place))))
    }

    /// A field of this object.
    pub(super) fn get(&self, name: &str) -> Result<Self> {
        let missing = || self.invalid(format!("the field {name:?} is missing"));
        self.find(name)?.ok_or_else(missing)
    }

    pub(super) fn text(&self) -> Result<&'v str> {
        self.value.as_str().ok_or_else(|| self.wrong_type("a string"))
    }

    pub(super) fn boolean(&self) -> Result<bool> {
        self.value.as_bool().ok_or_else(|| self.wrong_type("true or false"))
    }

    /// A number from 0 to 2^32 - 1.
    pub(super) fn number(&self) -> Result<u32> {
        let number = self.value.as_u64().and_then(|number| u32::try_from(number).ok());
        number.ok_or_else(|| match self.value {
            Value::Number(number) => self.invalid(format!("{number} is not in 0 … 4294967295")),
            _ => self.wrong_type("a number"),
        })
    }

    /// A text of one character.
    pub(super) fn character(&self) -> Result<char> {
        let text = self.text()?;
        let mut characters = text.chars();
        match (characters.next(), characters.next()) {
            (Some(character), None) => Ok(character),
            _ => Err(self.invalid(format!("{text:?} is not one character"))),
        }
    }

    pub(super) fn list(&self) -> Result<Vec<Self>> {
        let values = self.value.as_array().ok_or_else(|| self.wrong_type("a list"))?;
        let node = |(at, value)| JsonNode::new(value, format!("{}[{at}]", self.place));
        Ok(values.iter().enumerate().map(node).collect())
    }

    /// A field that is true or false; `default` if it is missing.
    pub(super) fn flag(&self, name: &str, default: bool) -> Result<bool> {
        self.find(name)?.map_or(Ok(default), |value| value.boolean())
    }

    /// The field `type`.
    pub(super) fn kind(&self) -> Result<&'v str> {
        self.get("type")?.text()
    }

    /// The nodes of nested sequences, in order; `field` holds those of a `Sequence`.
    pub(super) fn flat(&self, field: &str) -> Result<Vec<Self>> {
        if self.kind()? != "Sequence" {
            return Ok(vec![self.clone()]);
        }
        let mut nodes = Vec::new();
        for node in self.get(field)?.list()? {
            nodes.extend(node.flat(field)?);
        }
        Ok(nodes)
    }
}

/// The type of a value, in words.
pub(super) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
