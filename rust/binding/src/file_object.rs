//! A Python file object as a source of bytes, and the exception that it raises.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use bytepair::corpus::parquet::ReadAt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors;

/// The exception that a Python file object raised, if any; a reader and its file object share it.
#[derive(Clone, Default)]
pub(crate) struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    fn put(&self, error: PyErr) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    /// The exception of the file object, if it caused this error of the core; otherwise the error.
    pub(crate) fn or(&self, error: &bytepair::Error) -> PyErr {
        let raised = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        raised.unwrap_or_else(|| errors::python(error))
    }
}

/// A Python file object as a source of bytes.
pub(crate) struct FileObject {
    file: Py<PyAny>,
    size: u64,
    raised: Raised,
}

impl FileObject {
    /// A file of `size` bytes; reading from the current position needs no size.
    pub(crate) fn new(file: Py<PyAny>, size: u64, raised: &Raised) -> Self {
        Self { file, size, raised: raised.clone() }
    }

    /// Read from the current position of the file object, or from `offset`.
    fn read_from(&self, offset: Option<u64>, buffer: &mut [u8]) -> io::Result<usize> {
        let read = |py: Python<'_>| {
            if let Some(offset) = offset {
                self.file.call_method1(py, "seek", (offset,))?;
            }
            let bytes = self.file.call_method1(py, "read", (buffer.len(),))?;
            let bytes = bytes.bind(py).cast::<PyBytes>()?.as_bytes();
            let wrong = || PyValueError::new_err("read(size) returned more than size bytes");
            let destination = buffer.get_mut(..bytes.len()).ok_or_else(wrong)?;
            destination.copy_from_slice(bytes);
            Ok(bytes.len())
        };
        Python::attach(read).map_err(|error: PyErr| {
            let text = error.to_string();
            self.raised.put(error);
            // Of a kind that no decompressor uses: a source that fails is not a damaged file.
            io::Error::new(io::ErrorKind::ConnectionAborted, text)
        })
    }
}

impl Read for FileObject {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.read_from(None, buffer)
    }
}

impl ReadAt for FileObject {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.read_from(Some(offset), buffer)
    }
}
