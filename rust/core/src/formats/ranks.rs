//! Rank files, as tiktoken publishes them: on each line a token in base64, a space, and its rank.
//!
//! The rank is also the id. A rank file has no split pattern and no special tokens; the caller
//! supplies them. Source: `tiktoken/load.py` of github.com/openai/tiktoken.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::error::{Error, Result};
use crate::pretokenize::Pattern;
use crate::tokenizer::Tokenizer;
use crate::vocabulary::Vocabulary;

impl Tokenizer {
    /// Load a tokenizer from the bytes of a rank file.
    ///
    /// Fails with [`Error::File`] at the first line that is not a token and a rank, and as
    /// [`Vocabulary::new`] and [`Tokenizer::from_ranks`] do.
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
        let mut tokens = Vec::new();
        let mut at = 0;
        for line in file.split_inclusive(|&byte| byte == b'\n') {
            if !line.trim_ascii().is_empty() {
                tokens.push(token(line.trim_ascii()).map_err(|reason| broken(at, &reason))?);
            }
            at += line.len();
        }
        Self::from_ranks(Vocabulary::new(tokens, special)?, pattern)
    }
}

/// The token and the rank of a line, or what is wrong with it.
fn token(line: &[u8]) -> std::result::Result<(Vec<u8>, u32), String> {
    let line = std::str::from_utf8(line).map_err(|_| "the line is not ASCII".to_owned())?;
    let (token, rank) = line.split_once(' ').ok_or("expected a token in base64 and a rank")?;
    let token = STANDARD.decode(token).map_err(|error| format!("the token: {error}"))?;
    let rank = rank.trim().parse().map_err(|error| format!("the rank {rank:?}: {error}"))?;
    Ok((token, rank))
}

fn broken(at: usize, reason: &str) -> Error {
    Error::File { at, reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_line_is_an_error_with_its_offset() {
        let read = |file: &[u8]| Tokenizer::from_rank_file(file, [], Pattern::new("gpt2").unwrap());
        assert_eq!(read(b"\r\nYQ== 0\r\n\nYg== 1").unwrap().vocabulary().len(), 2);
        for line in [&b"YQ=="[..], b"YQ== x", b"Y 1", b"YQ== -1", b"\xFF 1", b"YQ== 5000000000"] {
            let file = [b"YQ== 0\n", line].concat();
            assert!(matches!(read(&file), Err(Error::File { at: 7, .. })), "{line:?}");
        }
        assert!(matches!(read(b"YQ== 0\nYQ== 1"), Err(Error::Vocabulary { .. })));
    }
}
