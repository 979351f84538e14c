//! Receives ids: appends them to a vector, or passes them on in blocks.

use crate::error::Result;
use crate::memory;

/// How an id is stored: as `u32`, as `u16` for small vocabularies, or as `()` for counting only.
pub trait Id: Copy + Default + Send + Sync {
    /// Store an id, which must fit.
    fn of(id: u32) -> Self;

    /// Append the ids that `make` appends to a vector of `u32`. `block` is a buffer.
    fn append<R>(
        ids: &mut Vec<Self>,
        block: &mut Vec<u32>,
        make: impl FnOnce(&mut Vec<u32>) -> Result<R>,
    ) -> Result<R> {
        block.clear();
        let result = make(block)?;
        memory::reserve(ids, block.len())?;
        ids.extend(block.iter().map(|&id| Self::of(id)));
        Ok(result)
    }
}

impl Id for u32 {
    fn of(id: u32) -> Self {
        id
    }

    /// No copy is needed.
    fn append<R>(
        ids: &mut Vec<Self>,
        _: &mut Vec<u32>,
        make: impl FnOnce(&mut Vec<u32>) -> Result<R>,
    ) -> Result<R> {
        make(ids)
    }
}

impl Id for u16 {
    #[expect(clippy::cast_possible_truncation, reason = "the size of the vocabulary was checked")]
    fn of(id: u32) -> Self {
        id as Self
    }
}

impl Id for () {
    fn of(_: u32) -> Self {}
}

/// Takes the ids of a text in order.
pub(crate) trait IdSink {
    /// Take the ids that `make` appends to a vector, which may already contain ids.
    fn make<R>(&mut self, make: impl FnOnce(&mut Vec<u32>) -> Result<R>) -> Result<R>;

    /// Take existing ids.
    fn take(&mut self, ids: &[u32]) -> Result<()> {
        self.make(|out| memory::extend(out, ids))
    }
}

/// Appends to a vector. `block` is a buffer for ids whose type differs from `u32`.
pub(crate) struct Append<'a, T> {
    pub(crate) out: &'a mut Vec<T>,
    pub(crate) block: &'a mut Vec<u32>,
}

impl<T: Id> IdSink for Append<'_, T> {
    #[inline]
    fn make<R>(&mut self, make: impl FnOnce(&mut Vec<u32>) -> Result<R>) -> Result<R> {
        T::append(self.out, self.block, make)
    }
}

/// Calls a function with a few hundred ids at a time.
pub(crate) struct Blocks<'a, F> {
    pub(crate) block: &'a mut Vec<u32>,
    pub(crate) call: F,
}

impl<F: FnMut(&[u32]) -> Result<()>> IdSink for Blocks<'_, F> {
    #[inline]
    fn make<R>(&mut self, make: impl FnOnce(&mut Vec<u32>) -> Result<R>) -> Result<R> {
        self.block.clear();
        let result = make(self.block)?;
        (self.call)(self.block)?;
        Ok(result)
    }

    fn take(&mut self, ids: &[u32]) -> Result<()> {
        (self.call)(ids)
    }
}
