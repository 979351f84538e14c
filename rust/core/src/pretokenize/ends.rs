//! A buffer of the ends of pretokens, and the kinds of a position between two characters.

use crate::search::Budget;

/// What the two characters around a position determine about it, for any surrounding text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Boundary {
    /// A pretoken always ends there, and would also end there if the text did.
    End,
    /// Neither side changes the matches on the other side, and no match spans the position. But
    /// text that no match covers may span it.
    Free,
    /// The two characters do not determine it.
    Unknown,
}

impl Boundary {
    /// The kind for several steps, each of which splits the pieces of the one before.
    ///
    /// A text may be cut where a step ends a pretoken if the position is free in all earlier steps.
    /// These then give the same pieces as for the whole text, except that the piece around the
    /// position is in two parts; that step would divide it there anyway. Later steps do not matter.
    pub(super) fn of_steps(mut steps: impl Iterator<Item = Self>) -> Self {
        steps.find(|&boundary| boundary != Self::Free).unwrap_or(Self::Free)
    }
}

/// A buffer of the ends of pretokens.
#[derive(Debug)]
pub struct PretokenEnds {
    pub(super) buffer: [usize; Self::CAPACITY],
    pub(super) length: usize,
    /// If the pattern has steps, all ends, in any number; otherwise empty.
    pub(super) more: Vec<usize>,
    /// What is left of the time for searches in this text, if its pattern needs searches.
    pub(super) budget: Option<Budget>,
}

impl Default for PretokenEnds {
    fn default() -> Self {
        Self { buffer: [0; Self::CAPACITY], length: 0, more: Vec::new(), budget: None }
    }
}

impl PretokenEnds {
    /// The number of ends that fit in the buffer; a pattern with steps may have more.
    pub const CAPACITY: usize = if cfg!(test) { 128 } else { 1024 };

    /// The ends, in ascending order.
    pub fn as_slice(&self) -> &[usize] {
        if self.more.is_empty() { &self.buffer[..self.length] } else { &self.more }
    }

    pub(super) fn clear(&mut self) {
        self.length = 0;
        self.more.clear();
    }

    pub(super) fn is_full(&self) -> bool {
        self.length == Self::CAPACITY
    }

    /// The number of ends that can be added.
    pub(super) fn spare_capacity(&self) -> usize {
        Self::CAPACITY - self.length
    }

    /// Spare capacity for `COUNT` ends; [`add`](Self::add) then adds the first of them.
    #[inline]
    pub(super) fn spare<const COUNT: usize>(&mut self) -> &mut [usize; COUNT] {
        self.buffer[self.length..].first_chunk_mut().expect("the caller checked the capacity")
    }

    /// Add the first `count` ends of the spare capacity.
    #[inline]
    pub(super) fn add(&mut self, count: usize) {
        self.length += count;
    }

    #[inline]
    pub(super) fn push(&mut self, end: usize) {
        self.buffer[self.length] = end;
        self.length += 1;
    }
}
