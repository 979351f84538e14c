//! The symbols from which merging starts, where these are not simply bytes.

/// The symbols of a pretoken before its first merge, as Hugging Face `tokenizers` makes them for a
/// model of type BPE: one for each unit, with the prefix or suffix that its place asks for.
///
/// A tokenizer without this value starts from bytes (or, under
/// [`MergeRule::Characters`](crate::MergeRule::Characters), from characters).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartSymbols {
    /// What one symbol stands for.
    pub unit: SymbolUnit,
    /// What precedes each unit but the first of a pretoken (`continuing_subword_prefix`); a merge
    /// drops it from its right part.
    pub prefix: String,
    /// What follows the last unit of a pretoken (`end_of_word_suffix`).
    pub suffix: String,
    /// The id that stands for a unit without a token (`unk_token`); without it, and without a byte
    /// token, such a unit is an error.
    pub unknown: Option<u32>,
    /// Whether adjacent unknown units become one id (`fuse_unk`).
    pub fuse_unknown: bool,
    /// The ids of the tokens of all 256 bytes, by which a unit without a token is encoded
    /// (`byte_fallback`); empty if there are none.
    pub byte_ids: Vec<u32>,
}

/// What a symbol stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolUnit {
    /// One byte of the pretoken; the names of tokens are in GPT-2's characters.
    Byte,
    /// One character of the pretoken.
    Character,
}
