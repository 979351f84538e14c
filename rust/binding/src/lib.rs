//! The Python module `bytepair._core`: one file for each class; it only translates.
//!
//! Every method borrows its arguments, releases the interpreter lock, calls one function of the
//! core and turns the result, or the error, into Python.

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _core {
    #[pymodule_export]
    const UNICODE_VERSION: &str = bytepair::pretokenize::UNICODE_VERSION;
}
