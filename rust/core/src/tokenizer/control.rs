//! The ids of the tokens that control something, which are left out where a text is for people.

use super::Tokenizer;

impl Tokenizer {
    /// The ids of the special tokens, in order, without the added tokens that are ordinary text,
    /// such as runs of spaces.
    ///
    /// ```
    /// # use bytepair::{Pattern, Tokenizer, Vocabulary};
    /// let tokens = [(b"a".to_vec(), 0)];
    /// let special = [("<s>".to_owned(), 1), ("  ".to_owned(), 2)];
    /// let vocabulary = Vocabulary::new(tokens, special)?;
    /// let tokenizer = Tokenizer::from_ranks(vocabulary, Pattern::new("gpt2")?)?;
    /// assert_eq!(tokenizer.control_ids(), [1, 2]); // no flag says that 2 is ordinary
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    pub fn control_ids(&self) -> Vec<u32> {
        let ordinary = self.pattern().added();
        let special = self.vocabulary().special_tokens().iter().map(|(_, id)| *id);
        special.filter(|id| !ordinary.contains(id)).collect()
    }
}
