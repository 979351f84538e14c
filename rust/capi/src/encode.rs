//! Texts to ids: encoding, counting, truncating.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::sync::Arc;

use bytepair::tokenizer::offsets::Keep;
use bytepair::{EncodeOptions, Special, Text, Tokenizer, memory};

use crate::arguments::{self, TextSlice, not_null};
use crate::buffers::{IdBuffer, append_ids};
use crate::failure::{CallFailure, Code};
use crate::result::{ErrorReport, caught, copy, guard, put};
use crate::tokenizer::{BYTEPAIR_NO_ID, Handle};

/// How a text is encoded: prepared once for a tokenizer, for any number of texts. Any number of
/// threads may use it at once; it never changes.
#[derive(Debug)]
pub struct OptionsHandle {
    tokenizer: Arc<Tokenizer>,
    options: EncodeOptions,
}

/// The text of special tokens is ordinary text, except that of added tokens that control nothing.
pub const BYTEPAIR_SPECIAL_TEXT: u32 = 0;
/// Every special token becomes its id.
pub const BYTEPAIR_SPECIAL_ALL: u32 = 1;
/// The named special tokens become their ids; others are ordinary text.
pub const BYTEPAIR_SPECIAL_ONLY: u32 = 2;
/// The text of a special token is an error.
pub const BYTEPAIR_SPECIAL_ERROR: u32 = 3;
/// No special token is found, and no added token that controls nothing.
pub const BYTEPAIR_SPECIAL_NONE: u32 = 4;
/// As BYTEPAIR_SPECIAL_TEXT, for the messages of a conversation: added tokens are found only if
/// they are white space.
pub const BYTEPAIR_SPECIAL_MESSAGE: u32 = 5;

/// Prepare options. `special` is one of BYTEPAIR_SPECIAL_TEXT, ..._ALL, ..._ONLY, ..._ERROR,
/// ..._NONE and ..._MESSAGE; `names` are those of BYTEPAIR_SPECIAL_ONLY. The ids `prepend` and
/// `append` precede and follow each text, unless they are BYTEPAIR_NO_ID; if `add_special_tokens`,
/// so do those of the post-processor of a tokenizer.json, next to the text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bytepair_options_new(
    tokenizer: Option<&Handle>,
    special: u32,
    names: *const TextSlice,
    names_count: usize,
    prepend: u32,
    append: u32,
    add_special_tokens: bool,
    options: Option<&mut MaybeUninit<*mut OptionsHandle>>,
    error: Option<&mut MaybeUninit<ErrorReport>>,
) -> Code {
    guard(error, || {
        let tokenizer = Arc::clone(&not_null("tokenizer", tokenizer)?.core);
        // SAFETY: the caller guarantees this many names.
        let names = unsafe { arguments::texts("names", names, names_count) }?;
        let special = special_of(special, &names)?;
        let around = [prepend, append].map(|id| (id != BYTEPAIR_NO_ID).then_some(id));
        for id in around.into_iter().flatten() {
            tokenizer.token_bytes(id)?;
        }
        let (prepend, append) = tokenizer.around(around[0], around[1], add_special_tokens);
        let core_options = tokenizer.options(&special, &prepend, &append)?;
        let place = not_null("options", options)?;
        place.write(Box::into_raw(Box::new(OptionsHandle { tokenizer, options: core_options })));
        Ok(())
    })
}

/// Free options. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn bytepair_options_free(options: Option<Box<OptionsHandle>>) {
    caught((), || drop(options));
}

fn special_of(mode: u32, names: &[&str]) -> Result<Special, CallFailure> {
    if mode != BYTEPAIR_SPECIAL_ONLY && !names.is_empty() {
        let reason = "names are for BYTEPAIR_SPECIAL_ONLY; pass none, or that as special";
        return Err(CallFailure::Argument(reason.to_owned()));
    }
    Ok(match mode {
        BYTEPAIR_SPECIAL_TEXT => Special::Text,
        BYTEPAIR_SPECIAL_ALL => Special::All,
        BYTEPAIR_SPECIAL_ONLY => Special::Only(names.iter().map(|&name| name.to_owned()).collect()),
        BYTEPAIR_SPECIAL_ERROR => Special::Error,
        BYTEPAIR_SPECIAL_NONE => Special::None,
        BYTEPAIR_SPECIAL_MESSAGE => Special::Message,
        _ => {
            let reason =
                format!("special is {mode}; pass one of BYTEPAIR_SPECIAL_TEXT and the others");
            return Err(CallFailure::Argument(reason));
        }
    })
}

