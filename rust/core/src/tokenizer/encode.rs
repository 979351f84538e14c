//! Encodes a single text.

use crate::encode::{EncodeOptions, Special};
use crate::error::Result;
use crate::memory;
use crate::rules::PartStart;
use crate::rules::growth::TextGrowth;
use crate::text::Text;
use crate::tokenizer::Tokenizer;

impl Tokenizer {
    /// Prepare options for any number of texts: how the text of special tokens is encoded, and
    /// which ids precede and follow each text.
    ///
    /// Fails if `special` names an unknown special token.
    ///
    /// ```
    /// # use bytepair::{EncodeOptions, Pattern, Special, Tokenizer, Vocabulary};
    /// # let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
    /// # let vocabulary = Vocabulary::new(bytes, [("<s>".to_owned(), 256)])?;
    /// # let tokenizer = Tokenizer::from_ranks(vocabulary, Pattern::new("gpt2")?)?;
    /// let begin = tokenizer.options(&Special::Text, &[256], &[])?;
    /// assert_eq!(tokenizer.encode_with("a", &begin)?, [256, 97]);
    /// let special = tokenizer.options(&Special::All, &[], &[])?;
    /// assert_eq!(tokenizer.encode_with("<s>a", &special)?, [256, 97]);
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    pub fn options(
        &self,
        special: &Special,
        prepend: &[u32],
        append: &[u32],
    ) -> Result<EncodeOptions> {
        self.encoder().options(special, prepend, append)
    }

    /// The ids before and after one text: those of a caller and, next to the text if `adds_special`,
    /// those of the post-processor (`add_special_tokens` of other libraries).
    pub fn around(
        &self,
        prepend: impl IntoIterator<Item = u32>,
        append: impl IntoIterator<Item = u32>,
        adds_special: bool,
    ) -> (Vec<u32>, Vec<u32>) {
        let template = adds_special.then(|| self.rules().post_processor.around());
        let (before, after) = template.unwrap_or_default();
        (prepend.into_iter().chain(before).collect(), after.into_iter().chain(append).collect())
    }

    /// The options of a call without any: the text of special tokens is encoded as ordinary text, and
    /// no ids are added.
    pub fn plain(&self) -> &EncodeOptions {
        &self.encoder().plain
    }

    /// Announce that about this many bytes of text will be encoded, possibly in many calls, so that
    /// the cache starts at its final size.
    #[doc(hidden)]
    pub fn expect(&self, bytes: usize) {
        self.encoder().expect(bytes);
    }

    /// Encode one text; the text of special tokens is encoded as ordinary text.
    ///
    /// Fails if the pattern fails on the text, or if no token covers one of its bytes.
    ///
    /// ```
    /// # use bytepair::{Pattern, Tokenizer, Vocabulary};
    /// # let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
    /// # let vocabulary = Vocabulary::new(bytes, [])?;
    /// # let tokenizer = Tokenizer::from_ranks(vocabulary, Pattern::new("gpt2")?)?;
    /// assert_eq!(tokenizer.encode("abc")?, [97, 98, 99]);
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        self.encode_with(text, self.plain())
    }

    /// Encode one text with `options`.
    ///
    /// Fails as [`encode`](Self::encode) does, or if the text contains a forbidden special token.
    pub fn encode_with(&self, text: &str, options: &EncodeOptions) -> Result<Vec<u32>> {
        let mut ids = Vec::new();
        self.encoder().call().append(&Text::Utf8(text), options, &mut ids)?;
        Ok(ids)
    }

    /// Encode one text in any representation, and pass its ids to `then`.
    ///
    /// Allocates nothing for a short text. Fails as [`encode_with`](Self::encode_with) does, or if
    /// bytes are not UTF-8.
    #[doc(hidden)]
    pub fn encode_text<R>(
        &self,
        text: &Text<'_>,
        options: &EncodeOptions,
        then: impl FnOnce(&[u32]) -> R,
    ) -> Result<R> {
        Ok(then(self.encoder().call().encode(text, options)?))
    }

    /// The number of ids of a text; faster than encoding. Fails as
    /// [`encode_with`](Self::encode_with) does.
    pub fn count(&self, text: &str, options: &EncodeOptions) -> Result<usize> {
        self.count_text(&Text::Utf8(text), options)
    }

    /// The number of ids that [`encode_text`](Self::encode_text) passes on.
    #[doc(hidden)]
    pub fn count_text(&self, text: &Text<'_>, options: &EncodeOptions) -> Result<usize> {
        let mut ids = Vec::<()>::new();
        self.encoder().call().append(text, options, &mut ids)?;
        Ok(ids.len())
    }

    /// Encode bytes as one pretoken, whether or not the split pattern would keep them together.
    ///
    /// Fails if no token covers one of the bytes.
    #[doc(hidden)]
    pub fn encode_pretoken(&self, pretoken: &[u8]) -> Result<Vec<u32>> {
        let sized = self.encoder().call().encode_pretoken(pretoken)?;
        memory::collect(sized.into_iter().map(|(id, _)| id))
    }

    /// The pretokens of a text, normalized, in order. No added token is looked for. Fails if a regular
    /// expression fails on the text.
    #[doc(hidden)]
    pub fn for_each_pretoken(&self, text: &str, mut sink: impl FnMut(&[u8])) -> Result<()> {
        let Some(preparation) = self.encoder().preparation() else {
            let text = self.encoder().normalized(text, PartStart::Text)?;
            return self.splitter().for_each(&text, |pretoken| sink(pretoken.as_bytes()));
        };
        let prepared =
            preparation.prepare(text, PartStart::Text, None, &mut TextGrowth::of(text.len()))?;
        prepared.for_each_pretoken(&mut sink);
        Ok(())
    }
}
