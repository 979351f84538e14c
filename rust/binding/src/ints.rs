//! Python integers for ids, created once for each id.
//!
//! A list of ids mostly repeats the same few thousand numbers. Counting another reference to an
//! existing integer takes a fraction of the time of creating one, and no memory. At most one
//! integer (32 bytes) is created for each id, when the id first occurs.

#![expect(unsafe_code, reason = "a new list is filled without checks; 3 times as fast")]

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use bytepair::memory;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::errors;

/// The integers of one tokenizer.
pub(crate) struct Ints {
    /// For each id, null or an owned reference. Untouched, the slots are only address space.
    slots: Vec<AtomicPtr<ffi::PyObject>>,
}

impl Ints {
    /// Empty slots for the ids below `vocab_size`.
    pub(crate) fn new(vocab_size: usize) -> PyResult<Self> {
        Ok(Self { slots: errors::checked(memory::zeros(vocab_size))? })
    }

    /// A list of ids, each below `vocab_size`.
    pub(crate) fn list<'py>(&self, py: Python<'py>, ids: &[u32]) -> PyResult<Bound<'py, PyList>> {
        let length = ffi::Py_ssize_t::try_from(ids.len())?;
        // SAFETY: `PyList_New` returns an owned reference, or null with an exception set, which
        // becomes an error.
        let list = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyList_New(length))? };
        for (index, &id) in (0..).zip(ids) {
            let int = match self.slots[id as usize].load(Ordering::Acquire) {
                existing if existing.is_null() => self.make(py, id)?,
                existing => existing,
            };
            // SAFETY: `int` is alive, because its slot owns a reference. The list has `length`
            // items, and `index` is below it. This item is still null, so no reference is lost;
            // `PyList_SET_ITEM` takes over the new one. Other code can find the list only through
            // the garbage collector (`gc.get_objects()`). Under the GIL none runs in the loop, since
            // only `make` calls Python, which creates an `int`. Without a GIL, a thread would have
            // to change a list found so: CPython's own functions that fill a list rely on that too.
            unsafe {
                ffi::Py_INCREF(int);
                ffi::PyList_SET_ITEM(list.as_ptr(), index, int);
            }
        }
        list.cast_into().map_err(Into::into)
    }

    /// Create the integer of an id, or return the one that another thread created first.
    #[cold]
    fn make(&self, py: Python<'_>, id: u32) -> PyResult<*mut ffi::PyObject> {
        let int = id.into_pyobject(py)?.into_any().unbind();
        let (null, new) = (ptr::null_mut(), int.as_ptr());
        match self.slots[id as usize].compare_exchange(
            null,
            new,
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            Ok(_) => Ok(int.into_ptr()),
            Err(existing) => Ok(existing),
        }
    }
}

impl Drop for Ints {
    fn drop(&mut self) {
        // After the interpreter has shut down, nothing can or needs to be released.
        Python::try_attach(|py| {
            for slot in &mut self.slots {
                // SAFETY: each slot that is not null owns one reference, and nobody else uses it.
                drop(unsafe { Bound::from_owned_ptr_or_opt(py, *slot.get_mut()) });
            }
        });
    }
}
