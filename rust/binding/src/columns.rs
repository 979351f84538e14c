//! Encodes Arrow columns and text files into arrays.

use std::path::PathBuf;

use bytepair::Text;
use bytepair::bulk::text_file::FileOptions;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::tokenizer::PyTokenizer;
use crate::{arguments, arrays, interrupt};

/// Encode the texts of an Arrow string column, given its bytes and its offsets.
#[pyfunction]
#[pyo3(signature = (tokenizer, data, offsets, *, special=None, prepend=None, append=None, threads=None))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub(crate) fn encode_utf8<'py>(
    py: Python<'py>,
    tokenizer: &Bound<'py, PyTokenizer>,
    data: arrays::ArrayArgument<'py, u8>,
    offsets: &Bound<'py, PyAny>,
    special: Option<&Bound<'py, PyAny>>,
    prepend: Option<&Bound<'py, PyAny>>,
    append: Option<&Bound<'py, PyAny>>,
    threads: Option<arguments::ThreadCount>,
) -> PyResult<Bound<'py, PyAny>> {
    let options = tokenizer.get().options(special, prepend, append, None)?;
    let tokenizer = tokenizer.get().core();
    let (data, offsets) = (arrays::stable(&data)?, arguments::offsets(offsets)?);
    let outside = || PyValueError::new_err("the offsets of the texts lie outside their data");
    let texts = offsets.windows(2).map(|pair| data.get(pair[0]..pair[1]).map(Text::Bytes));
    let texts = texts.collect::<Option<Vec<_>>>().ok_or_else(outside)?;
    let threads = arguments::threads_for(threads, &texts);
    let arrays = arrays::encode(py, tokenizer, &texts, &options, None, threads)?;
    arrays::id_arrays(py, arrays)
}

/// Encode the documents of a text file.
#[pyfunction]
#[pyo3(signature = (tokenizer, path, *, separator, lossy, reads=false, special=None, prepend=None,
                    append=None, threads=None))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
#[expect(unsafe_code, reason = "mapping the file saves a tenth of the time")]
pub(crate) fn encode_file<'py>(
    py: Python<'py>,
    tokenizer: &Bound<'py, PyTokenizer>,
    path: PathBuf,
    separator: Vec<u8>,
    lossy: bool,
    reads: bool,
    special: Option<&Bound<'py, PyAny>>,
    prepend: Option<&Bound<'py, PyAny>>,
    append: Option<&Bound<'py, PyAny>>,
    threads: Option<arguments::ThreadCount>,
) -> PyResult<Bound<'py, PyAny>> {
    let options = tokenizer.get().options(special, prepend, append, None)?;
    let tokenizer = tokenizer.get().core();
    let threads = arguments::threads(threads);
    let file = FileOptions { separator, lossy, reads };
    arrays::ready(py)?;
    arrays::with_width!(tokenizer, Id => {
        // SAFETY: `bytepair.Tokenizer.encode_file` documents that the file must not change during
        // the call.
        let encode = || unsafe { tokenizer.encode_file::<Id>(&path, &file, &options, threads) };
        arrays::id_arrays(py, arrays::into_numpy(py, interrupt::detached(py, encode))?)
    })
}
