//! Answers the questions of the page of `bytepair explore` about its tokenizers.
//!
//! A [`View`] holds up to [`MAX_TOKENIZERS`] tokenizers. [`View::ask`] takes a question as JSON,
//! with a body of bytes (a text, a word, a file), and answers with JSON or, where a text may have a
//! million tokens, with numbers. The server of the Python package and the module for browsers pass
//! questions through, so both show the same.
//!
//! ```
//! use bytepair_view::{Answer, View};
//! let view = View::new("{}")?;
//! let question = r#"{"what": "add", "name": "mine", "pattern": "gpt4"}"#;
//! let file = b"YQ== 0\nYg== 1\nYWI= 2\n"; // a, b, ab
//! assert_eq!(view.ask(question, file)?, Answer::Json("0".to_owned()));
//! let Answer::Json(answer) = view.ask(r#"{"what": "token", "t": 0, "id": 2}"#, b"")? else {
//!     panic!("the answer is JSON");
//! };
//! assert!(answer.contains(r#""hex":"6162""#));
//! # Ok::<(), bytepair_view::ViewError>(())
//! ```
//!
//! ```text
//! error      why a question has no answer
//! question   the JSON of a question
//! material   texts and templates that the page shows for any tokenizer
//! open       a file, or a text to train on, to a tokenizer
//! explored   a tokenizer with its names and with the tokens that are merged from each token
//! compare    splits of one text side by side, and where they differ
//! token      one token; a vocabulary that is searched
//! steps      the merges of one word, and those of a training
//! chat       a conversation to ids and a mask
//! bundle     the scripts of the page as one
//! alone      the page as one file that needs no server
//! ```

mod alone;
mod bundle;
mod chat;
mod compare;
mod error;
mod explored;
mod material;
mod open;
mod question;
mod search;
mod steps;
mod token;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use bytepair::Tokenizer;
use bytepair::formats::native::Tables;
use serde_json::{Value, json};

pub use alone::PageModule;
pub use error::{ViewError, ViewResult};
pub use steps::MAX_PRETOKEN_BYTES;

use alone::Element;
use error::wrong;
use explored::Explored;
use material::Material;
use question::Question;

/// The largest number of tokenizers of a view.
pub const MAX_TOKENIZERS: usize = 32;

/// The questions that change nothing: the names of what is asked.
pub const READS: [&str; 12] = [
    "about",
    "chat",
    "compare",
    "decode",
    "file",
    "languages",
    "learned",
    "pretoken",
    "search",
    "steps",
    "token",
    "tokens",
];

/// The questions that add or remove a tokenizer. A server takes them from its own page alone: a link
/// to one of them must do nothing.
pub const CHANGES: [&str; 3] = ["add", "remove", "train"];

/// The largest number of tokenizers of a page as one file, which stand side by side.
pub const MAX_SIDE_BY_SIDE: usize = 6;

/// The largest text of a page as one file; one with a longer text would be slow to open.
pub const MAX_TEXT_BYTES: usize = 1 << 20;

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// JSON.
    Json(String),
    /// Numbers of 32 bits, little-endian, or the bytes of a file.
    Bytes(Vec<u8>),
}

/// Some tokenizers, and what can be asked about them. Threads may share it.
#[derive(Debug)]
pub struct View {
    material: Material,
    /// A tokenizer keeps its number; that of a removed one is not used again.
    tokenizers: RwLock<Vec<Option<Arc<Explored>>>>,
}

impl View {
    /// A view without tokenizers. `material` is JSON, an object: `about`, whose members the answer
    /// to `about` has too; `languages`, a list of a code, a name and a text for each; `templates`,
    /// a list of chat templates. Each may be missing.
    ///
    /// Fails if it is not.
    pub fn new(material: &str) -> ViewResult<Self> {
        Ok(Self { material: Material::new(material)?, tokenizers: RwLock::default() })
    }

