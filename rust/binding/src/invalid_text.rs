//! `InvalidText`: texts that are not Unicode; and the documents of a column.

use bytepair::Text;
use bytepair::text::{from_utf8, lone_surrogate, starts_char};
use pyo3::prelude::*;

use crate::{arguments, arrays, errors, text};

/// A text that is not Unicode.
#[pyclass(frozen, get_all, name = "InvalidText", module = "bytepair._core")]
pub(crate) struct PyInvalidText {
    /// The index of the text among the others.
    pub(crate) index: usize,
    /// What is wrong with it, and where.
    pub(crate) reason: String,
}

/// The texts of a list of `str` that have a lone surrogate.
#[pyfunction]
pub(crate) fn lone_surrogates(
    py: Python<'_>,
    texts: &Bound<'_, PyAny>,
) -> PyResult<Vec<PyInvalidText>> {
    let strings = arguments::strings(texts)?;
    let texts = errors::collect(strings.iter().map(text::text))?;
    Ok(py.detach(|| {
        let lone = |(index, text): (usize, &Text<'_>)| {
            let (at, code) = text.lone_surrogate()?;
            let reason = format!("{}, at character {at}", lone_surrogate(code));
            Some(PyInvalidText { index, reason })
        };
        texts.iter().enumerate().filter_map(lone).collect()
    }))
}

/// The documents of an Arrow string column that are not UTF-8, given its bytes and its offsets.
#[pyfunction]
pub(crate) fn not_utf8(
    py: Python<'_>,
    data: arrays::ArrayArgument<'_, u8>,
    offsets: &Bound<'_, PyAny>,
) -> PyResult<Vec<PyInvalidText>> {
    let offsets = arguments::offsets(offsets)?;
    let data = arrays::stable(&data)?;
    py.detach(|| {
        let whole =
            offsets.first().zip(offsets.last()).and_then(|(&start, &end)| data.get(start..end));
        let starts_char = |at: &usize| data.get(*at).is_none_or(|byte| starts_char(*byte));
        if whole.is_some_and(|whole| from_utf8(whole).is_ok()) && offsets.iter().all(starts_char) {
            return Ok(Vec::new());
        }
        let mut invalid = Vec::new();
        for (index, pair) in offsets.windows(2).enumerate() {
            if let Err(error) = from_utf8(document(&data, index, pair)?) {
                let at = error.valid_up_to();
                let reason = format!("the document is not UTF-8 at byte {at}");
                invalid.push(PyInvalidText { index, reason });
            }
        }
        Ok(invalid)
    })
}

/// The documents between the offsets. The error for invalid UTF-8 names the document and the byte.
pub(crate) fn documents<'a>(data: &'a [u8], offsets: &[usize]) -> PyResult<Vec<&'a str>> {
    let text = |(index, pair): (usize, &[usize])| {
        from_utf8(document(data, index, pair)?).map_err(|error| {
            let at = error.valid_up_to();
            errors::CorpusError::new_err(format!("document {index} is not UTF-8 at byte {at}"))
        })
    };
    errors::collect(offsets.windows(2).enumerate().map(text))
}

/// The bytes of a document between two offsets.
fn document<'a>(data: &'a [u8], index: usize, pair: &[usize]) -> PyResult<&'a [u8]> {
    let wrong = || errors::CorpusError::new_err(format!("document {index} lies outside its data"));
    data.get(pair[0]..pair[1]).ok_or_else(wrong)
}
