//! The functions of C: any bytes as a file, a text and ids give a code, and memory of the caller is
//! written inside its bounds.
//!
//! The first byte of the input chooses how a tokenizer is loaded; a zero byte ends the file, and the
//! text follows.
#![no_main]
#![allow(dead_code, unused_imports, reason = "the library for C is compiled as a module")]

use std::mem::MaybeUninit;

use libfuzzer_sys::fuzz_target;

#[path = "../../capi/src/lib.rs"]
mod capi;

// The library calls its files by these names.
use capi::{arguments, buffers, decode, encode, failure, load, render, result, tokenizer, train};

use buffers::{ByteBuffer, IdBuffer};
use failure::Code;
use tokenizer::Handle;

/// A valid file, for inputs that are about texts.
const RANKS: &[u8] = b"YQ== 0\nYg== 1\nIA== 2\nYWI= 3\nYWJhYg== 4\n";

/// What follows the ids and bytes that a call may write.
const GUARD: u8 = 0xA5;

fuzz_target!(|data: &[u8]| {
    let Some((&first, rest)) = data.split_first() else { return };
    let end = rest.iter().position(|&byte| byte == 0).unwrap_or(rest.len());
    let (file, text) = (&rest[..end], rest.get(end + 1..).unwrap_or_default());
    let Some(handle) = loaded(first, file) else { return };
    encoded(&handle, text, first);
    decoded(&handle, text);
    load::bytepair_tokenizer_free(Some(handle));
});

/// The tokenizer of a file, if it is one.
fn loaded(first: u8, file: &[u8]) -> Option<Box<Handle>> {
    let (mut place, mut report) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let (none, ids) = (std::ptr::null(), std::ptr::null());
    let ranks = |bytes: &[u8], place: &mut _, report: &mut _| {
        let (data, name) = (bytes.as_ptr(), c"gpt2".as_ptr());
        // SAFETY: the bytes are as long as it says, and the pattern ends with a zero byte.
        unsafe {
            load::bytepair_load_ranks_bytes(
                data,
                bytes.len(),
                name,
                none,
                ids,
                0,
                Some(place),
                Some(report),
            )
        }
    };
    let code = match first % 3 {
        0 => ranks(RANKS, &mut place, &mut report),
        1 => ranks(file, &mut place, &mut report),
        // SAFETY: the bytes are as long as it says.
        _ => unsafe {
            let (data, length) = (file.as_ptr(), file.len());
            load::bytepair_load_bytes(data, length, Some(&mut place), Some(&mut report))
        },
    };
    // SAFETY: a call that succeeds has written a handle of its own.
    (code == Code::Ok).then(|| unsafe { Box::from_raw(place.assume_init()) })
}

/// Encode into a buffer that may be too small, and into one that grows: both have the same ids.
fn encoded(handle: &Handle, text: &[u8], capacity: u8) {
    let (data, length) = (text.as_ptr().cast(), text.len());
    let mut room = vec![u32::from_ne_bytes([GUARD; 4]); usize::from(capacity) + 1];
    let (mut count, most) = (MaybeUninit::uninit(), usize::from(capacity));
    let mut grows = IdBuffer { data: std::ptr::null_mut(), length: 0, capacity: 0 };
    // SAFETY: the text and the room are as long as it says, and the buffer is empty.
    let (code, other, ids) = unsafe {
        let ids = room.as_mut_ptr();
        let (handle, count) = (Some(handle), Some(&mut count));
        let code = encode::bytepair_encode(handle, data, length, None, ids, most, count, None);
        let other =
            encode::bytepair_encode_append(handle, data, length, None, Some(&mut grows), None);
        let ids = if grows.data.is_null() {
            Vec::new()
        } else {
            std::slice::from_raw_parts(grows.data, grows.length).to_vec()
        };
        buffers::bytepair_ids_free(Some(&mut grows));
        (code, other, ids)
    };
    assert_eq!(room[most], u32::from_ne_bytes([GUARD; 4]), "a call wrote beyond its room");
    assert_eq!(code == Code::Ok || code == Code::TooSmall, other == Code::Ok);
    if other == Code::Ok {
        let written = ids.len().min(most);
        assert_eq!(&room[..written], &ids[..written]);
    }
}

/// Decode any ids.
fn decoded(handle: &Handle, data: &[u8]) {
    let ids: Vec<u32> = data.iter().map(|&byte| u32::from(byte % 16)).collect();
    let mut bytes = ByteBuffer { data: std::ptr::null_mut(), length: 0, capacity: 0 };
    // SAFETY: the ids are as many as it says, and the buffer is empty.
    unsafe {
        let (data, count) = (ids.as_ptr(), ids.len());
        decode::bytepair_decode_append(Some(handle), data, count, Some(&mut bytes), None);
        buffers::bytepair_bytes_free(Some(&mut bytes));
    }
}
