//! A rank file: any bytes are an error, or tokens that a tokenizer with them encodes and decodes.
#![no_main]

use bytepair::formats::ranks::RankFile;
use bytepair::formats::{kind, mistaken};
use bytepair::{Pattern, Tokenizer, Vocabulary};
use libfuzzer_sys::fuzz_target;

const TEXT: &str = "It's ab aab, abab\u{0}\u{e9}";

fuzz_target!(|data: &[u8]| {
    let _any = (kind(data).is_ok(), mistaken(data).is_some());
    let Ok(file) = RankFile::read(data) else { return };
    let Ok(vocabulary) = Vocabulary::new(file.tokens, []) else { return };
    let Ok(tokenizer) = Tokenizer::from_ranks(vocabulary, Pattern::new("gpt2").unwrap()) else {
        return;
    };
    if let Ok(ids) = tokenizer.encode(TEXT) {
        assert_eq!(tokenizer.decode_bytes(&ids).unwrap(), TEXT.as_bytes());
    }
});
