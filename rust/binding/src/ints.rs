//! Ids as Python integers, each made once.
//!
//! A list of ids is mostly the same few thousand numbers. To count one more reference to an integer
//! that is there takes a fraction of the time that making another one takes, and no memory. At most
//! one integer is made for each id of the vocabulary (32 bytes), when it first occurs, and room for
//! some hundred neighbours with it.
#![expect(unsafe_code, reason = "a list is filled without asking for each place; 3 times as fast")]

use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use bytepair::memory;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::errors;

/// So many ids have their room together.
const TOGETHER: usize = 256;

/// Each null, or a reference that is owned until the end.
type Slots = [AtomicPtr<ffi::PyObject>; TOGETHER];

/// The integers of one tokenizer.
pub(crate) struct Ints {
    /// Those of ids that follow each other.
    rooms: Box<[OnceLock<Box<Slots>>]>,
}

impl Ints {
    /// Room for the ids below `vocab_size`; no integer is made yet.
    pub(crate) fn new(vocab_size: usize) -> Self {
        Self { rooms: (0..vocab_size.div_ceil(TOGETHER)).map(|_| OnceLock::new()).collect() }
    }

    #[inline]
    fn slot(&self, id: u32) -> PyResult<&AtomicPtr<ffi::PyObject>> {
        let room = &self.rooms[id as usize / TOGETHER];
        let slots = match room.get() {
            Some(slots) => slots,
            None => Self::furnish(room)?,
        };
        Ok(&slots[id as usize % TOGETHER])
    }

    /// Make the slots of a room.
    #[cold]
    fn furnish(room: &OnceLock<Box<Slots>>) -> PyResult<&Slots> {
        let mut slots = errors::checked(memory::with_room(TOGETHER))?;
        slots.resize_with(TOGETHER, AtomicPtr::default);
        let slots = slots.into_boxed_slice().try_into();
        Ok(room.get_or_init(|| slots.expect("as many as that")))
    }

    /// A list of ids, all of them below `vocab_size`.
    pub(crate) fn list<'py>(&self, py: Python<'py>, ids: &[u32]) -> PyResult<Bound<'py, PyList>> {
        let length = ffi::Py_ssize_t::try_from(ids.len())?;
        // SAFETY: a new list is owned by nobody else; null is turned into Python's error.
        let list = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyList_New(length))? };
        for (place, &id) in (0..).zip(ids) {
            let int = match self.slot(id)?.load(Ordering::Acquire) {
                known if known.is_null() => self.make(py, id)?,
                known => known,
            };
            // SAFETY: `int` is alive, since its slot owns a reference. The list has `length` empty
            // places, nobody else can see it yet, and each place takes over one new reference.
            unsafe {
                ffi::Py_INCREF(int);
                ffi::PyList_SET_ITEM(list.as_ptr(), place, int);
            }
        }
        list.cast_into().map_err(Into::into)
    }

    /// Make an integer and keep it; if another thread was quicker, take its one.
    #[cold]
    fn make(&self, py: Python<'_>, id: u32) -> PyResult<*mut ffi::PyObject> {
        let made = id.into_pyobject(py)?.into_any().unbind();
        let slot = self.slot(id)?;
        let (null, new) = (ptr::null_mut(), made.as_ptr());
        match slot.compare_exchange(null, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ok(made.into_ptr()),
            Err(known) => Ok(known),
        }
    }
}

impl Drop for Ints {
    fn drop(&mut self) {
        let rooms = self.rooms.iter_mut().filter_map(OnceLock::get_mut);
        let slots = rooms.flat_map(|slots| slots.iter_mut());
        // At the very end of Python nothing can be given back, nor needs to be.
        Python::try_attach(|py| {
            for slot in slots {
                // SAFETY: each slot owns one reference, which nobody uses any more.
                drop(unsafe { Bound::from_owned_ptr_or_opt(py, *slot.get_mut()) });
            }
        });
    }
}
