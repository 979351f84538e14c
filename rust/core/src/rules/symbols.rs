//! The symbols from which merging starts, where these are not simply bytes.

use serde::{Deserialize, Serialize};

/// The symbols of a pretoken before its first merge, as Hugging Face `tokenizers` makes them for a
/// model of type BPE: one for each character, with the prefix or suffix that its place asks for.
///
/// The bytes of the vocabulary are then the names of tokens, in UTF-8. A tokenizer without this value
/// starts from bytes (or, under [`MergeRule::Characters`](crate::MergeRule::Characters), from the
/// characters of a text, whose bytes are tokens too).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StartSymbols {
    /// What precedes each character but the first of a pretoken (`continuing_subword_prefix`); a merge
    /// drops it from its right part.
    pub prefix: String,
    /// What follows the last character of a pretoken (`end_of_word_suffix`).
    pub suffix: String,
    /// The id that stands for a symbol without a token (`unk_token`); without it, and without tokens
    /// of bytes, such a symbol is an error.
    pub unknown: Option<u32>,
    /// Whether adjacent unknown symbols become one id (`fuse_unk`).
    pub fuse_unknown: bool,
    /// Whether a symbol without a token becomes the tokens of its bytes, such as `<0x0A>`, if all of
    /// them exist (`byte_fallback`).
    pub byte_fallback: bool,
}

/// The name of the token of a byte.
///
/// ```
/// assert_eq!(bytepair::rules::symbols::name_of_byte(10), "<0x0A>");
/// ```
pub fn name_of_byte(byte: u8) -> String {
    format!("<0x{byte:02X}>")
}
