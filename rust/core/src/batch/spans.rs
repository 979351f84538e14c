//! Spans of a text in, the spans of its normalized form out.
//!
//! A joined text consists of spans that are trained on or not. Where normalization composes several
//! characters into one, or reorders them, the boundary of two spans moves. A character composed
//! from both spans counts as trained if either span does.
//!
//! The text is cut before each character below U+0300. None of these combines with the characters
//! before it, so the pieces are normalized one by one.

use std::borrow::Cow;

use crate::error::Result;
use crate::memory;
use crate::pretokenize::{PartStart, Pattern};

/// The end of a span, and whether it is trained on. It starts at the end of the previous span.
pub(super) type TrainedSpan = (usize, bool);

/// The normalized text and its spans; `None` if normalization does not change the text.
pub(super) fn normalized(
    pattern: &Pattern,
    text: &str,
    before: PartStart,
    spans: &[TrainedSpan],
) -> Result<Option<(String, Vec<TrainedSpan>)>> {
    let Cow::Owned(whole) = pattern.normalized_part(text, before)? else { return Ok(None) };
    let (mut out, mut rest, mut start) = (NormalizedSpans::default(), spans, 0);
    for piece in pieces(text) {
        let end = start + piece.len();
        while rest.first().is_some_and(|&(span_end, _)| span_end <= start) {
            rest = &rest[1..];
        }
        let covering = rest.iter().take_while(|&&(span_end, _)| span_end < end).count() + 1;
        let before = if start == 0 { before } else { PartStart::Inside };
        out.piece(pattern, piece, start, before, &rest[..covering.min(rest.len())])?;
        start = end;
    }
    Ok(Some((whole, out.spans)))
}

/// The text, cut before each character that never combines with those before it.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut after = rest.char_indices().skip(1);
        let end = after.find(|&(_, c)| c < '\u{300}').map_or(rest.len(), |(at, _)| at);
        let (piece, more) = rest.split_at(end);
        rest = more;
        (!piece.is_empty()).then_some(piece)
    })
}

/// The spans of the normalized text so far.
#[derive(Default)]
struct NormalizedSpans {
    spans: Vec<TrainedSpan>,
    end: usize,
}

impl NormalizedSpans {
    fn push(&mut self, length: usize, trained: bool) -> Result<()> {
        self.end += length;
        match self.spans.last_mut() {
            Some((end, same)) if *same == trained => *end = self.end,
            _ => memory::push(&mut self.spans, (self.end, trained))?,
        }
        Ok(())
    }

    /// Append a piece, which starts at `start` in the text and is covered by `spans`.
    fn piece(
        &mut self,
        pattern: &Pattern,
        piece: &str,
        start: usize,
        before: PartStart,
        spans: &[TrainedSpan],
    ) -> Result<()> {
        let normal = pattern.normalized_part(piece, before)?;
        if let [(_, trained)] = spans {
            return self.push(normal.len(), *trained);
        }
        let mut flags = memory::filled(false, normal.len())?;
        let mut from = 0;
        for &(end, trained) in spans {
            let to = (end - start).min(piece.len());
            if trained {
                let left = matching(&pattern.normalized_part(&piece[..from], before)?, &normal);
                let tail = pattern.normalized_part(&piece[to..], PartStart::Inside)?;
                let right = normal.len() - matching_end(&tail, &normal);
                flags[left..right.max(left)].fill(true);
            }
            from = to;
        }
        for flag in flags {
            self.push(1, flag)?;
        }
        Ok(())
    }
}

