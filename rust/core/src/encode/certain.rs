//! Finds how far no continuation of a text changes its ids.
//!
//! The answer is a position where encoding can start anew: the ids of the text are those of the
//! part before it and those of the part after it, whatever follows. Special tokens are settled
//! first, then the split pattern is asked: a position where two characters always divide the text
//! is certain, and under a published pattern so are all pretokens but the last two.

use crate::encode::encoder::Encoder;
use crate::encode::options::EncodeOptions;
use crate::error::Result;
use crate::pretokenize::PartStart;

/// Without a position between two characters, pretokens are searched in texts of this many bytes.
const ENOUGH: usize = 256;

/// No character has more bytes.
const CHARACTER: usize = 4;

/// What was searched in vain in a growing text, so that no part of it is searched often.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tried {
    /// There is no position between two characters before this one.
    cuts: usize,
    /// The length of the text when its pretokens were searched.
    pretokens: usize,
}

/// Where encoding can start anew, and what stands before it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Certain {
    pub(crate) at: usize,
    pub(crate) start: PartStart,
}

impl Encoder {
    /// How many bytes of `text`, which starts after `start`, have ids that no continuation changes.
    /// `tried` belongs to this text, and to its beginning if it has grown.
    ///
    /// Fails if the pattern fails on the text.
    pub(crate) fn certain(
        &self,
        text: &str,
        start: PartStart,
        options: &EncodeOptions,
        tried: &mut Tried,
    ) -> Result<Certain> {
        let part = options.finder.as_ref().map_or(0..text.len(), |finder| finder.last_part(text));
        let normalizes = self.pattern().normalizes();
        let may = |before, at, next: Option<char>| {
            let separates = |character| self.pattern().separates(character);
            !normalizes || separates(before) && separates(at) && next.is_some_and(separates)
        };
        let from = char_boundary(text, tried.cuts).clamp(part.start, part.end);
        if let Some(cut) = self.splitter().last_cut(text, from..part.end, may) {
            return Ok(Certain { at: cut, start: PartStart::Inside });
        }
        tried.cuts = part.end.saturating_sub(3 * CHARACTER).max(tried.cuts);
        let length = part.len();
        if normalizes || !self.splitter().is_scan() || length < ENOUGH.max(2 * tried.pretokens) {
            let start = if part.start == 0 { start } else { PartStart::Special };
            return Ok(Certain { at: part.start, start });
        }
        tried.pretokens = length;
        let at = part.start + self.splitter().certain(&text[part])?;
        Ok(Certain { at, start: PartStart::Inside })
    }
}

/// The last boundary of a character up to `at`.
fn char_boundary(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}
