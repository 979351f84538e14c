//! The roles of special tokens: which of them begins a text, ends one, fills a row, ends a turn.
//!
//! Roles change no id, so they are notes, which are saved with the tokenizer. Without a note, roles
//! follow from the names of the special tokens: those of published vocabularies and of nanochat are
//! known, and others such as `<|eos|>` are self-explanatory.

use crate::tokenizer::Tokenizer;

/// What a special token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It begins a text.
    Bos,
    /// It ends a text.
    Eos,
    /// It fills the end of a row.
    Pad,
    /// It ends a turn of a conversation.
    EndOfTurn,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 4] = [Self::Bos, Self::Eos, Self::Pad, Self::EndOfTurn];

    /// The name of the role.
    pub fn name(self) -> &'static str {
        ["bos", "eos", "pad", "end_of_turn"][self as usize]
    }

    /// The key of the note with the name of the special token; an empty note means that no token
    /// has the role.
    pub fn note(self) -> &'static str {
        ["bos_token", "eos_token", "pad_token", "eot_token"][self as usize]
    }
}

/// The names that imply each role; the first one that a tokenizer has counts.
const IMPLIED: [&[&str]; 4] = [
    &["<|bos|>", "<|begin_of_text|>", "<|startoftext|>", "<s>", "<bos>"],
    &["<|eos|>", "<|end_of_text|>", "<|endoftext|>", "</s>", "<eos>"],
    &["<|pad|>", "<pad>", "[PAD]"],
    &["<|im_end|>", "<|eot_id|>", "<|eot|>", "<|end_of_turn|>", "<end_of_turn>"],
];

/// The names of the tokens with the roles of [`Role::ALL`]; an empty name stands for none.
type Names = [&'static str; 4];

/// The roles in vocabularies that have all these special tokens; the first match counts.
const PUBLISHED: [Names; 7] = [
    // nanochat: the token that begins the next document also ends the previous one
    ["<|bos|>", "<|bos|>", "<|bos|>", "<|assistant_end|>"],
    // Llama 3.1 and later, 3, 4
    ["<|begin_of_text|>", "<|end_of_text|>", "<|finetune_right_pad_id|>", "<|eot_id|>"],
    ["<|begin_of_text|>", "<|end_of_text|>", "", "<|eot_id|>"],
    ["<|begin_of_text|>", "<|end_of_text|>", "<|finetune_right_pad|>", "<|eot|>"],
    // o200k_harmony
    ["<|startoftext|>", "<|endoftext|>", "<|endoftext|>", "<|return|>"],
    // DeepSeek V3
    ["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>", ""],
    // Qwen 2 and later: no token begins a text
    ["", "<|endoftext|>", "<|endoftext|>", "<|im_end|>"],
];

/// Tokens that stand alone between texts, so they end one text and begin the next.
const BETWEEN: [&str; 2] = ["<|endoftext|>", "<|bos|>"];

/// The roles that special tokens have by their names alone, in the order of [`Role::ALL`].
///
/// ```
/// use bytepair::{Role, roles::by_names};
/// assert_eq!(by_names(&["<s>", "</s>"]), [(Role::Bos, "<s>"), (Role::Eos, "</s>")]);
/// assert_eq!(by_names(&["<|tool|>"]), []);
/// ```
pub fn by_names(special: &[&str]) -> Vec<(Role, &'static str)> {
    let has = |name: &str| name.is_empty() || special.contains(&name);
    let published = PUBLISHED.iter().find(|names| names.iter().all(|name| has(name)));
    let mut names = published.copied().unwrap_or_else(|| {
        IMPLIED.map(|names| names.iter().find(|name| has(name)).copied().unwrap_or(""))
    });
    if published.is_none() {
        match names {
            [bos, "", ..] if BETWEEN.contains(&bos) => names[1] = bos,
            ["", eos, ..] if BETWEEN.contains(&eos) => names[0] = eos,
            _ => (),
        }
    }
    Role::ALL.into_iter().zip(names).filter(|(_, name)| !name.is_empty()).collect()
}

impl Tokenizer {
    /// The special token with a role, by its name and its id; `None` if there is none.
    ///
    /// ```
    /// use bytepair::{Pattern, Role, Tokenizer, Vocabulary};
    /// let special = [("<s>".to_owned(), 1), ("<end>".to_owned(), 2)];
    /// let vocabulary = Vocabulary::new([(b"a".to_vec(), 0)], special)?;
    /// let tokenizer = Tokenizer::from_ranks(vocabulary, Pattern::new("gpt2")?)?;
    /// assert_eq!(tokenizer.role(Role::Bos), Some(("<s>", 1)));
    /// assert_eq!(tokenizer.role(Role::Eos), None);
    ///
    /// let notes = [("eos_token".to_owned(), "<end>".to_owned())];
    /// let tokenizer = tokenizer.with_notes(notes.into());
    /// assert_eq!(tokenizer.role(Role::Eos), Some(("<end>", 2)));
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    pub fn role(&self, role: Role) -> Option<(&str, u32)> {
        let special = || self.vocabulary().special_tokens();
        let token = |token_name: &str| special().find(|(name, _)| *name == token_name);
        let usual = || {
            let names: Vec<&str> = special().map(|(name, _)| name).collect();
            let usual = by_names(&names).into_iter().find(|(usual, _)| *usual == role);
            usual.and_then(|(_, name)| token(name))
        };
        match self.notes().get(role.note()).map(String::as_str) {
            Some("") => None,
            Some(name) => token(name).or_else(usual),
            None => usual(),
        }
    }
}
