//! Ids in, bytes out: the bytes of each id, end to end.

use crate::error::{Error, Result};
use crate::vocabulary::Vocabulary;

/// Append the bytes of `ids` to `out`.
///
/// Fails with [`Error::UnknownId`] at the first id that stands for nothing.
///
/// ```
/// use bytepair::{Vocabulary, decode};
/// let tokens = [(b"Hello".to_vec(), 0), (b" world".to_vec(), 1)];
/// let vocabulary = Vocabulary::new(tokens, [])?;
/// let mut bytes = Vec::new();
/// decode::decode_bytes(&vocabulary, &[0, 1, 1], &mut bytes)?;
/// assert_eq!(bytes, b"Hello world world");
/// # Ok::<(), bytepair::Error>(())
/// ```
pub fn decode_bytes(vocabulary: &Vocabulary, ids: &[u32], out: &mut Vec<u8>) -> Result<()> {
    out.reserve(ids.len() * 4);
    for &id in ids {
        let token = vocabulary.bytes(id).ok_or_else(|| unknown_id(vocabulary, id))?;
        out.extend_from_slice(token);
    }
    Ok(())
}

pub(crate) fn unknown_id(vocabulary: &Vocabulary, id: u32) -> Error {
    Error::UnknownId { id: id.to_string(), vocab_size: vocabulary.len() }
}
