//! Finds the part of a growing text whose ids are final, whatever text follows.
//!
//! The result is a position at which encoding can restart: whatever is appended to the text, its
//! ids are those of the part before the position, then those of the part after it. First, special
//! tokens that may still grow are excluded. Then a position is certain if the pattern always splits
//! between its two characters; under a published pattern, all pretokens but the last two are
//! certain too.

use crate::encode::encoder::Encoder;
use crate::encode::options::EncodeOptions;
use crate::error::Result;
use crate::rules::PartStart;
use crate::text::MAX_CHARACTER_BYTES;

/// If no pair of characters gives a certain position, a text is split into pretokens only if it has
/// at least this many bytes.
const MIN_TEXT_BYTES: usize = if cfg!(test) { 8 } else { 256 };

/// The unsuccessful searches in a growing text so far, so that no part of it is searched
/// repeatedly.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tried {
    /// No pair of characters before this position gives a certain position.
    cuts: usize,
    /// The length of the text when it was last split into pretokens.
    pretokens: usize,
}

/// A position at which encoding can restart, and what precedes it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Certain {
    pub(crate) at: usize,
    pub(crate) start: PartStart,
}

impl Encoder {
    /// The last position found in `text` before which no continuation changes the ids. `start`
    /// tells what precedes the text. `tried` must come from earlier calls for this text or for a
    /// prefix of it.
    ///
    /// Fails if the pattern fails on the text.
    pub(crate) fn certain(
        &self,
        text: &str,
        start: PartStart,
        options: &EncodeOptions,
        tried: &mut Tried,
    ) -> Result<Certain> {
        if self.preparation().is_some() || options.then.is_some() {
            // What follows may change any id.
            return Ok(Certain { at: 0, start });
        }
        let part = options.finder.as_ref().map_or(0..text.len(), |finder| finder.last_part(text));
        let normalizes = self.normalizes();
        let is_safe = |before, at, next: Option<char>| {
            let separates = |character| self.separates(character);
            !normalizes || separates(before) && separates(at) && next.is_some_and(separates)
        };
        let from = char_boundary(text, tried.cuts).clamp(part.start, part.end);
        if let Some(cut) = self.splitter().last_cut(text, from..part.end, is_safe) {
            return Ok(Certain { at: cut, start: PartStart::Inside });
        }
        tried.cuts = part.end.saturating_sub(3 * MAX_CHARACTER_BYTES).max(tried.cuts);
        let length = part.len();
        if normalizes
            || !self.splitter().is_scan()
            || length < MIN_TEXT_BYTES.max(2 * tried.pretokens)
        {
            let start = if part.start == 0 { start } else { PartStart::Special };
            return Ok(Certain { at: part.start, start });
        }
        tried.pretokens = length;
        let at = part.start + self.splitter().certain(&text[part])?;
        Ok(Certain { at, start: PartStart::Inside })
    }
}

/// The last character boundary up to `at`.
fn char_boundary(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}
