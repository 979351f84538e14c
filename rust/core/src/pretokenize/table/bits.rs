//! The bits of an entry of the table, below the row of the next state.

/// A pretoken ends before this character, which begins the next one.
pub(super) const EMIT: u32 = 1;
/// No match continues with this character, and no pretoken ends just before it.
pub(super) const STOP: u32 = 2;
/// A match ends before this character.
pub(super) const MATCH: u32 = 4;
/// The number of these bits.
pub(super) const SHIFT: u32 = 3;
