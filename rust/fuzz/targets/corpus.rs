//! Files of documents and of counts: any bytes are an error, or documents that are counted.
//!
//! The first byte of the input says what the rest is: text, lines or jsonl, compressed or not, or
//! a parquet file of documents or of counts.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use bytepair::corpus::{Bounds, Compression, CorpusFile, DocumentOptions, FileKind, OnError};
use bytepair::formats::counts_file::CountsFile;
use bytepair::{Counter, FileCountOptions, Pattern, Reached};
use libfuzzer_sys::fuzz_target;

/// The file that is read, in memory where the system has a folder there.
static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = PathBuf::from("/dev/shm");
    let folder = if memory.is_dir() { memory } else { std::env::temp_dir() };
    folder.join(format!("bytepair-fuzz-{}", std::process::id()))
});

fuzz_target!(|data: &[u8]| {
    let Some((&first, rest)) = data.split_first() else { return };
    std::fs::write(&*FILE, rest).unwrap();
    if first & 0x80 != 0 {
        let _any = CountsFile::open(&*FILE).map(|file| file.counts().is_ok());
        return;
    }
    let kind = [FileKind::Text, FileKind::Lines, FileKind::Jsonl][usize::from(first % 3)];
    let packed = [Compression::None, Compression::Gzip, Compression::Zstd];
    let compression = packed[usize::from(first / 3 % 3)];
    let file = CorpusFile { path: FILE.clone(), kind, compression };
    let on_error = if first & 0x40 == 0 { OnError::Strict } else { OnError::Skip };
    let bounds = Bounds { block_bytes: 1 + usize::from(first), ..Bounds::default() };
    let documents = DocumentOptions { field: "text".to_owned(), on_error, doc_cap: None, bounds };
    let options = FileCountOptions { documents, max_chars: None };
    let mut counter = Counter::new(&Pattern::new("gpt4").unwrap(), 1).unwrap();
    let done = counter.add_files(&[file], &mut Reached::default(), &options, &mut |_| Ok(()));
    let _skips = counter.take_skips();
    let counts = counter.finish();
    assert!(done.is_err() || counts.is_ok());
});
