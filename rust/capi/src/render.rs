//! Conversations to ids and a loss mask: texts, and ids that a template places between them.

use std::mem::MaybeUninit;

use bytepair::bulk::conversations::Segment;
use bytepair::memory;

use crate::arguments::{self, TextSlice, not_null};
use crate::buffers::{ByteBuffer, IdBuffer, append_bytes, append_ids};
use crate::failure::Code;
use crate::result::{ErrorReport, guard};
use crate::tokenizer::{BYTEPAIR_NO_ID, Handle};

/// A part of a conversation: a text, or an id.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct SegmentSlice {
    /// The text, if `id` is BYTEPAIR_NO_ID. It never becomes a special token, whatever it contains.
    pub text: TextSlice,
    /// The id, usually of a special token; BYTEPAIR_NO_ID for a text.
    pub id: u32,
    /// Whether a model is trained on this part.
    pub trained: bool,
}

/// Render a conversation: append its ids to a buffer that grows, and for each id a byte to `mask`, 1
/// if a model is trained on it, else 0. `mask` may be NULL. The number of new ids is that of the
/// conversation.
///
/// Adjacent texts are encoded as one text; no text becomes a special token, not even if several
/// segments spell its name. An id that covers bytes of several texts is trained on if one of them is.
/// After an error the buffers are as before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bytepair_render(
    tokenizer: Option<&Handle>,
    segments: *const SegmentSlice,
    segments_count: usize,
    ids: Option<&mut IdBuffer>,
    mask: Option<&mut ByteBuffer>,
    error: Option<&mut MaybeUninit<ErrorReport>>,
) -> Code {
    guard(error, || {
        let tokenizer = &not_null("tokenizer", tokenizer)?.core;
        // SAFETY: the caller guarantees this many segments.
        let slices = unsafe { arguments::array("segments", segments, segments_count) }?;
        let mut parts = memory::with_capacity(slices.len())?;
        for SegmentSlice { text, id, .. } in slices {
            parts.push(if *id == BYTEPAIR_NO_ID {
                // SAFETY: the caller guarantees the bytes of each text.
                Segment::Text(unsafe { arguments::text("segments", text.data, text.length) }?)
            } else {
                tokenizer.token_bytes(*id)?;
                Segment::Id(*id)
            });
        }
        let trained = memory::collect(slices.iter().map(|slice| slice.trained))?;
        let all = 0..parts.len();
        let rendered = tokenizer.render(&[all], &parts, &trained, true, 1)?;
        let append = |all: &mut Vec<u32>| {
            memory::reserve(all, rendered.ids.len())?;
            all.extend_from_slice(&rendered.ids);
            Ok(())
        };
        // SAFETY: the caller guarantees that the buffers are as the library left them.
        let render = || unsafe { append_ids(ids, append) };
        match mask {
            None => render(),
            // SAFETY: as above.
            Some(mask) => unsafe {
                append_bytes(Some(mask), |bytes| {
                    memory::reserve(bytes, rendered.mask.len())?;
                    bytes.extend_from_slice(&rendered.mask);
                    render()
                })
            },
        }
    })
}
