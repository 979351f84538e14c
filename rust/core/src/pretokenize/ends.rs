//! A buffer of the ends of pretokens, and the facts about a position between two characters.

/// What the characters on both sides of a position determine about it, for any surrounding text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Boundary {
    /// A pretoken ends there, and also if the text ends there.
    End,
    /// Neither side changes the matches on the other side, and no match spans the position; but
    /// uncovered text may.
    Free,
    /// Nothing.
    Unknown,
}

/// A buffer of the ends of pretokens.
#[derive(Debug)]
pub struct PretokenEnds {
    pub(super) few: [usize; Self::CAPACITY],
    pub(super) length: usize,
    /// All ends, without limit, if the pattern has steps; otherwise empty.
    pub(super) more: Vec<usize>,
}

impl Default for PretokenEnds {
    fn default() -> Self {
        Self { few: [0; Self::CAPACITY], length: 0, more: Vec::new() }
    }
}

impl PretokenEnds {
    /// The number of ends that fit; a pattern with steps may give more.
    pub const CAPACITY: usize = 1024;

    /// The ends, in ascending order.
    pub fn as_slice(&self) -> &[usize] {
        if self.more.is_empty() { &self.few[..self.length] } else { &self.more }
    }

    pub(super) fn clear(&mut self) {
        self.length = 0;
        self.more.clear();
    }

    pub(super) fn is_full(&self) -> bool {
        self.length == Self::CAPACITY
    }

    pub(super) fn room(&self) -> usize {
        Self::CAPACITY - self.length
    }

    /// Capacity for `COUNT` more ends, of which [`add`](Self::add) adds the first.
    #[inline]
    pub(super) fn spare<const COUNT: usize>(&mut self) -> &mut [usize; COUNT] {
        self.few[self.length..].first_chunk_mut().expect("the caller reserved room")
    }

    /// Add the first `count` ends of the spare capacity.
    #[inline]
    pub(super) fn add(&mut self, count: usize) {
        self.length += count;
    }

    #[inline]
    pub(super) fn push(&mut self, end: usize) {
        self.few[self.length] = end;
        self.length += 1;
    }
}
