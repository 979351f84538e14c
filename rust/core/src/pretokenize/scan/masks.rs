//! The classes of the bytes of a block, as bit masks: bit `i` of a mask belongs to byte `i`.

/// The number of bytes that are classified together.
pub(super) const BLOCK: usize = 64;

/// The bytes of each class. Bytes after the last whole character are in no mask but `high` and `continuation`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Masks {
    pub(super) upper: u64,
    pub(super) lower: u64,
    /// Letters without case.
    pub(super) uncased: u64,
    pub(super) mark: u64,
    pub(super) number: u64,
    /// White space other than newlines.
    pub(super) space: u64,
    pub(super) newline: u64,
    /// The character U+0020, which is in `space` too.
    pub(super) blank: u64,
    pub(super) apostrophe: u64,
    pub(super) slash: u64,
    /// Bytes that are not ASCII.
    pub(super) high: u64,
    /// Bytes that continue a character.
    pub(super) continuation: u64,
    /// Bytes of whole characters.
    pub(super) valid: u64,
}

/// The classes of the characters that are not ASCII.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NonAscii {
    /// The bytes of whole characters, ASCII or not.
    pub(super) valid: u64,
    /// By the number of a class, the bytes of its characters. Class `Other` may be left out.
    pub(super) classes: [u64; 8],
}
