//! Which ids stand around a text.

/// The ids around a text, or around two, where the caller asks for them; and whether offsets leave
/// out white space.
///
/// [`Default`] is none: nothing is added.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PostProcessor {
    /// For one text; empty if there is no template, which is the same as the text alone.
    pub single: Vec<TemplatePiece>,
    /// For a pair of texts.
    pub pair: Vec<TemplatePiece>,
    /// Whether offsets leave out the white space at the ends of tokens, and with it whether the
    /// first space counts as put there by the pre-tokenizer.
    pub trim_offsets: Option<bool>,
}

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplatePiece {
    /// The ids of the first text (0) or of the second (1), with the type id of its tokens.
    Text {
        /// 0 or 1.
        which: u8,
        /// The type id.
        type_id: u32,
    },
    /// Ids.
    Ids {
        /// The name by which the template refers to them.
        name: String,
        /// The ids, in order.
        ids: Vec<u32>,
        /// The type id.
        type_id: u32,
    },
}