/// The length in bytes of the longest common prefix of two texts, in whole characters.
fn matching(one: &str, other: &str) -> usize {
    one.chars().zip(other.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum()
}

/// The length in bytes of the longest common suffix of two texts, in whole characters.
fn matching_end(one: &str, other: &str) -> usize {
    let pairs = one.chars().rev().zip(other.chars().rev());
    pairs.take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spans(form: &str, parts: &[(&str, bool)]) -> Option<(String, Vec<TrainedSpan>)> {
        let text: String = parts.iter().map(|&(text, _)| text).collect();
        let mut end = 0;
        let mut ends = Vec::new();
        for &(part, trained) in parts.iter().filter(|(part, _)| !part.is_empty()) {
            end += part.len();
            ends.push((end, trained));
        }
        let pattern = Pattern::from_regex(&format!(r"(?#{form})\S+|\s+"));
        normalized(&pattern, &text, PartStart::Text, &ends).unwrap()
    }

    #[test]
    fn boundaries_move_with_the_text() {
        assert_eq!(spans("NFC", &[("héa", false), ("b", true)]), None);
        let moved = spans("NFC", &[("e\u{301}a", false), ("be\u{301}", true), ("x", false)]);
        assert_eq!(moved, Some(("éabéx".into(), vec![(3, false), (6, true), (7, false)])));
    }

    #[test]
    fn a_character_composed_from_two_spans_is_trained_if_either_is() {
        for trained in [true, false] {
            let both = spans("NFC", &[("xe", trained), ("\u{301}y", !trained)]);
            let expected = if trained { [(3, true), (4, false)] } else { [(1, false), (4, true)] };
            assert_eq!(both, Some(("xéy".into(), expected.to_vec())));
        }
        let reordered = spans("NFC", &[("a\u{345}", true), ("\u{301}", false)]);
        assert_eq!(reordered, Some(("á\u{345}".into(), vec![(4, true)])));
        let hangul = spans("NFC", &[("가", false), ("\u{11a8}", true), ("", true), ("x", false)]);
        assert_eq!(hangul, Some(("각x".into(), vec![(3, true), (4, false)])));
        let marks = [("e", false), ("\u{327}", true), ("\u{301}", false), ("\u{345}", false)];
        assert_eq!(
            spans("NFC", &marks),
            Some(("ȩ\u{301}\u{345}".into(), vec![(2, true), (6, false)]))
        );
    }

    fn part() -> impl Strategy<Value = (String, bool)> {
        let characters = "ae\u{301}\u{327}\u{345}\u{1112}\u{1161}\u{11ab}한 ﬁＡ¨\u{2126}";
        let characters: Vec<char> = characters.chars().collect();
        let text = prop::collection::vec(prop::sample::select(characters), 0..5);
        (text.prop_map(String::from_iter), any::<bool>())
    }

    proptest! {
        #[test]
        fn the_spans_cover_the_text(
            parts in prop::collection::vec(part(), 0..8),
            form in prop::sample::select(vec!["NFC", "NFKC"]),
        ) {
            let parts: Vec<_> = parts.iter().map(|(text, trained)| (&**text, *trained)).collect();
            let Some((text, result)) = spans(form, &parts) else { return Ok(()) };
            prop_assert_eq!(result.last().map(|&(end, _)| end), Some(text.len()));
            prop_assert!(result.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 != two[1].1));
            let used: Vec<_> = parts.iter().filter(|(text, _)| !text.is_empty()).collect();
            if used.iter().all(|(_, trained)| *trained) {
                prop_assert_eq!(result, vec![(text.len(), true)]);
            } else if !used.iter().any(|(_, trained)| *trained) {
                prop_assert_eq!(result, vec![(text.len(), false)]);
            }
        }

        #[test]
        fn parts_that_do_not_combine_keep_their_spans(
            parts in prop::collection::vec(part(), 0..8),
            form in prop::sample::select(vec!["NFC", "NFKC"]),
        ) {
            let apart: Vec<_> = parts.iter().map(|(text, flag)| (format!("x{text}"), *flag)).collect();
            let apart: Vec<_> = apart.iter().map(|(text, flag)| (&**text, *flag)).collect();
            let Some((text, result)) = spans(form, &apart) else { return Ok(()) };
            let pattern = Pattern::from_regex(&format!(r"(?#{form})\S+|\s+"));
            let mut expected = NormalizedSpans::default();
            for &(part, flag) in &apart {
                expected.push(pattern.normalized(part).unwrap().len(), flag).unwrap();
            }
            prop_assert_eq!(result, expected.spans);
            prop_assert_eq!(text.len(), expected.end);
        }
    }
}
