//! The classes of the bytes of a block, as bit masks: bit `i` of a mask belongs to byte `i`.

/// The number of bytes that are classified together.
pub(super) const BLOCK_BYTES: usize = 64;

/// The bytes of each class. Bytes after the last complete character are only in `high` and
/// `continuation`.
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
    /// The character U+0020; its bytes are also in `space`.
    pub(super) blank: u64,
    pub(super) apostrophe: u64,
    pub(super) slash: u64,
    /// Bytes that are not ASCII.
    pub(super) high: u64,
    /// Bytes that continue a character.
    pub(super) continuation: u64,
    /// Bytes of complete characters.
    pub(super) valid: u64,
}

/// The classes of the characters that are not ASCII.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NonAscii {
    /// The bytes of complete characters, ASCII or not.
    pub(super) valid: u64,
    /// The bytes of the characters of each class, by the number of the class. The mask of class
    /// `Other` may be incomplete.
    pub(super) classes: [u64; 8],
}
