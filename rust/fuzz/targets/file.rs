//! The native file: any bytes are an error, or a tokenizer that encodes and decodes safely.
//!
//! Pieces of the input overwrite a valid file, whose length and checksum are then corrected.
#![no_main]

use std::sync::LazyLock;

use bytepair::formats::native::{Tables, verify};
use bytepair::{Pattern, Tokenizer, Vocabulary};
use libfuzzer_sys::fuzz_target;

const TEXT: &str =
    "Zweite naïve Wörter 12345, it's\r\n  \u{4e2d}\u{6587} 😀 aaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/// A file with every section and all tables.
static VALID: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    let words = TEXT.split(' ').map(|word| word.as_bytes().to_vec());
    for end in 2..6 {
        for word in words.clone().filter(|word| word.len() >= end) {
            if !tokens.contains(&word[..end].to_vec()) {
                tokens.push(word[..end].to_vec());
            }
        }
    }
    // Smaller vocabularies have no tables.
    for number in 0..4096u32 {
        tokens.push(number.to_be_bytes().to_vec());
    }
    let special = vec![("<|bos|>".to_owned(), 5000)];
    let vocabulary = Vocabulary::new(tokens.into_iter().zip(0..), special).unwrap();
    let tokenizer = Tokenizer::from_ranks(vocabulary, Pattern::new("gpt4").unwrap()).unwrap();
    tokenizer.with_note("name", &"fuzz").to_bytes(Tables::With).unwrap()
});

/// The valid file, partly overwritten by pieces of `data`. Each piece follows four bytes: three of
/// the offset in the file, and one of the length and flags.
fn damaged(mut data: &[u8]) -> Vec<u8> {
    let mut bytes = VALID.clone();
    while let Some(([low, middle, high, length], rest)) = data.split_first_chunk() {
        let offset = usize::from(*low) | usize::from(*middle) << 8 | usize::from(*high) << 16;
        let (piece, rest) = rest.split_at(rest.len().min(usize::from(length % 32)));
        // Half of the pieces overwrite the beginning, where the sections are listed.
        let offset = if length & 32 == 0 { offset } else { offset % 512 };
        let offset = offset % bytes.len().max(1);
        let end = bytes.len().min(offset + piece.len());
        bytes[offset..end].copy_from_slice(&piece[..end - offset]);
        if length & 0xC0 == 0xC0 {
            bytes.truncate(offset);
        }
        data = rest;
    }
    if bytes.len() >= 64 {
        let length = bytes.len() as u64;
        bytes[16..24].copy_from_slice(&length.to_le_bytes());
        bytes[24..28].fill(0);
        let checksum = crc32fast::hash(&bytes);
        bytes[24..28].copy_from_slice(&checksum.to_le_bytes());
    }
    bytes
}

fuzz_target!(|data: &[u8]| {
    let bytes = damaged(data);
    let Ok(tokenizer) = Tokenizer::from_bytes(&bytes) else { return };
    if let Ok(ids) = tokenizer.encode(TEXT) {
        let _any = tokenizer.decode_bytes(&ids);
    }
    let _any = (tokenizer.merges(), tokenizer.merge_counts(), tokenizer.fingerprint());
    let _any = (0..260).map(|id| tokenizer.token_bytes(id).is_ok()).count();
    // Rebuilding all tables takes long, so only some inputs do it.
    if data.len() % 16 == 0 && verify(&bytes).is_ok() {
        assert!(
            Tokenizer::from_bytes(&tokenizer.to_bytes(Tables::With).unwrap()).unwrap() == tokenizer
        );
    }
});
