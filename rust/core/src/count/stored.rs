//! A column of a table of counts: a vector, or a mapped file whose pages the system may evict.

use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::error::Result;
use crate::machine::array::{Array, FileBytes, LittleEndian};
use crate::memory;

/// A column of a table, in memory or in a file.
#[derive(Debug, Clone)]
pub(super) enum Column<T: LittleEndian> {
    Memory(Vec<T>),
    File(Arc<FileBytes>, Array<T>),
}

impl<T: LittleEndian> Column<T> {
    /// The values in a file.
    pub(super) fn of_file(bytes: FileBytes) -> Self {
        let (file, length) = (Arc::new(bytes), size_of::<T>());
        let whole = 0..file.len() / length * length;
        let items = Array::mapped(&file, whole).expect("a mapping is aligned to pages");
        Self::File(file, items)
    }

    /// The values as a mutable vector; a file is read into memory first.
    #[inline]
    pub(super) fn values(&mut self) -> Result<&mut Vec<T>> {
        if let Self::File(_, items) = self {
            *self = Self::Memory(memory::copy(items)?);
        }
        match self {
            Self::Memory(values) => Ok(values),
            Self::File(..) => unreachable!("the file was read into memory"),
        }
    }

    /// A copy of the values; a file is shared. Fails if there is not enough memory.
    pub(super) fn copy(&self) -> Result<Self> {
        match self {
            Self::Memory(values) => Ok(Self::Memory(memory::copy(values)?)),
            Self::File(file, items) => Ok(Self::File(Arc::clone(file), items.clone())),
        }
    }

    /// Tell the system that a range of the values is not needed for now, if they are in a file.
    pub(super) fn release(&self, range: &Range<usize>) {
        if let Self::File(file, _) = self {
            file.release(range.start * size_of::<T>()..range.end * size_of::<T>());
        }
    }
}

impl<T: LittleEndian> Deref for Column<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Self::Memory(values) => values,
            Self::File(_, items) => items,
        }
    }
}

impl<T: LittleEndian> Default for Column<T> {
    fn default() -> Self {
        Self::Memory(Vec::new())
    }
}

impl<T: LittleEndian + PartialEq> PartialEq for Column<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: LittleEndian + Eq> Eq for Column<T> {}
