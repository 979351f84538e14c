//! Decodes ids into bytes and text.
//!
//! The tokens are stored in one arena in id order, so two offsets locate the bytes of an id.
//! Decoding makes two passes: the first sums the lengths, the second copies the tokens into a
//! buffer of exactly that size. Most tokens have at most 16 bytes and are copied as a fixed 16
//! bytes, which is faster than a copy of variable length.
//!
//! When ids arrive one by one, the bytes so far may end within a character. A [`TextStream`]
//! buffers an incomplete character until its last byte arrives.

pub(crate) mod steps;

use std::fmt::Display;

use crate::error::{Error, Result};
use crate::memory;
use crate::vocabulary::Vocabulary;

/// Tokens of at most this many bytes are copied with a fixed size.
const COPY_BYTES: usize = 16;

/// An integer type in which ids may be given.
pub trait Number: Copy + Display + Send + Sync {
    /// The value as an id; `None` if it is out of range.
    fn id(self) -> Option<u32>;
}

macro_rules! numbers {
    ($($kind:ty),*) => {$(
        impl Number for $kind {
            #[inline]
            fn id(self) -> Option<u32> {
                u32::try_from(self).ok()
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64, i8, i16, i32, i64);

/// Append the bytes of `ids` to `out`.
///
/// Fails with [`Error::UnknownId`] at the first id without a token; `out` is then unchanged.
///
/// ```
/// use bytepair::{Vocabulary, decode};
/// let tokens = [(b"Hello".to_vec(), 0), (b" world".to_vec(), 1)];
/// let vocabulary = Vocabulary::new(tokens, [])?;
/// let mut bytes = Vec::new();
/// decode::decode_bytes(&vocabulary, &[0u16, 1, 1], &mut bytes)?;
/// assert_eq!(bytes, b"Hello world world");
/// # Ok::<(), bytepair::Error>(())
/// ```
pub fn decode_bytes<N: Number>(
    vocabulary: &Vocabulary,
    ids: &[N],
    out: &mut Vec<u8>,
) -> Result<()> {
    let start = out.len();
    let length = decoded_length(vocabulary, ids)?;
    memory::reserve(out, length)?;
    out.resize(start + length, 0);
    write(vocabulary, ids, &mut out[start..]).inspect_err(|_| out.truncate(start))
}

/// The number of bytes of the ids.
///
/// Fails with [`Error::UnknownId`] at the first id without a token.
pub fn decoded_length<N: Number>(vocabulary: &Vocabulary, ids: &[N]) -> Result<usize> {
    let mut length = 0;
    for &number in ids {
        match number.id().map_or(0, |id| vocabulary.token_length(id)) {
            0 => return Err(unknown_id(vocabulary, number)),
            more => length += more,
        }
    }
    Ok(length)
}

/// Write the bytes of `ids` into `out`, whose length must be [`decoded_length`].
///
/// Fails with [`Error::Changed`] if the bytes do not fill `out` exactly, as when another thread
/// changes the ids in between; `out` then has any bytes.
pub fn write<N: Number>(vocabulary: &Vocabulary, ids: &[N], out: &mut [u8]) -> Result<()> {
    let (arena, offsets) = vocabulary.arrays();
    let mut done = 0;
    for id in ids.iter().filter_map(|number| number.id()) {
        // An id beyond the vocabulary was an error in the first pass, so the ids have changed
        // since.
        let Some(&[start, end]) = offsets.get(id as usize..).and_then(<[u32]>::first_chunk) else {
            return Err(Error::Changed);
        };
        let (start, end) = (start as usize, end as usize);
        let length = end - start;
        let from = arena[start..].first_chunk::<COPY_BYTES>().filter(|_| length <= COPY_BYTES);
        let rest = out.get_mut(done..).unwrap_or_default();
        // The copy may write bytes after the token; the next token overwrites them. `rest` has no
        // 16 bytes near its end, so there the copy is exact and nothing is left over.
        match (from, rest.first_chunk_mut::<COPY_BYTES>()) {
            (Some(from), Some(to)) => *to = *from,
            _ => rest.get_mut(..length).ok_or(Error::Changed)?.copy_from_slice(&arena[start..end]),
        }
        done += length;
    }
    if done == out.len() { Ok(()) } else { Err(Error::Changed) }
}

/// The ids that are not in `skipped`, which must be in order. A number that is no id stays, so that
/// decoding reports it.
///
/// ```
/// assert_eq!(bytepair::decode::without(&[7i32, 300, -1, 9, 301], &[300, 301])?, [7, -1, 9]);
/// # Ok::<(), bytepair::Error>(())
/// ```
pub fn without<N: Number>(ids: &[N], skipped: &[u32]) -> Result<Vec<N>> {
    let mut remaining = memory::with_room(ids.len())?;
    let stays = |number: &N| number.id().is_none_or(|id| skipped.binary_search(&id).is_err());
    remaining.extend(ids.iter().copied().filter(stays));
    Ok(remaining)
}

pub(crate) fn unknown_id(vocabulary: &Vocabulary, id: impl Display) -> Error {
    Error::UnknownId { id: id.to_string(), vocab_size: vocabulary.len() }
}

/// Converts bytes that arrive in pieces into text, without splitting characters.
///
/// Each maximal invalid part becomes U+FFFD. The output, concatenated, equals
/// [`String::from_utf8_lossy`] of all input.
///
/// ```
/// let mut stream = bytepair::decode::TextStream::default();
/// let mut text = String::new();
/// stream.push(b"caf\xc3", &mut text);
/// assert_eq!(text, "caf");
/// stream.push(b"\xa9", &mut text);
/// stream.push(b"\xe2\x82", &mut text);
/// stream.flush(&mut text);
/// assert_eq!(text, "café\u{fffd}");
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct TextStream {
    /// The start of an incomplete character.
    pending: [u8; 3],
    length: u8,
}

impl TextStream {
    /// Take bytes and append all complete characters to `out`.
    pub fn push(&mut self, mut bytes: &[u8], out: &mut String) {
        while self.length > 0 {
            let Some((&byte, rest)) = bytes.split_first() else { return };
            // One byte at a time, until the character is complete or cannot be completed.
            let mut part = [0; 4];
            let pending = usize::from(self.length);
            part[..pending].copy_from_slice(&self.pending[..pending]);
            part[pending] = byte;
            match std::str::from_utf8(&part[..=pending]) {
                Ok(character) => {
                    out.push_str(character);
                    self.length = 0;
                    bytes = rest;
                }
                Err(error) if error.error_len().is_none() => {
                    self.buffer(&part[..=pending]);
                    bytes = rest;
                }
                Err(_) => self.flush(out), // the byte starts a new character or is invalid
            }
        }
        for chunk in bytes.utf8_chunks() {
            out.push_str(chunk.valid());
            let invalid = chunk.invalid();
            let at_end = invalid.as_ptr_range().end == bytes.as_ptr_range().end;
            let is_incomplete = |e: std::str::Utf8Error| e.error_len().is_none();
            if invalid.is_empty() {
                continue;
            }
            if at_end && std::str::from_utf8(invalid).is_err_and(is_incomplete) {
                self.buffer(invalid);
            } else {
                out.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }

    /// End the text: append U+FFFD if a character is incomplete. The stream can be used again.
    pub fn flush(&mut self, out: &mut String) {
        if self.length > 0 {
            out.push(char::REPLACEMENT_CHARACTER);
            self.length = 0;
        }
    }

    /// Buffer the start of an incomplete character, which has at most 3 bytes.
    fn buffer(&mut self, start: &[u8]) {
        self.pending[..start.len()].copy_from_slice(start);
        self.length = start.len().to_le_bytes()[0];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn vocabulary() -> Vocabulary {
        let bytes = (0..=255u8).map(|byte| (vec![byte], u32::from(byte)));
        let longer = (0u8..40).map(|n| (vec![n; usize::from(n) + 2], 300 + u32::from(n)));
        Vocabulary::new(bytes.chain(longer), [("<s>".to_owned(), 400)]).unwrap()
    }

    proptest! {
        /// The slow reference concatenates the tokens one by one.
        #[test]
        fn decoding_equals_concatenating_tokens(ids in prop::collection::vec(
            prop_oneof![0u16..256, 300u16..340, Just(400)], 0..60)) {
            let vocabulary = vocabulary();
            let tokens = ids.iter().map(|&id| vocabulary.bytes(u32::from(id)).unwrap());
            let plain = tokens.collect::<Vec<_>>().concat();
            let mut out = b"before".to_vec();
            decode_bytes(&vocabulary, &ids, &mut out).unwrap();
            prop_assert_eq!(&out[6..], &plain[..]);
            let wide: Vec<i64> = ids.iter().map(|&id| i64::from(id)).collect();
            out.clear();
            decode_bytes(&vocabulary, &wide, &mut out).unwrap();
            prop_assert_eq!(out, plain);
        }

        #[test]
        fn a_stream_equals_decoding_the_whole(
            parts in prop::collection::vec(prop_oneof![
                prop::collection::vec(any::<u8>(), 0..4),
                prop::collection::vec(prop::sample::select(
                    &[0x61, 0x80, 0xA0, 0xBF, 0xC3, 0xE0, 0xED, 0xF0, 0xF4, 0x90, 0xFF][..]), 0..6),
                any::<char>().prop_map(|c| c.to_string().into_bytes()),
            ], 0..20),
            cut in 1usize..4,
        ) {
            let whole = parts.concat();
            let expected = String::from_utf8_lossy(&whole);
            for pieces in [parts.clone(), whole.chunks(cut).map(<[u8]>::to_vec).collect()] {
                let (mut stream, mut text) = (TextStream::default(), String::new());
                for piece in &pieces {
                    stream.push(piece, &mut text);
                    prop_assert!(expected.starts_with(&text));
                }
                stream.flush(&mut text);
                prop_assert_eq!(&*text, &*expected);
            }
        }
    }

    #[test]
    fn the_error_names_the_first_unknown_id() {
        let vocabulary = vocabulary();
        let mut out = b"before".to_vec();
        for wrong in [-1, 256, 341, 401, 1 << 40] {
            let error = decode_bytes(&vocabulary, &[65i64, wrong, -7], &mut out).unwrap_err();
            assert_eq!(error, unknown_id(&vocabulary, wrong));
            assert_eq!(out, b"before");
        }
    }
}
