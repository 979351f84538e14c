//! The ids of the tokens that control something, which are left out where a text is for people.

use std::collections::HashSet;

use super::Tokenizer;
use crate::rules::AddedToken;

impl Tokenizer {
    /// The ids of the special tokens, in order, without the added tokens that are ordinary text,
    /// such as runs of spaces.
    ///
    /// ```
    /// # use bytepair::{AddedToken, Pattern, Tokenizer, Vocabulary};
    /// let tokens = [(b"a".to_vec(), 0)];
    /// let added = vec![AddedToken::special("<s>", 1), AddedToken::ordinary("  ", 2)];
    /// let vocabulary = Vocabulary::with_added(tokens, [], added)?;
    /// let tokenizer = Tokenizer::from_ranks(vocabulary, Pattern::new("gpt2")?)?;
    /// assert_eq!(tokenizer.control_ids(), [1]);
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    pub fn control_ids(&self) -> Vec<u32> {
        let added = self.vocabulary().added_tokens();
        let special: HashSet<&str> =
            added.iter().filter(|token| token.special).map(|token| &*token.content).collect();
        // `tokenizers` skips tokens by their names, which normalization may have changed.
        let is_skipped = |token: &&AddedToken| {
            if token.normalized {
                special.contains(&*self.token_name(token.id))
            } else {
                token.special
            }
        };
        added.iter().filter(is_skipped).map(|token| token.id).collect()
    }
}
