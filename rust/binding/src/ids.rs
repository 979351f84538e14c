//! Ids passed from Python, as lists of `int` or as arrays.

use bytepair::{Result, Tokenizer, decode, memory};
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use pyo3::{ffi, intern};

use crate::{arguments, arrays, errors};

/// Ids, owned or borrowed from an array that this value keeps alive.
pub(crate) enum Ids<'py> {
    Own(Vec<u32>),
    U16(PyReadonlyArray1<'py, u16>),
    U32(PyReadonlyArray1<'py, u32>),
    U64(PyReadonlyArray1<'py, u64>),
    I32(PyReadonlyArray1<'py, i32>),
    I64(PyReadonlyArray1<'py, i64>),
}

/// Ids as a slice, which threads may share.
#[derive(Clone, Copy)]
pub(crate) enum Slice<'a> {
    U16(&'a [u16]),
    U32(&'a [u32]),
    U64(&'a [u64]),
    I32(&'a [i32]),
    I64(&'a [i64]),
}

impl<'py> Ids<'py> {
    /// Take ids from a list, a numpy array, an object with `__array__` (Arrow arrays, tensors), or
    /// any iterable.
    pub(crate) fn new(tokenizer: &Tokenizer, sequence: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(list) = sequence.cast::<PyList>() {
            if let Some(ids) = plain(list)? {
                return Ok(Self::Own(ids));
            }
            let ids = list.iter().map(|number| arguments::id(tokenizer, &number));
            return errors::collect(ids).map(Self::Own);
        }
        let py = sequence.py();
        arrays::ready(py)?;
        let array = if sequence.is_instance_of::<PyUntypedArray>() {
            Some(sequence.clone())
        } else if sequence.hasattr(intern!(py, "__array__"))? {
            Some(sequence.call_method0(intern!(py, "__array__"))?)
        } else {
            None
        };
        if let Some(ids) = array.map(|array| Self::of_array(&array)).transpose()?.flatten() {
            return Ok(ids);
        }
        let wrong =
            || arguments::refused("ids", sequence, "a list, an array or an iterable of ids");
        if sequence.is_instance_of::<PyString>() || sequence.is_instance_of::<PyDict>() {
            return Err(wrong());
        }
        let ids = sequence
            .try_iter()
            .map_err(|_| wrong())?
            .map(|number| arguments::id(tokenizer, &number?));
        errors::collect(ids).map(Self::Own)
    }

    /// Borrow an array of a supported type, copied if it is not contiguous; `None` for other types,
    /// which are iterated.
    fn of_array(array: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        macro_rules! borrow {
            ($($kind:ident: $number:ty),*) => {$(
                if let Ok(numbers) = array.cast::<PyArray1<$number>>() {
                    let whole = match numbers.is_contiguous() {
                        true => numbers.clone(),
                        false => array.call_method0("copy")?.cast_into()?,
                    };
                    return Ok(Some(Self::$kind(whole.try_readonly()?)));
                }
            )*};
        }
        borrow!(U16: u16, U32: u32, I64: i64, I32: i32, U64: u64);
        Ok(None)
    }

    pub(crate) fn slice(&self) -> PyResult<Slice<'_>> {
        Ok(match self {
            Self::Own(ids) => Slice::U32(ids),
            Self::U16(ids) => Slice::U16(ids.as_slice()?),
            Self::U32(ids) => Slice::U32(ids.as_slice()?),
            Self::U64(ids) => Slice::U64(ids.as_slice()?),
            Self::I32(ids) => Slice::I32(ids.as_slice()?),
            Self::I64(ids) => Slice::I64(ids.as_slice()?),
        })
    }
}

/// The ids of a list whose items are all exactly of type `int` and fit 32 bits; `None` for any
/// other list.
///
/// Uses borrowed references: counting references for each item, as safe code does, would triple the
/// time.
#[expect(unsafe_code, reason = "borrowed references")]
fn plain(list: &Bound<'_, PyList>) -> PyResult<Option<Vec<u32>>> {
    with_critical_section(list, || {
        let mut ids = errors::checked(memory::with_capacity(list.len()))?;
        let items = (0..ffi::Py_ssize_t::try_from(list.len())?).map(|index| {
            // SAFETY: `index` is below the length of the list, which keeps its item alive: neither
            // changes before the item is read. Other threads wait for the critical section or the
            // GIL, and reading an `int` runs no Python code. An `int` that is too large sets an
            // exception, which may run some (a garbage collection), but the item is not used
            // afterwards, and no other item is read: the loop ends.
            let number = unsafe {
                let item = ffi::PyList_GET_ITEM(list.as_ptr(), index);
                if ffi::PyLong_CheckExact(item) == 0 {
                    return None;
                }
                ffi::PyLong_AsLongLong(item)
            };
            u32::try_from(number).ok()
        });
        let complete = items.take(list.len()).try_for_each(|id| id.map(|id| ids.push(id)));
        // `PyLong_AsLongLong` sets an exception for an integer that is too large.
        let _too_large = PyErr::take(list.py());
        Ok(complete.map(|()| ids))
    })
}

/// Run the same code on ids of any type.
macro_rules! with_ids {
    ($slice:expr, $ids:ident => $action:expr) => {
        match $slice {
            Slice::U16($ids) => $action,
            Slice::U32($ids) => $action,
            Slice::U64($ids) => $action,
            Slice::I32($ids) => $action,
            Slice::I64($ids) => $action,
        }
    };
}

impl Slice<'_> {
    pub(crate) fn len(self) -> usize {
        with_ids!(self, ids => ids.len())
    }

    /// The concatenated bytes of the ids, without those in `skipped`, which is in order.
    pub(crate) fn decode(self, tokenizer: &Tokenizer, skipped: &[u32]) -> Result<Vec<u8>> {
        if skipped.is_empty() {
            return with_ids!(self, ids => tokenizer.decode_bytes(ids));
        }
        with_ids!(self, ids => tokenizer.decode_bytes(&decode::without(ids, skipped)?))
    }

    /// The same as Python's `bytes`; written into them directly, unless decoding does more than to
    /// join the bytes of tokens.
    pub(crate) fn decode_to_python<'py>(
        self,
        py: Python<'py>,
        tokenizer: &Tokenizer,
    ) -> PyResult<Bound<'py, PyBytes>> {
        if tokenizer.drops_space() || !tokenizer.decodes_bytes() {
            let bytes = errors::checked(py.detach(|| self.decode(tokenizer, &[])))?;
            return Ok(PyBytes::new(py, &bytes));
        }
        let vocabulary = tokenizer.vocabulary();
        let length = py.detach(|| with_ids!(self, ids => decode::decoded_length(vocabulary, ids)));
        PyBytes::new_with(py, errors::checked(length)?, |buffer| {
            let written =
                py.detach(|| with_ids!(self, ids => decode::write(vocabulary, ids, buffer)));
            errors::checked(written)
        })
    }
}
