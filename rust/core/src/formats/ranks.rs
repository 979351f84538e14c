//! Rank files, as tiktoken publishes them: on each line a token in base64, a space, and its rank.
//!
//! The rank is also the id. A rank file has no split pattern and no special tokens; the caller
//! supplies them. Source: `tiktoken/load.py` of github.com/openai/tiktoken.

use std::collections::HashSet;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::PAD;

use crate::error::{Error, Result};
use crate::memory;
use crate::merge::merger;
use crate::pretokenize::Pattern;
use crate::tokenizer::Tokenizer;
use crate::vocabulary::{MAX_VOCAB_SIZE, Vocabulary};

/// The note with the id of a token without bytes. No text has it, so it is no token here, but it is
/// written back: the files of Whisper list one.
pub const EMPTY_NOTE: &str = "empty_token";

/// Accepts bits after the last byte, as Python's `base64` does, with which tiktoken reads.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, PAD.with_decode_allow_trailing_bits(true));

/// The tokens of a rank file.
///
/// ```
/// use bytepair::formats::ranks::RankFile;
/// let file = RankFile::read(b"YQ== 0\nYWI= 1\n= 2\n")?;
/// assert_eq!(file.tokens, [(b"a".to_vec(), 0), (b"ab".to_vec(), 1)]);
/// assert_eq!(file.empty, Some(2));
/// # Ok::<(), bytepair::Error>(())
/// ```
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct RankFile {
    /// The tokens with their ranks, in the order of the lines.
    pub tokens: Vec<(Vec<u8>, u32)>,
    /// The rank of the token without bytes, if there is one; see [`EMPTY_NOTE`].
    pub empty: Option<u32>,
}

impl RankFile {
    /// Whether the first line looks like that of a rank file.
    pub fn is_one(head: &[u8]) -> bool {
        lines(head).next().is_some_and(|(_, line)| fields(line).is_some())
    }

    /// Read the bytes of a file. Fails with [`Error::Format`], which names the line, if a line is no
    /// token and rank, or if one occurs twice.
    pub fn read(file: &[u8]) -> Result<Self> {
        let mut rank_file = Self::default();
        let (mut tokens, mut ranks) = (HashSet::new(), HashSet::new());
        for (number, line) in lines(file) {
            let wrong = |reason: String| Error::Format {
                place: format!("line {number}"),
                reason: reason.into(),
            };
            let (token, rank) = parsed(line).map_err(wrong)?;
            if !tokens.insert(token.clone()) {
                let shown = token.escape_ascii();
                return Err(wrong(format!("the token b'{shown}' stands twice")));
            }
            if !ranks.insert(rank) {
                return Err(wrong(format!("the rank {rank} stands twice")));
            }
            if token.is_empty() {
                rank_file.empty = Some(rank);
            } else {
                memory::push(&mut rank_file.tokens, (token, rank))?;
            }
        }
        if rank_file.tokens.is_empty() {
            let (place, reason) = ("line 1".to_owned(), "there is no token".to_owned());
            return Err(Error::Format { place, reason: reason.into() });
        }
        Ok(rank_file)
    }
}

/// The lines that are not blank, with their numbers from 1.
fn lines(file: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let all = file.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    all.enumerate().map(|(at, line)| (at + 1, line)).filter(|(_, line)| !line.is_empty())
}

/// The token in base64 and the rank of a line, if it has their characters.
fn fields(line: &[u8]) -> Option<(&str, &str)> {
    let (token, rank) = std::str::from_utf8(line).ok()?.split_once([' ', '\t'])?;
    let rank = rank.trim_start_matches([' ', '\t']);
    let body = token.trim_end_matches('=');
    let is_base64 = body.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'+' || b == b'/');
    let is_rank = (1..=10).contains(&rank.len()) && rank.bytes().all(|b| b.is_ascii_digit());
    (is_base64 && token.len() - body.len() <= 2 && is_rank).then_some((token, rank))
}

