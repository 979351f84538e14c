//! Ids to bytes, and to text one by one.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytepair::tokenizer::decode_stream::DecodeStream;
use bytepair::tokenizer::decode_stream::Stops;
use bytepair::{Tokenizer, memory};

use crate::arguments::{self, TextSlice, not_null};
use crate::buffers::{ByteBuffer, append_bytes};
use crate::failure::{CallFailure, Code};
use crate::result::{ErrorReport, caught, copy, guard};
use crate::tokenizer::Handle;

/// Decodes ids one by one, as a model generates them. Calls from several threads take turns.
#[derive(Debug)]
pub struct DecoderHandle {
    tokenizer: Arc<Tokenizer>,
    stream: Mutex<DecodeStream>,
}

/// Decode ids into a buffer of the caller.
///
/// Writes as many bytes as there is room for, and to `length` the number of all. If that is more
/// than `capacity`, the result is BYTEPAIR_CODE_TOO_SMALL. The bytes are those of the tokens, which may
/// end within a character, or not be UTF-8 at all; a decoder gives text instead. No zero byte is
/// added. Fails if the vocabulary does not have an id.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bytepair_decode(
    tokenizer: Option<&Handle>,
    ids: *const u32,
    ids_count: usize,
    bytes: *mut c_char,
    capacity: usize,
    length: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<ErrorReport>>,
) -> Code {
    guard(error, || {
        // SAFETY: the caller guarantees this many ids.
        let ids = unsafe { arguments::array("ids", ids, ids_count) }?;
        let text_bytes = not_null("tokenizer", tokenizer)?.core.decode_bytes(ids)?;
        // SAFETY: the caller guarantees room for `capacity` bytes.
        unsafe { copy(&text_bytes, bytes.cast(), capacity, length) }
    })
}

/// Decode ids and append their bytes to a buffer that grows. After an error the bytes are as
/// before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bytepair_decode_append(
    tokenizer: Option<&Handle>,
    ids: *const u32,
    ids_count: usize,
    bytes: Option<&mut ByteBuffer>,
    error: Option<&mut MaybeUninit<ErrorReport>>,
) -> Code {
    guard(error, || {
        // SAFETY: the caller guarantees this many ids.
        let ids = unsafe { arguments::array("ids", ids, ids_count) }?;
        let text_bytes = not_null("tokenizer", tokenizer)?.core.decode_bytes(ids)?;
        // SAFETY: the caller guarantees that the buffer is as the library left it.
        unsafe { append_bytes(bytes, |bytes| extend(bytes, &text_bytes)) }
    })
}

/// Start to decode ids one by one.
#[unsafe(no_mangle)]
pub extern "C" fn bytepair_decoder_new(
    tokenizer: Option<&Handle>,
    decoder: Option<&mut MaybeUninit<*mut DecoderHandle>>,
    error: Option<&mut MaybeUninit<ErrorReport>>,
) -> Code {
    guard(error, || {
        let tokenizer = Arc::clone(&not_null("tokenizer", tokenizer)?.core);
        let stream = Mutex::new(DecodeStream::new(&tokenizer));
        let place = not_null("decoder", decoder)?;
        place.write(Box::into_raw(Box::new(DecoderHandle { tokenizer, stream })));
        Ok(())
    })
}

/// Let stop strings end the text of a decoder: the text ends where the first of them is complete (the
/// longest, if several are), and the string itself is dropped, unless `keep` is true. What may be the
/// beginning of one is held back. The name of a special token also stops at its id. Call this before
/// the first id. Fails if a string is empty.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bytepair_decoder_stop(
    decoder: Option<&DecoderHandle>,
    stops: *const TextSlice,
    stops_count: usize,
    keep: bool,
    error: Option<&mut MaybeUninit<ErrorReport>>,
) -> Code {
    guard(error, || {
        let decoder = not_null("decoder", decoder)?;
        // SAFETY: the caller guarantees this many texts, and the bytes of each.
        let strings = unsafe { arguments::texts("stops", stops, stops_count) }?;
        let stops = Stops::new(&decoder.tokenizer, &strings, keep)?;
        let mut stream = locked(Some(decoder))?;
        *stream = stream.clone().stopping(Arc::new(stops));
        Ok(())
    })
}

/// The number of the stop string that ended the text, from 0, or SIZE_MAX if none has.
#[unsafe(no_mangle)]
pub extern "C" fn bytepair_decoder_stopped(decoder: Option<&DecoderHandle>) -> usize {
    caught(usize::MAX, || {
        let number = |stream: MutexGuard<'_, DecodeStream>| Some(stream.stopped()?.0);
        locked(decoder).ok().and_then(number).unwrap_or(usize::MAX)
    })
}

/// Take one id and append the text that is now complete, which may be nothing, to a buffer that
/// grows. After a stop string, nothing is appended.
///
/// The text is always UTF-8 and never ends within a character; bytes that cannot become a character
/// become U+FFFD. If the vocabulary does not have the id, the decoder does not change.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bytepair_decoder_push(
    decoder: Option<&DecoderHandle>,
    id: u32,
    text: Option<&mut ByteBuffer>,
    error: Option<&mut MaybeUninit<ErrorReport>>,
) -> Code {
    guard(error, || {
        let push = |bytes: &mut Vec<u8>| {
            let complete = locked(decoder)?.push(id)?;
            extend(bytes, complete.as_bytes())
        };
        // SAFETY: the caller guarantees that the buffer is as the library left it.
        unsafe { append_bytes(text, push) }
    })
}

/// End the text: append U+FFFD if its last character is incomplete, else nothing. The decoder can
/// be used again, for another text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bytepair_decoder_flush(
    decoder: Option<&DecoderHandle>,
    text: Option<&mut ByteBuffer>,
    error: Option<&mut MaybeUninit<ErrorReport>>,
) -> Code {
    guard(error, || {
        let flush = |bytes: &mut Vec<u8>| {
            let last = locked(decoder)?.flush()?;
            extend(bytes, last.as_bytes())
        };
        // SAFETY: the caller guarantees that the buffer is as the library left it.
        unsafe { append_bytes(text, flush) }
    })
}

/// Free a decoder. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn bytepair_decoder_free(decoder: Option<Box<DecoderHandle>>) {
    caught((), || drop(decoder));
}

/// The stream of a decoder. A stream is whole between any two steps, so a panic does not spoil it.
fn locked(decoder: Option<&DecoderHandle>) -> Result<MutexGuard<'_, DecodeStream>, CallFailure> {
    let decoder = not_null("decoder", decoder)?;
    Ok(decoder.stream.lock().unwrap_or_else(PoisonError::into_inner))
}

fn extend(bytes: &mut Vec<u8>, more: &[u8]) -> Result<(), CallFailure> {
    memory::reserve(bytes, more.len())?;
    bytes.extend_from_slice(more);
    Ok(())
}
