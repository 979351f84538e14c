//! One text in, its ids out.

use crate::encode::encoder::Edges;
use crate::encode::{EncodeOptions, Special};
use crate::error::{Error, Result};
use crate::text::Text;
use crate::tokenizer::Tokenizer;

impl Tokenizer {
    /// Prepare options for any number of texts: what special tokens in them mean, and which ids go
    /// before and after each.
    ///
    /// Fails if `special` names a special token that does not exist.
    pub fn options(
        &self,
        special: &Special,
        prepend: Option<u32>,
        append: Option<u32>,
    ) -> Result<EncodeOptions> {
        EncodeOptions::new(self.vocabulary(), self.pattern(), special, prepend, append)
    }

    /// Prepare for about this many bytes of text, perhaps in many calls: the cache for much text is
    /// made at once.
    pub fn expect(&self, bytes: usize) {
        self.encoder().expect(bytes);
    }

    /// Encode one text; special tokens in it are text.
    ///
    /// Fails if the pattern gives up on the text or if no token covers one of its bytes.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        self.encode_with(text, &EncodeOptions::default())
    }

    /// Encode one text as `options` ask.
    ///
    /// Fails as [`encode`](Self::encode) does, and where a special token is forbidden.
    pub fn encode_with(&self, text: &str, options: &EncodeOptions) -> Result<Vec<u32>> {
        let mut ids = Vec::new();
        self.encoder().call().append(&Text::Utf8(text), options, &mut ids)?;
        Ok(ids)
    }

    /// Encode one text that is stored in any way, and hand its ids to `then`.
    ///
    /// Nothing is allocated for a short text. Fails as [`encode_with`](Self::encode_with) does, or
    /// if bytes are not UTF-8.
    pub fn encode_text<R>(
        &self,
        text: &Text<'_>,
        options: &EncodeOptions,
        then: impl FnOnce(&[u32]) -> R,
    ) -> Result<R> {
        Ok(then(self.encoder().call().encode(text, options)?))
    }

    /// How many ids [`encode_text`](Self::encode_text) finds; quicker than encoding.
    pub fn count(&self, text: &Text<'_>, options: &EncodeOptions) -> Result<usize> {
        let mut count = 0;
        let sink = |ids: &[u32]| {
            count += ids.len();
            Ok(())
        };
        self.encoder().call().for_each_block(text, options, Edges::BOTH, sink)?;
        Ok(count)
    }

    /// Encode the bytes of one pretoken, whatever the split pattern would make of them.
    ///
    /// Fails if no token covers one of the bytes.
    pub fn encode_pretoken(&self, pretoken: &[u8]) -> Result<Vec<u32>> {
        self.encoder().call().encode_pretoken(pretoken)
    }

    /// Fails if normalization changes `text`: then its ids have no places in it.
    pub(crate) fn check_unchanged(&self, text: &str) -> Result<()> {
        if self.pattern().normalized(text)? == text {
            return Ok(());
        }
        let reason =
            "normalization changes the text, so ids have no places in it; normalize it first";
        Err(Error::Split { at: 0, reason: reason.to_owned() })
    }
}
