//! What a tokenizer contains: its vocabulary, special tokens and roles.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::sync::Arc;

use bytepair::{Role, Tokenizer};

use crate::arguments::{self, not_null};
use crate::failure::{CallFailure, Code};
use crate::result::{ErrorReport, caught, guard, put};

/// A tokenizer. Any number of threads may use it at once; it never changes.
#[derive(Debug)]
pub struct Handle {
    pub(crate) core: Arc<Tokenizer>,
}

/// Stands for an id where there is none.
pub const BYTEPAIR_NO_ID: u32 = u32::MAX;

/// The role of the special token that begins a text.
pub const BYTEPAIR_ROLE_BOS: u32 = 0;
/// The role of the special token that ends a text.
pub const BYTEPAIR_ROLE_EOS: u32 = 1;
/// The role of the special token that fills the end of a row.
pub const BYTEPAIR_ROLE_PAD: u32 = 2;
/// The role of the special token that ends a turn of a conversation.
pub const BYTEPAIR_ROLE_END_OF_TURN: u32 = 3;

/// The number of ids, including unused ones: all ids are below it. 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn bytepair_vocab_size(tokenizer: Option<&Handle>) -> usize {
    tokenizer.map_or(0, |tokenizer| tokenizer.core.vocabulary().len())
}

/// Whether every text is decoded to itself; some tokenizers change texts before they encode them.
/// False for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn bytepair_is_lossless(tokenizer: Option<&Handle>) -> bool {
    tokenizer.is_some_and(|tokenizer| tokenizer.core.is_lossless())
}

/// The bytes of an id: of an ordinary token, which may be a part of a character, or the name of a
/// special token. The pointer is valid as long as the tokenizer, and no zero byte follows. Fails if
/// the id is unused or too large.
#[unsafe(no_mangle)]
pub extern "C" fn bytepair_token_bytes(
    tokenizer: Option<&Handle>,
    id: u32,
    data: Option<&mut MaybeUninit<*const c_char>>,
    length: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<ErrorReport>>,
) -> Code {
    guard(error, || put_text(not_null("tokenizer", tokenizer)?.core.token_bytes(id)?, data, length))
}

/// The id of the ordinary token with these bytes; BYTEPAIR_NO_ID if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bytepair_token_id(
    tokenizer: Option<&Handle>,
    token: *const c_char,
    length: usize,
) -> u32 {
    // SAFETY: the caller guarantees this many bytes.
    let token = unsafe { arguments::bytes("token", token, length) }.ok();
    let id = || tokenizer?.core.vocabulary().id(token?);
    caught(None, id).unwrap_or(BYTEPAIR_NO_ID)
}

/// The number of special tokens. 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn bytepair_special_count(tokenizer: Option<&Handle>) -> usize {
    tokenizer.map_or(0, |tokenizer| tokenizer.core.vocabulary().special_tokens().len())
}

/// The special token at an index, in the order of ids: its name, as long as the tokenizer is valid,
/// and its id. No zero byte follows the name.
#[unsafe(no_mangle)]
pub extern "C" fn bytepair_special_token(
    tokenizer: Option<&Handle>,
    index: usize,
    name: Option<&mut MaybeUninit<*const c_char>>,
    length: Option<&mut MaybeUninit<usize>>,
    id: Option<&mut MaybeUninit<u32>>,
    error: Option<&mut MaybeUninit<ErrorReport>>,
) -> Code {
    guard(error, || {
        let special = not_null("tokenizer", tokenizer)?.core.vocabulary().added_tokens();
        let token = special.get(index).ok_or_else(|| {
            CallFailure::Argument(format!(
                "index {index} is not below {}, the number of special tokens",
                special.len()
            ))
        })?;
        put_text(token.content.as_bytes(), name, length)?;
        put("id", id, token.id)
    })
}

/// The id of a special token by its name; the message of the error lists the special tokens.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bytepair_special_id(
    tokenizer: Option<&Handle>,
    name: *const c_char,
    length: usize,
    id: Option<&mut MaybeUninit<u32>>,
    error: Option<&mut MaybeUninit<ErrorReport>>,
) -> Code {
    guard(error, || {
        // SAFETY: the caller guarantees this many bytes.
        let name = unsafe { arguments::text("name", name, length) }?;
        put("id", id, not_null("tokenizer", tokenizer)?.core.special_id(name)?)
    })
}

/// The id of the special token with a role, one of BYTEPAIR_ROLE_BOS, BYTEPAIR_ROLE_EOS,
/// BYTEPAIR_ROLE_PAD and BYTEPAIR_ROLE_END_OF_TURN; BYTEPAIR_NO_ID if there is none.
///
/// Roles are those that the native file states, and those that follow from the names of special
/// tokens.
#[unsafe(no_mangle)]
pub extern "C" fn bytepair_role(tokenizer: Option<&Handle>, role: u32) -> u32 {
    let role = match role {
        BYTEPAIR_ROLE_BOS => Role::Bos,
        BYTEPAIR_ROLE_EOS => Role::Eos,
        BYTEPAIR_ROLE_PAD => Role::Pad,
        BYTEPAIR_ROLE_END_OF_TURN => Role::EndOfTurn,
        _ => return BYTEPAIR_NO_ID,
    };
    let id = || Some(tokenizer?.core.role(role)?.1);
    caught(None, id).unwrap_or(BYTEPAIR_NO_ID)
}

/// Write where the bytes of a text are, and their number.
fn put_text(
    text: &[u8],
    data: Option<&mut MaybeUninit<*const c_char>>,
    length: Option<&mut MaybeUninit<usize>>,
) -> Result<(), CallFailure> {
    put("length", length, text.len())?;
    put("data", data, text.as_ptr().cast())
}
