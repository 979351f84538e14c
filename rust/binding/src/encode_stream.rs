//! `EncodeStream`: encodes text that arrives in pieces.

use bytepair::Text;
use numpy::IntoPyArray;
use pyo3::prelude::*;

use crate::arrays::{self, with_width};
use crate::text::text;
use crate::tokenizer::PyTokenizer;
use crate::{arguments, errors};

/// Encodes text that arrives in pieces; the concatenated ids equal those of the whole text.
#[pyclass(name = "EncodeStream", module = "bytepair._core")]
pub(crate) struct PyEncodeStream {
    tokenizer: Py<PyTokenizer>,
    stream: bytepair::bulk::stream::EncodeStream,
}

#[pymethods]
impl PyEncodeStream {
    #[new]
    #[pyo3(signature = (tokenizer, *, special=None))]
    fn new(tokenizer: Py<PyTokenizer>, special: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let core = tokenizer.get().core();
        let (special, _, _) = arguments::options(core, special, None, None)?;
        let stream = errors::checked(bytepair::bulk::stream::EncodeStream::new(core, &special))?;
        Ok(Self { tokenizer, stream })
    }

    /// Take a piece of text and return the ids that are now final.
    fn push<'py>(
        &mut self,
        py: Python<'py>,
        piece: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let piece = text(arguments::string(piece)?)?;
        self.step(py, Some(&piece))
    }

    /// End the text and return the remaining ids; the stream can be used again.
    fn flush<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.step(py, None)
    }
}

impl PyEncodeStream {
    fn step<'py>(
        &mut self,
        py: Python<'py>,
        piece: Option<&Text<'_>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        arrays::ready(py)?;
        let (tokenizer, stream) = (self.tokenizer.get().core(), &mut self.stream);
        with_width!(tokenizer, Id => {
            let mut ids = Vec::<Id>::new();
            errors::checked(py.detach(|| match piece {
                Some(piece) => stream.push(tokenizer, piece, &mut ids),
                None => stream.flush(tokenizer, &mut ids),
            }))?;
            Ok(ids.into_pyarray(py).into_any())
        })
    }
}