/// A tokenizer and the options of a call; without options, the plain ones.
fn prepared<'a>(
    tokenizer: Option<&'a Handle>,
    options: Option<&'a OptionsHandle>,
) -> Result<(&'a Tokenizer, &'a EncodeOptions), CallFailure> {
    let tokenizer = &not_null("tokenizer", tokenizer)?.core;
    match options {
        None => Ok((tokenizer, tokenizer.plain())),
        Some(options) if Arc::ptr_eq(&options.tokenizer, tokenizer) => {
            Ok((tokenizer, &options.options))
        }
        Some(_) => Err(CallFailure::Argument(
            "the options were prepared for another tokenizer; prepare them for this one".to_owned(),
        )),
    }
}

/// Encode a text into a buffer of the caller.
///
/// Writes as many ids as there is room for, and to `count` the number of all. If that is more than
/// `capacity`, the result is BYTEPAIR_CODE_TOO_SMALL. `options` may be NULL: the text of special tokens
/// is then ordinary text, and no ids are added.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bytepair_encode(
    tokenizer: Option<&Handle>,
    text: *const c_char,
    length: usize,
    options: Option<&OptionsHandle>,
    ids: *mut u32,
    capacity: usize,
    count: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<ErrorReport>>,
) -> Code {
    guard(error, || {
        // SAFETY: the caller guarantees this many bytes.
        let text = unsafe { arguments::bytes("text", text, length) }?;
        let (tokenizer, options) = prepared(tokenizer, options)?;
        // SAFETY: the caller guarantees room for `capacity` ids.
        let copied = |new_ids: &[u32]| unsafe { copy(new_ids, ids, capacity, count) };
        tokenizer.encode_text(&Text::Bytes(text), options, copied)?
    })
}

/// Encode a text and append its ids to a buffer that grows. After an error the ids are as before.
/// `options` may be NULL, as for bytepair_encode.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bytepair_encode_append(
    tokenizer: Option<&Handle>,
    text: *const c_char,
    length: usize,
    options: Option<&OptionsHandle>,
    ids: Option<&mut IdBuffer>,
    error: Option<&mut MaybeUninit<ErrorReport>>,
) -> Code {
    guard(error, || {
        // SAFETY: the caller guarantees this many bytes.
        let text = unsafe { arguments::bytes("text", text, length) }?;
        let (tokenizer, options) = prepared(tokenizer, options)?;
        let append = |ids: &mut Vec<u32>| {
            let extend = |new_ids: &[u32]| {
                memory::reserve(ids, new_ids.len())?;
                ids.extend_from_slice(new_ids);
                Ok(())
            };
            tokenizer.encode_text(&Text::Bytes(text), options, extend)?
        };
        // SAFETY: the caller guarantees that the buffer is as the library left it.
        unsafe { append_ids(ids, append) }
    })
}

/// The number of ids of a text; faster than encoding. `options` may be NULL, as for
/// bytepair_encode.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bytepair_count(
    tokenizer: Option<&Handle>,
    text: *const c_char,
    length: usize,
    options: Option<&OptionsHandle>,
    count: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<ErrorReport>>,
) -> Code {
    guard(error, || {
        // SAFETY: the caller guarantees this many bytes.
        let text = unsafe { arguments::bytes("text", text, length) }?;
        let (tokenizer, options) = prepared(tokenizer, options)?;
        put("count", count, tokenizer.count_text(&Text::Bytes(text), options)?)
    })
}

/// Truncate a text to at most `most` ids, without cutting a character: writes where the part that
/// is kept starts, and its number of bytes. Keeps the end of the text if `keep_end` is true, else
/// its start. The text of special tokens counts as ordinary text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bytepair_truncate(
    tokenizer: Option<&Handle>,
    text: *const c_char,
    length: usize,
    most: usize,
    keep_end: bool,
    kept: Option<&mut MaybeUninit<*const c_char>>,
    kept_length: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<ErrorReport>>,
) -> Code {
    guard(error, || {
        // SAFETY: the caller guarantees this many bytes.
        let text = unsafe { arguments::text("text", text, length) }?;
        let keep = if keep_end { Keep::End } else { Keep::Start };
        let part = not_null("tokenizer", tokenizer)?.core.truncate_text(text, most, keep)?;
        put("kept_length", kept_length, part.len())?;
        put("kept", kept, part.as_ptr().cast())
    })
}