/// The token and the rank of a line, or what is wrong with it.
fn parsed(line: &[u8]) -> std::result::Result<(Vec<u8>, u32), String> {
    let (token, rank) = fields(line).ok_or("a token in base64, a space and a rank are expected")?;
    let token = if token == "=" { "" } else { token };
    let token = BASE64.decode(token).map_err(|e| format!("the token is not base64: {e}"))?;
    let (most, rank) = (MAX_VOCAB_SIZE - 2, rank.parse::<u64>().unwrap_or(u64::MAX));
    match u32::try_from(rank) {
        Ok(rank) if rank as usize <= most => Ok((token, rank)),
        _ => Err(format!("rank {rank} is not in 0 … {most}")),
    }
}

impl Tokenizer {
    /// Load a tokenizer from the bytes of a rank file.
    ///
    /// Fails as [`RankFile::read`], [`Vocabulary::new`] and [`Tokenizer::from_ranks`] do.
    ///
    /// ```
    /// use bytepair::{Pattern, Tokenizer};
    /// let file = b"YQ== 0\nYg== 1\nYWI= 2\n"; // a, b, ab
    /// let special = [("<|endoftext|>".to_owned(), 3)];
    /// let tokenizer = Tokenizer::from_rank_file(file, special, Pattern::new("gpt2")?)?;
    /// assert_eq!(tokenizer.encode("aba")?, [2, 0]);
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    pub fn from_rank_file(
        file: &[u8],
        special: impl IntoIterator<Item = (String, u32)>,
        pattern: Pattern,
    ) -> Result<Self> {
        let file = RankFile::read(file)?;
        let read = Self::from_ranks(Vocabulary::new(file.tokens, special)?, pattern)?;
        let note = file.empty.map(|rank| (EMPTY_NOTE.to_owned(), rank.to_string()));
        Ok(read.with_notes(note.into_iter().collect()))
    }
}

// ---------------------------------------------------------------------------- the rule of ranks as merges
//
// Hugging Face `tokenizers` merges listed pairs in the order of the list. Under the rule of ranks,
// any two neighbours whose joined bytes are a token merge, the lowest rank first, the leftmost among
// equals. A tokenizer with that rule is written as one pair for each token, in the order of ranks.
// This gives the same ids for every text. Proof:
//
// 1. Consider any sequence of adjacent parts while the rule of ranks is applied to a text. No merge
//    so far crossed the ends of the sequence, since parts only grow. Each merge within it was the
//    first candidate of the whole text, and so also the first candidate of the sequence. So the
//    parts are an intermediate state of merging the bytes of the sequence alone.
// 2. Let two neighbours join to a token. By 1, they are the intermediate state with two parts of
//    merging the bytes of that token alone. There is only one such state: the listed pair.
// 3. So at each step, the candidates of the rule of ranks are exactly the listed pairs, in the same
//    order. Both rules make the same merge.
//
// By 2, other pairs that produce a token never occur. So a list that contains the pairs above in
// this order gives the same merges as the rule of ranks, whatever other pairs it contains. The rule
// of ranks also turns a pretoken that is a token into that token, as `ignore_merges` does. Without
// `ignore_merges`, merging does the same if every token of two or more bytes has a listed pair: by
// 1, merging the bytes of the token alone leads to the pair, and then to the token.

/// Whether merges are proved to give the ids of the rule of ranks for every text.
pub fn is_rule_of_ranks(
    vocabulary: &Vocabulary,
    merges: &[(u32, u32)],
    ignore_merges: bool,
) -> Result<bool> {
    let longer = || vocabulary.ordinary_tokens().filter(|(token, _)| token.len() > 1).count();
    let needed = if ignore_merges { 0 } else { longer() };
    if merges.len() < needed {
        return Ok(false);
    }
    let pairs = pairs_of_ranks(vocabulary)?;
    Ok(pairs.len() >= needed && has_in_order(merges, &pairs))
}

