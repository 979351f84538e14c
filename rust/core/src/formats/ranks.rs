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
use crate::pretokenize::Pattern;
use crate::tokenizer::Tokenizer;
use crate::vocabulary::{MAX_VOCAB_SIZE, Vocabulary};

/// The note with the id of a token without bytes. No text has it, so it is no token here, but it is
/// written back: the files of Whisper list one.
pub const EMPTY_NOTE: &str = "empty_token";

/// Accepts what Python's `base64` does, by which tiktoken reads: bits behind the last byte.
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
}
