//! Encodes Arrow columns and text files into arrays.

use std::path::PathBuf;

use bytepair::bulk::conversations::Segment;
use bytepair::bulk::text_file::FileOptions;
use bytepair::text::{from_utf8, lone_surrogate};
use bytepair::{Text, memory};
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::tokenizer::PyTokenizer;
use crate::{arguments, arrays, errors, interrupt, text};

/// Encode the texts of an Arrow string column, given its bytes and its offsets.
#[pyfunction]
#[pyo3(signature = (tokenizer, data, offsets, *, special=None, prepend=None, append=None, threads=None))]
pub(crate) fn encode_utf8<'py>(
    py: Python<'py>,
    tokenizer: &PyTokenizer,
    data: arrays::ArrayArgument<'py, u8>,
    offsets: &Bound<'py, PyAny>,
    special: Option<&Bound<'py, PyAny>>,
    prepend: Option<&Bound<'py, PyAny>>,
    append: Option<&Bound<'py, PyAny>>,
    threads: Option<arguments::ThreadCount>,
) -> PyResult<Bound<'py, PyAny>> {
    let options = tokenizer.options(special, prepend, append, None)?;
    let tokenizer = &tokenizer.core;
    let (data, offsets) = (arrays::stable(&data)?, arguments::offsets(offsets)?);
    let outside = || PyValueError::new_err("the offsets of the texts lie outside their data");
    let texts = offsets.windows(2).map(|pair| data.get(pair[0]..pair[1]).map(Text::Bytes));
    let texts = texts.collect::<Option<Vec<_>>>().ok_or_else(outside)?;
    let threads = arguments::threads_for(threads, &texts);
    arrays::encode(py, tokenizer, &texts, &options, threads)
}

/// Encode the documents of a text file.
#[pyfunction]
#[pyo3(signature = (tokenizer, path, *, separator, lossy, reads=false, special=None, prepend=None,
                    append=None, threads=None))]
#[expect(unsafe_code, reason = "mapping the file saves a tenth of the time")]
pub(crate) fn encode_file<'py>(
    py: Python<'py>,
    tokenizer: &PyTokenizer,
    path: PathBuf,
    separator: Vec<u8>,
    lossy: bool,
    reads: bool,
    special: Option<&Bound<'py, PyAny>>,
    prepend: Option<&Bound<'py, PyAny>>,
    append: Option<&Bound<'py, PyAny>>,
    threads: Option<arguments::ThreadCount>,
) -> PyResult<Bound<'py, PyAny>> {
    let options = tokenizer.options(special, prepend, append, None)?;
    let tokenizer = &tokenizer.core;
    let threads = arguments::threads(threads);
    let file = FileOptions { separator, lossy, reads };
    arrays::ready(py)?;
    arrays::with_width!(tokenizer, Id => {
        // SAFETY: `bytepair.Tokenizer.encode_file` documents that the file must not change during
        // the call.
        let encode = || unsafe { tokenizer.encode_file::<Id>(&path, &file, &options, threads) };
        arrays::id_arrays(py, interrupt::detached(py, encode))
    })
}

// ---------------------------------------------------------------------------- texts that are not Unicode

/// The index of a text among others, and what is wrong with it where.
type InvalidText = (usize, String);

/// The texts of a list of `str` that have a lone surrogate.
#[pyfunction]
pub(crate) fn lone_surrogates(
    py: Python<'_>,
    texts: &Bound<'_, PyAny>,
) -> PyResult<Vec<InvalidText>> {
    let strings = arguments::strings(texts)?;
    let texts = errors::collect(strings.iter().map(text::text))?;
    Ok(py.detach(|| {
        let lone = |(index, text): (usize, &Text<'_>)| {
            let (at, code) = text.lone_surrogate()?;
            let reason = format!("{}, at character {at}", lone_surrogate(code));
            Some((index, reason))
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
) -> PyResult<Vec<InvalidText>> {
    let offsets = arguments::offsets(offsets)?;
    let data = arrays::stable(&data)?;
    py.detach(|| {
        let mut invalid = Vec::new();
        for (index, pair) in offsets.windows(2).enumerate() {
            if let Err(error) = from_utf8(document(&data, index, pair)?) {
                let at = error.valid_up_to();
                invalid.push((index, format!("the document is not UTF-8 at byte {at}")));
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

// ---------------------------------------------------------------------------- conversations

/// Ids, a mask that is 1 for each id that is trained on, and offsets.
type RenderedArrays<'py> =
    (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u8>>, Bound<'py, PyArray1<i64>>);

/// Render conversations: their ids, their mask, and the start of each (and the end of the last). A
/// segment is a text, an id, or `None` at the end of a message.
#[pyfunction]
#[pyo3(signature = (tokenizer, segments, trained, ends, *, join, threads=None))]
pub(crate) fn render<'py>(
    py: Python<'py>,
    tokenizer: &PyTokenizer,
    segments: &Bound<'_, PyList>,
    trained: &[u8],
    ends: Vec<usize>,
    join: bool,
    threads: Option<arguments::ThreadCount>,
) -> PyResult<RenderedArrays<'py>> {
    arrays::ready(py)?;
    let tokenizer = &tokenizer.core;
    let items = errors::collect(segments.iter().map(Ok))?;
    let texts = items.iter().map(|item| item.cast().ok().map(arguments::utf8).transpose());
    let texts = errors::collect(texts)?;
    let segments = items.iter().zip(&texts).map(|(item, text)| match text {
        Some(text) => Ok(Segment::Text(text)),
        None if item.is_none() => Ok(Segment::End),
        None => arguments::id(tokenizer, item).map(Segment::Id),
    });
    let segments = errors::collect(segments)?;
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let ranges = errors::collect(starts.zip(&ends).map(|(start, &end)| Ok(start..end)))?;
    if trained.len() != segments.len() || !ends.is_sorted() || ends.last() > Some(&segments.len()) {
        return Err(PyValueError::new_err(
            "segments and trained must have the same length, and ends must be sorted and within it",
        ));
    }
    let threads = arguments::threads(threads);
    let rendered = interrupt::detached(py, || {
        let trained = memory::collect(trained.iter().map(|&trained| trained != 0))?;
        tokenizer.render(&ranges, &segments, &trained, join, threads)
    });
    let rendered = errors::checked(rendered)?;
    let ends = rendered.lengths.iter().scan(0, |end, &length| {
        *end += arrays::integer(length);
        Some(*end)
    });
    let offsets = errors::collect(std::iter::once(0).chain(ends).map(Ok))?;
    let (ids, mask) = (rendered.ids.into_pyarray(py), rendered.mask.into_pyarray(py));
    Ok((ids, mask, offsets.into_pyarray(py)))
}
