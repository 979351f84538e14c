//! What precedes the damage of a compressed file is kept if invalid documents are skipped.

use std::io::Write as _;
use std::path::PathBuf;

use bytepair::corpus::{Bounds, Compression, CorpusFile, DocumentOptions, FileKind, OnError};
use bytepair::{Counter, FileCountOptions, Pattern, Reached};

/// A file of which the second half is missing.
fn half(name: &str, kind: FileKind, content: &str) -> std::io::Result<CorpusFile> {
    let name = format!("bytepair-damaged-{}-{name}", std::process::id());
    let path: PathBuf = std::env::temp_dir().join(name);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content.as_bytes())?;
    let packed = encoder.finish()?;
    std::fs::write(&path, &packed[..packed.len() / 2])?;
    Ok(CorpusFile { path, kind, compression: Compression::Gzip })
}

fn options(block_bytes: usize, on_error: OnError) -> FileCountOptions {
    let bounds = Bounds { block_bytes, ..Bounds::default() };
    let field = "text".to_owned();
    let documents = DocumentOptions { field, on_error, doc_cap: None, bounds };
    FileCountOptions { documents, max_chars: None }
}

#[test]
fn whole_documents_before_the_damage_of_a_file_are_kept() {
    let line = |n: u64| format!("{{\"text\":\"{}\"}}\n", n * n * 7919);
    let lines = (0..900).map(line).collect::<String>();
    let files =
        [half("a", FileKind::Jsonl, &lines).unwrap(), half("b", FileKind::Text, &lines).unwrap()];
    let pattern = Pattern::new("gpt2").unwrap();
    for (threads, block) in [(1, 1), (1, 100_000), (3, 50), (2, 700)] {
        let mut counter = Counter::new(&pattern, threads).unwrap();
        let strict = options(block, OnError::Strict);
        let done = counter.add_files(&files, &mut Reached::default(), &strict, &mut |_| Ok(()));
        let error = done.unwrap_err().to_string();
        assert!(error.contains("or pass OnError::Skip to keep the documents before"), "{error}");

        let mut counter = Counter::new(&pattern, threads).unwrap();
        let skipping = options(block, OnError::Skip);
        let done = counter.add_files(&files, &mut Reached::default(), &skipping, &mut |_| Ok(()));
        done.unwrap();
        let (skips, texts) = (counter.take_skips(), counter.texts());
        assert!((100..800).contains(&texts), "{texts}");
        let places: Vec<_> = skips.first.iter().map(|skip| (skip.file, skip.row)).collect();
        assert_eq!((places, skips.documents), (vec![(0, texts), (1, 0)], 2));
        assert!(skips.first[0].reason.text().starts_with("the rest of the file cannot be read: "));
        let expected: Vec<String> = (0..texts).map(|n| (n * n * 7919).to_string()).collect();
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        let mut plain = Counter::new(&pattern, 1).unwrap();
        plain.add(&expected).unwrap();
        assert_eq!(counter.finish().unwrap(), plain.finish().unwrap());
    }
    for file in files {
        std::fs::remove_file(file.path).unwrap();
    }
}
