//! `render`: batches of conversations, from segments to arrays.

use std::borrow::Cow;

use bytepair::bulk::conversations::{RenderOptions, Segment};
use bytepair::memory;
use numpy::IntoPyArray;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PyString};

use crate::results::PyRendered;
use crate::tokenizer::PyTokenizer;
use crate::{arguments, arrays, errors, interrupt};

/// An item of a Python list of segments: a text, an id, or `None` at the end of a message.
enum Piece<'a> {
    Text(Cow<'a, str>),
    Id(u32),
    End,
}

impl<'a> Piece<'a> {
    fn new(tokenizer: &bytepair::Tokenizer, item: &'a Bound<'_, PyAny>) -> PyResult<Self> {
        if item.is_none() {
            return Ok(Self::End);
        }
        if item.is_instance_of::<PyInt>() {
            return arguments::id(tokenizer, item).map(Self::Id);
        }
        arguments::utf8(item.cast::<PyString>()?).map(Self::Text)
    }

    fn segment(&self) -> Segment<'_> {
        match self {
            Self::Text(text) => Segment::Text(text),
            Self::Id(id) => Segment::Id(*id),
            Self::End => Segment::End,
        }
    }
}

/// Render conversations: their ids, their mask, and the start of each (and the end of the last).
#[pyfunction]
#[pyo3(signature = (tokenizer, segments, trained, ends, *, join, max_tokens=None,
                    whole_messages=false, threads=None))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub(crate) fn render(
    py: Python<'_>,
    tokenizer: &Bound<'_, PyTokenizer>,
    segments: &Bound<'_, PyList>,
    trained: &[u8],
    ends: Vec<usize>,
    join: bool,
    max_tokens: Option<usize>,
    whole_messages: bool,
    threads: Option<arguments::ThreadCount>,
) -> PyResult<PyRendered> {
    arrays::ready(py)?;
    let tokenizer = tokenizer.get().core();
    let items = errors::collect(segments.iter().map(Ok))?;
    let pieces = items.iter().map(|item| Piece::new(tokenizer, item));
    let pieces = errors::collect(pieces)?;
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let ranges = errors::collect(starts.zip(&ends).map(|(start, &end)| Ok(start..end)))?;
    if trained.len() != pieces.len() || !ends.is_sorted() || ends.last() > Some(&pieces.len()) {
        return Err(PyValueError::new_err(
            "segments and trained must have the same length, and ends must be sorted and within it",
        ));
    }
    let threads = arguments::threads(threads);
    let options = RenderOptions { join, max_tokens, whole_messages };
    let rendered = interrupt::detached(py, || {
        let segments = memory::collect(pieces.iter().map(Piece::segment))?;
        let trained = memory::collect(trained.iter().map(|&trained| trained != 0))?;
        tokenizer.render(&ranges, &segments, &trained, options, threads)
    });
    let rendered = errors::checked(rendered)?;
    let ends = rendered.lengths.iter().scan(0, |end, &length| {
        *end += arrays::integer(length);
        Some(*end)
    });
    let offsets = errors::collect(std::iter::once(0).chain(ends).map(Ok))?;
    Ok(PyRendered {
        ids: rendered.ids.into_pyarray(py).unbind(),
        mask: rendered.mask.into_pyarray(py).unbind(),
        offsets: offsets.into_pyarray(py).unbind(),
    })
}
