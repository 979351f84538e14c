//! Mapped files against the same files read into memory.
#![expect(unsafe_code, reason = "nobody changes the files of this test while they are mapped")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use bytepair::bulk::text_file::FileOptions;
use bytepair::formats::native::Tables;
use bytepair::{Pattern, Text, Tokenizer, Vocabulary};

/// A vocabulary that is large enough for a file with tables.
fn tokenizer() -> Tokenizer {
    let pairs = (0..=255u8).flat_map(|left| (0..32u8).map(move |right| vec![left, right]));
    let tokens = (0..=255).map(|byte| vec![byte]).chain(pairs);
    let vocabulary =
        Vocabulary::new(tokens.zip(0..), [("<s>".to_owned(), 9000)]).expect("valid tokens");
    Tokenizer::from_ranks(vocabulary, Pattern::new("gpt4").expect("a known pattern"))
        .expect("the pattern compiles")
}

fn write(name: &str, bytes: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, bytes).expect("the build folder is writable");
    path
}

const TEXT: &str =
    "Any text,\n\t with tabs\nand a pretoken of more than 15 bytes: 中文字符没有空格 é\n";

#[test]
fn a_mapped_tokenizer_equals_one_that_is_read_even_after_its_file_is_deleted() {
    let bytes = tokenizer().to_bytes(Tables::With).unwrap();
    let path = write("mapped.bytepair", &bytes);
    // SAFETY: the file is only deleted.
    let mapped = unsafe { Tokenizer::map(&File::open(&path).unwrap()) }.unwrap();
    let read = Tokenizer::open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(mapped == read && mapped.fingerprint() == read.fingerprint());
    assert_eq!(mapped.merges(), read.merges());
    assert_eq!(mapped.encode(TEXT).unwrap(), read.encode(TEXT).unwrap());
    assert_eq!(mapped.ranks(), read.ranks());
    // The pages of the tables were released after the file was checked, and are read again here.
    assert!(mapped.to_bytes(Tables::With).unwrap() == bytes);
}

#[test]
fn a_mapped_text_has_the_ids_of_its_bytes() {
    let tokenizer = tokenizer();
    let options = tokenizer.plain();
    for repeats in [0, 1, 1000] {
        let text = TEXT.repeat(repeats);
        let path = write(&format!("mapped-{repeats}.txt"), text.as_bytes());
        for threads in [1, 2] {
            let expected = tokenizer.encode_arrays::<u16>(&[Text::Utf8(&text)], options, threads);
            for reads in [false, true] {
                let file = FileOptions { reads, ..FileOptions::default() };
                // SAFETY: nobody writes to the file.
                let ids = unsafe { tokenizer.encode_file::<u16>(&path, &file, options, threads) };
                assert_eq!(ids, expected);
            }
        }
    }
}