/// The rule of ranks as a list of merges: for each token, in the order of ranks, the pair that
/// merges into it. Tokens that no merge produces have none.
pub(crate) fn pairs_of_ranks(vocabulary: &Vocabulary) -> Result<Vec<(u32, u32)>> {
    Ok(merger::by_rank(vocabulary)?.buckets.in_order())
}

/// Whether a list contains all of `pairs` in their order.
fn has_in_order(merges: &[(u32, u32)], pairs: &[(u32, u32)]) -> bool {
    let mut rest = pairs.iter().peekable();
    for pair in merges {
        rest.next_if_eq(&pair);
    }
    rest.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_line_is_an_error_with_its_number() {
        assert_eq!(RankFile::read(b"\r\nYQ== 0\r\n\nYg== \t1").unwrap().tokens.len(), 2);
        for (line, reason) in [
            (&b"YQ=="[..], "a token in base64, a space and a rank are expected"),
            (b"YQ== x", "a token in base64"),
            (b"YQ=== 1", "a token in base64"),
            (b"YQ== -1", "a token in base64"),
            (b"\xFF 1", "a token in base64"),
            (b"Y 1", "the token is not base64"),
            (b"YQ== 5000000000", "rank 5000000000 is not in 0 … 2097149"),
            (b"YQ== 1", "the token b'a' stands twice"),
            (b"YR== 1", "the token b'a' stands twice"),
            (b"Yg== 0", "the rank 0 stands twice"),
        ] {
            let file = [b"YQ== 0\n\n", line].concat();
            let Err(Error::Format { place, reason: found }) = RankFile::read(&file) else {
                panic!("{line:?} is read");
            };
            assert!(place == "line 3" && found.text().starts_with(reason), "{place}: {found}");
        }
    }

    #[test]
    fn the_first_line_tells_a_rank_file() {
        for (head, is) in [
            (&b"\nYQ== 0\n"[..], true),
            (b"= 0", true),
            (b"{\"a\": 1}", false),
            (b"a b", false),
            (b"", false),
        ] {
            assert_eq!(RankFile::is_one(head), is, "{head:?}");
        }
    }

    fn vocabulary(more: &[(&str, u32)]) -> Vocabulary {
        let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
        let more = more.iter().map(|(token, id)| (token.as_bytes().to_vec(), *id));
        Vocabulary::new(bytes.chain(more), []).unwrap()
    }

    #[test]
    fn a_list_is_the_rule_of_ranks_if_it_has_its_pairs_in_order() {
        let vocabulary = vocabulary(&[("ab", 256), (" \"", 257), ("ab \"", 300)]);
        assert_eq!(pairs_of_ranks(&vocabulary).unwrap(), [(97, 98), (32, 34), (256, 257)]);
        for (merges, same) in [
            (vec![(97, 98), (32, 34), (256, 257)], true),
            (vec![(97, 98), (32, 34), (97, 258), (256, 257), (258, 34)], true),
            (vec![(258, 34), (97, 98), (32, 34), (256, 257)], true),
            (vec![(32, 34), (97, 98), (256, 257)], false),
            (vec![(97, 98), (32, 34), (258, 34)], false),
            (vec![], false),
        ] {
            assert_eq!(is_rule_of_ranks(&vocabulary, &merges, true).unwrap(), same, "{merges:?}");
        }
    }

    #[test]
    fn without_ignore_merges_every_token_needs_a_merge() {
        for (more, ignore_merges, same) in [
            (&[("ab", 256)][..], false, true),
            (&[("ab", 256), ("xyz", 257)], false, false),
            (&[("ab", 256), ("xyz", 257)], true, true),
        ] {
            let merges = [(97, 98), (97, 98)];
            let is_same = is_rule_of_ranks(&vocabulary(more), &merges, ignore_merges).unwrap();
            assert_eq!(is_same, same, "{more:?} {ignore_merges}");
        }
    }
}
