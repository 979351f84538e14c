//! The low bits of an entry of the table; the row of the next state is above them.

/// A pretoken ends before this character, which begins the next one.
pub(super) const EMIT: u32 = 1;
/// No match continues with this character, and [`EMIT`] does not apply.
pub(super) const STOP: u32 = 2;
/// A match ends before this character.
pub(super) const MATCH: u32 = 4;
/// The number of these bits.
pub(super) const FLAG_BITS: u32 = 3;
