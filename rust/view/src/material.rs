//! What the page shows for any tokenizer: sample texts, a text in many languages, chat templates.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::chat::ChatTemplate;
use crate::error::{ViewResult, broken, not_json, wrong};
use crate::explored::Explored;
use crate::question::Question;

/// The material of a page.
#[derive(Debug)]
pub(crate) struct Material {
    /// All of it, as it came.
    pub(crate) json: String,
    /// Members of the answer to `about`, as they came: their order is that of the page.
    about: Option<Box<RawValue>>,
    languages: Vec<LanguageText>,
    templates: Vec<ChatTemplate>,
}

/// The same text in one of many languages.
#[derive(Debug)]
struct LanguageText {
    code: String,
    name: String,
    text: String,
}

impl Material {
    /// Read the JSON of [`View::new`](crate::View::new).
    pub(crate) fn new(json: &str) -> ViewResult<Self> {
        let parts: BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(json).map_err(|error| not_json("the material", &error))?;
        let list = |name: &str| -> ViewResult<Vec<Value>> {
            let Some(part) = parts.get(name) else { return Ok(Vec::new()) };
            serde_json::from_str(part.get()).map_err(|error| not_json(name, &error))
        };
        let language = |one: Value| {
            let word = |name: &str| one.get(name).and_then(Value::as_str).map(str::to_owned);
            let reason = || wrong("a language has the strings \"code\", \"name\" and \"text\"");
            let (code, name, text) = (word("code"), word("name"), word("text"));
            let texts = code.zip(name).zip(text).ok_or_else(reason)?;
            let ((code, name), text) = texts;
            Ok(LanguageText { code, name, text })
        };
        let languages = list("languages")?.into_iter().map(language).collect::<ViewResult<_>>()?;
        let templates =
            list("templates")?.iter().map(ChatTemplate::new).collect::<ViewResult<_>>()?;
        let about = parts.get("about").filter(|about| about.get().starts_with('{')).cloned();
        Ok(Self { json: json.to_owned(), about, languages, templates })
    }

    /// The member `marked` of `about`: the characters that the page marks.
    pub(crate) fn marked(&self) -> Value {
        let about = self.about.as_ref().and_then(|about| serde_json::from_str(about.get()).ok());
        about.map_or(Value::Null, |mut about: Value| about["marked"].take())
    }

    /// An object, and the members for the answer to `about`, as JSON.
    pub(crate) fn with_about(&self, object: &Value) -> ViewResult<String> {
        let text = object.to_string();
        let more = self.about.as_ref().map_or("{}", |about| about.get()).trim_start_matches('{');
        let between = if more.trim() == "}" { "" } else { "," };
        let start = text.strip_suffix('}').ok_or_else(|| wrong("no object"))?;
        Ok([start, between, more].concat())
    }

    /// The number of tokens of the same text in each language.
    pub(crate) fn languages(&self, one: &Explored) -> ViewResult<Value> {
        let row = |language: &LanguageText| {
            let LanguageText { code, name, text } = language;
            let tokens = one.core.count(text, one.core.plain())?;
            Ok(json!({ "code": code, "name": name, "bytes": text.len(), "tokens": tokens }))
        };
        Ok(Value::Array(self.languages.iter().map(row).collect::<ViewResult<_>>()?))
    }

    /// The template that a question names. Fails if there is none.
    pub(crate) fn template(&self, question: &Question<'_>) -> ViewResult<&ChatTemplate> {
        let name = question.word_or_none("template").unwrap_or_default();
        let template = self.templates.iter().find(|template| template.name == name);
        template.ok_or_else(|| broken(format!("there is no template '{name}'")))
    }

    /// The names of the templates whose special tokens a tokenizer has.
    pub(crate) fn templates_of(&self, one: &Explored) -> Vec<&str> {
        let fits = self.templates.iter().filter(|template| template.missing(one).is_none());
        fits.map(|template| template.name.as_str()).collect()
    }
}
