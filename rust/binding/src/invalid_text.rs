//! `lone_surrogates` and `not_utf8`: which texts are invalid; and the documents of a column.

use bytepair::Text;
use bytepair::text::{from_utf8, lone_surrogate, starts_char};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::{arguments, arrays, errors, text};

/// The texts of a list of `str` that have a lone surrogate: for each, its index, and what to say of
/// the first one.
#[pyfunction]
pub(crate) fn lone_surrogates(
    py: Python<'_>,
    texts: &Bound<'_, PyAny>,
) -> PyResult<Vec<(usize, String)>> {
    let strings = arguments::strings(texts)?;
    let texts = errors::collect(strings.iter().map(text::text))?;
    Ok(py.detach(|| {
        let lone = |(index, text): (usize, &Text<'_>)| {
            let (at, code) = text.lone_surrogate()?;
            Some((index, format!("{}, at character {at}", lone_surrogate(code))))
        };
        texts.iter().enumerate().filter_map(lone).collect()
    }))
}

/// The documents of an Arrow string column that are not UTF-8, given its bytes and its offsets: for
/// each, its index and the byte offset of its first invalid sequence.
#[pyfunction]
pub(crate) fn not_utf8(
    py: Python<'_>,
    data: PyReadonlyArray1<'_, u8>,
    offsets: &Bound<'_, PyAny>,
) -> PyResult<Vec<(usize, usize)>> {
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
                invalid.push((index, error.valid_up_to()));
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
