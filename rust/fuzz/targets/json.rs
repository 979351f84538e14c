//! The tables of a `tokenizer.json`: any bytes are an error or `None`, or a tokenizer that is equal
//! after it is written and read again.
#![no_main]

use bytepair::Pattern;
use bytepair::formats::tokenizer_json::{JsonTables, texts};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(Some(found)) = JsonTables::parse(data) else { return };
    for range in &found.ranges {
        assert!(std::str::from_utf8(&data[range.clone()]).is_ok());
    }
    for ranks in [false, true] {
        let pattern = Pattern::new("gpt2").unwrap();
        let Ok(tokenizer) = found.tables.tokenizer(found.added.clone(), pattern, ranks, true)
        else {
            continue;
        };
        if let Ok(ids) = tokenizer.encode("It's ab aab, abab") {
            assert_eq!(tokenizer.decode_bytes(&ids).unwrap(), b"It's ab aab, abab");
        }
        if !found.added.is_empty() {
            continue;
        }
        let (vocabulary, merges) = texts(&tokenizer, &[]).unwrap();
        let json = format!(r#"{{"model": {{"vocab": {vocabulary}, "merges": {merges}}}}}"#);
        let again = JsonTables::parse(json.as_bytes()).unwrap().expect("written tables are read");
        let again = again.tables.tokenizer(Vec::new(), Pattern::new("gpt2").unwrap(), ranks, true);
        assert!(again.unwrap() == tokenizer);
    }
});