    /// Add a tokenizer; returns its number. Fails if there are too many.
    ///
    /// `own` are the names of its own chat templates, which the page offers first. Those that the
    /// material does not have are rendered by the caller, who then asks for `tokens`.
    pub fn add(
        &self,
        name: String,
        tokenizer: Arc<Tokenizer>,
        own: Vec<String>,
    ) -> ViewResult<usize> {
        let explored = Explored::new(name, tokenizer, own)?;
        let mut all = self.tokenizers.write().unwrap_or_else(PoisonError::into_inner);
        if all.iter().flatten().count() >= MAX_TOKENIZERS {
            return Err(wrong(format!(
                "a page holds at most {MAX_TOKENIZERS} tokenizers; remove one first"
            )));
        }
        all.push(Some(Arc::new(explored)));
        Ok(all.len() - 1)
    }

    /// Answer a question. Fails if it is none, or if it has no answer; the error says why.
    pub fn ask(&self, question: &str, body: &[u8]) -> ViewResult<Answer> {
        let question = Question::new(question, body)?;
        if let Some(answer) = self.ask_about_all(&question)? {
            return Ok(answer);
        }
        let one = self.one(&question)?;
        let answer = match question.word("what")? {
            "token" => token::token(&one, question.number("id")?)?,
            "search" => search::search(&one, &question)?,
            "languages" => self.material.languages(&one)?,
            "decode" => compare::decode(&one, &question)?,
            "pretoken" => compare::pretoken(&one, &question)?,
            "steps" => steps::steps(&one, question.body)?,
            "learned" => steps::learned(&one, &question)?,
            "chat" => chat::chat(&one, self.material.template(&question)?, &question)?,
            "tokens" => chat::tokens(&one, &question)?,
            "file" => return open::file(&one.core, &question).map(Answer::Bytes),
            other => return Err(wrong(format!("there is no question {other:?}"))),
        };
        Ok(Answer::Json(answer.to_string()))
    }

    /// Answer a question that is not about one tokenizer.
    fn ask_about_all(&self, question: &Question<'_>) -> ViewResult<Option<Answer>> {
        let what = question.word("what")?;
        Ok(Some(match what {
            "about" => Answer::Json(self.about()?),
            "compare" => Answer::Bytes(compare::compare(&self.shown(question)?, question)?),
            "add" | "train" => {
                let tokenizer =
                    if what == "add" { open::open(question)? } else { open::train(question)? };
                let name = question.word("name")?.to_owned();
                let number = self.add(name, Arc::new(tokenizer), Vec::new())?;
                Answer::Json(number.to_string())
            }
            "remove" => {
                self.one(question)?;
                let number = question.number("t")? as usize;
                let mut all = self.tokenizers.write().unwrap_or_else(PoisonError::into_inner);
                if let Some(slot) = all.get_mut(number) {
                    *slot = None;
                }
                Answer::Json("null".to_owned())
            }
            _ => return Ok(None),
        }))
    }

    /// The tokenizer of a question.
    fn one(&self, question: &Question<'_>) -> ViewResult<Arc<Explored>> {
        self.at(question.number("t")?)
    }

    fn at(&self, number: u32) -> ViewResult<Arc<Explored>> {
        let all = self.tokenizers.read().unwrap_or_else(PoisonError::into_inner);
        let tokenizer = all.get(number as usize).cloned().flatten();
        tokenizer.ok_or_else(|| wrong(format!("there is no tokenizer {number}")))
    }

    /// The tokenizers that stand side by side, in the order of the question.
    fn shown(&self, question: &Question<'_>) -> ViewResult<Vec<Arc<Explored>>> {
        let numbers = question.numbers("shown")?;
        if numbers.len() > MAX_TOKENIZERS {
            return Err(wrong(format!("at most {MAX_TOKENIZERS} tokenizers stand side by side")));
        }
        numbers.into_iter().map(|number| self.at(number)).collect()
    }

