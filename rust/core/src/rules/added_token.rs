//! A token that is found in a text before the text is split.

/// A token that is found in a text by its content, before anything is split or merged.
///
/// *Special* tokens give a text its structure; ordinary text contains them only where the caller
/// allows it. The others are ordinary text that always becomes one id, such as runs of spaces in
/// vocabularies for code. The flags are those of Hugging Face `tokenizers`.
///
/// ```
/// use bytepair::AddedToken;
/// let token = AddedToken::special("<s>", 1);
/// assert_eq!(token, AddedToken { special: true, ..AddedToken::ordinary("<s>", 1) });
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "the flags of the format")]
pub struct AddedToken {
    /// The id.
    pub id: u32,
    /// The text that becomes the id; not empty.
    pub content: String,
    /// Whether the token is special.
    pub special: bool,
    /// Whether it takes the white space before it.
    pub lstrip: bool,
    /// Whether it takes the white space after it.
    pub rstrip: bool,
    /// Whether it is found only between characters that are not part of a word.
    pub single_word: bool,
    /// Whether it is looked for in the normalized text instead of the original one; its content is
    /// normalized too.
    pub normalized: bool,
}

impl AddedToken {
    /// A special token without flags.
    pub fn special(content: impl Into<String>, id: u32) -> Self {
        Self { special: true, ..Self::ordinary(content, id) }
    }

    /// An ordinary added token without flags.
    pub fn ordinary(content: impl Into<String>, id: u32) -> Self {
        Self {
            id,
            content: content.into(),
            special: false,
            lstrip: false,
            rstrip: false,
            single_word: false,
            normalized: false,
        }
    }

    /// The flags as bits, from the lowest: `special`, `lstrip`, `rstrip`, `single_word`, `normalized`.
    pub(crate) fn flags(&self) -> u8 {
        let flags = [self.special, self.lstrip, self.rstrip, self.single_word, self.normalized];
        flags.iter().rev().fold(0, |bits, flag| bits << 1 | u8::from(*flag))
    }

    /// This token with other flags; `None` if a bit means nothing.
    pub(crate) fn with_flags(self, bits: u8) -> Option<Self> {
        let flag = |bit: u8| bits >> bit & 1 == 1;
        (bits < 1 << 5).then(|| Self {
            special: flag(0),
            lstrip: flag(1),
            rstrip: flag(2),
            single_word: flag(3),
            normalized: flag(4),
            ..self
        })
    }
}
