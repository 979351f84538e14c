//! A `tokenizer.json`: any bytes are an error, or a tokenizer that is equal after it is written and
//! read again, unless the format cannot hold it.
#![no_main]

use bytepair::Tokenizer;
use bytepair::formats::tokenizer_json::{losses, write};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(tokenizer) = Tokenizer::from_tokenizer_json(data) else { return };
    let _ = tokenizer.encode("It's ab aab, abab");
    let parts = tokenizer.parts().unwrap();
    if !losses(&parts).is_empty() {
        return;
    }
    let text = write(&parts).unwrap();
    let again = Tokenizer::from_tokenizer_json(text.as_bytes()).expect("a written file is read");
    assert!(again == tokenizer);
});