    /// The tokenizers, and what the page needs to draw tokens.
    fn about(&self) -> ViewResult<String> {
        let all = self.tokenizers.read().unwrap_or_else(PoisonError::into_inner).clone();
        let tokenizers = all.iter().enumerate().filter_map(|(number, one)| {
            let one = one.as_ref()?;
            Some(one.about(number, &self.material.templates_of(one)))
        });
        let tokenizers = Value::Array(tokenizers.collect());
        let patterns: Vec<&str> = bytepair::Pattern::names().collect();
        self.material.with_about(&json!({ "tokenizers": tokenizers, "patterns": patterns }))
    }

    /// The page as one file that needs no server, with `files` of the page by name: about one text,
    /// or with all views if there is a `module` for them. Fails if there are too many tokenizers, if
    /// the text is too long, or if the files are not those of the page.
    pub fn to_html(
        &self,
        files: &BTreeMap<String, String>,
        text: &str,
        special: bool,
        module: Option<PageModule<'_>>,
    ) -> ViewResult<String> {
        let all = self.tokenizers.read().unwrap_or_else(PoisonError::into_inner).clone();
        let all: Vec<Arc<Explored>> = all.into_iter().flatten().collect();
        check_sizes(all.len(), text)?;
        let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        match module {
            None => {
                let data = alone::element("data", &self.data(&all, text, special)?);
                alone::html(files, &names, alone::LIGHT, &[data])
            }
            Some(module) => {
                let state = alone::element("state", &json!({ "text": text, "special": special }));
                let mut elements = self.parts(&all, module)?;
                elements.extend([alone::element("tokenizer-names", &json!(names)), state]);
                alone::html(files, &names, alone::WHOLE, &elements)
            }
        }
    }

    /// All that a page about one text needs.
    fn data(&self, all: &[Arc<Explored>], text: &str, special: bool) -> ViewResult<Value> {
        let splits = compare::splits(all, text, special)?;
        let built = all.iter().zip(&splits).map(|(one, ids)| token::built(one, ids));
        let languages = all.iter().map(|one| self.material.languages(one));
        let about = all.iter().enumerate().map(|(number, one)| one.about(number, &[]));
        Ok(json!({
            "about": { "tokenizers": about.collect::<Vec<_>>(), "marked": self.material.marked() },
            "text": text,
            "compared": explored::hex(&compare::packed(all, &splits)),
            "tokens": built.collect::<ViewResult<Vec<_>>>()?,
            "languages": languages.collect::<ViewResult<Vec<_>>>()?,
        }))
    }

    /// All that a page with all views runs.
    fn parts(&self, all: &[Arc<Explored>], module: PageModule<'_>) -> ViewResult<Vec<Element>> {
        let files = [
            ("wasm", module.wasm),
            ("worker", module.worker),
            ("material", self.material.json.as_bytes()),
        ];
        let files = files.into_iter().map(|(id, bytes)| alone::packed(id.to_owned(), bytes));
        let tokenizer = |(number, one): (usize, &Arc<Explored>)| {
            alone::packed(format!("tokenizer-{number}"), &one.core.to_bytes(Tables::Without)?)
        };
        files.chain(all.iter().enumerate().map(tokenizer)).collect()
    }
}

/// A number with commas between thousands.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

/// Fails if a page as one file would be slow to open.
fn check_sizes(tokenizers: usize, text: &str) -> ViewResult<()> {
    if !(1..=MAX_SIDE_BY_SIDE).contains(&tokenizers) {
        return Err(wrong(format!(
            "a page holds 1 to {MAX_SIDE_BY_SIDE} tokenizers, not {tokenizers}"
        )));
    }
    if text.len() > MAX_TEXT_BYTES {
        return Err(wrong(format!(
            "the text has {} bytes; a page holds at most {}; take a part of it",
            grouped(text.len()),
            grouped(MAX_TEXT_BYTES),
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
