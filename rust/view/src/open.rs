//! A file to a tokenizer and back, and a small tokenizer from a text.

use bytepair::formats::native::Tables;
use bytepair::formats::{self, TokenizerFormat, tokenizer_json};
use bytepair::train::grow::merges_for;
use bytepair::{Counter, Pattern, Tokenizer, TrainOptions, train as learn};

use crate::error::{ViewResult, wrong};
use crate::question::Question;

/// The largest vocabulary that a page trains.
const MAX_TRAINED_IDS: u32 = 100_000;

/// The tokenizer in the body: a native file, a `tokenizer.json`, or a rank file, whose `pattern` the
/// question names. Fails if it is none of them.
pub(crate) fn open(question: &Question<'_>) -> ViewResult<Tokenizer> {
    let file = question.body;
    if let Some(reason) = formats::mistaken(file) {
        return Err(wrong(reason.to_string()));
    }
    Ok(match formats::kind(file) {
        Ok(TokenizerFormat::Native) => Tokenizer::from_bytes(file)?,
        Ok(TokenizerFormat::TokenizerJson) => Tokenizer::from_tokenizer_json(file)?,
        Ok(TokenizerFormat::Ranks) => {
            let name = question.word_or_none("pattern").ok_or_else(|| {
                wrong("a rank file has no split pattern; choose the one that it was trained with")
            })?;
            Tokenizer::from_rank_file(file, [], Pattern::new(name)?)?
        }
        Err(_) => {
            let expected = "a native file, a tokenizer.json or a rank file is expected";
            return Err(wrong(format!("this is no tokenizer: {expected}")));
        }
    })
}

/// A tokenizer that is trained on the text in the body, with the `pattern` of the question or the
/// default one, and its `size`.
pub(crate) fn train(question: &Question<'_>) -> ViewResult<Tokenizer> {
    let (text, size) = (question.text()?, question.number("size")?);
    if size > MAX_TRAINED_IDS {
        return Err(wrong(format!("a page trains at most {MAX_TRAINED_IDS} ids, not {size}")));
    }
    let default = Pattern::names().next().unwrap_or_default();
    let pattern = Pattern::new(question.word_or_none("pattern").unwrap_or(default))?;
    let mut counter = Counter::new(&pattern, 1)?;
    counter.add(&[text])?;
    let merges = merges_for(size as usize, 0)?;
    let options = TrainOptions { merges, ..TrainOptions::default() };
    let trained = learn(&counter.finish()?, &options, &mut |_| Ok(()))?;
    Ok(trained.to_tokenizer(&[], pattern)?)
}

/// The bytes of a file of the tokenizer: `native`, or `json` for a `tokenizer.json`.
pub(crate) fn file(tokenizer: &Tokenizer, question: &Question<'_>) -> ViewResult<Vec<u8>> {
    match question.word("format")? {
        "native" => Ok(tokenizer.to_bytes(Tables::Without)?),
        "json" => Ok(tokenizer_json::write(&tokenizer.parts()?)?.into_bytes()),
        other => Err(wrong(format!("there is no format {other:?}"))),
    }
}
