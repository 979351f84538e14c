//! Counts the blocks of text files. Threads take the blocks from one shared reader, so a large file,
//! many small ones and compressed ones all keep all threads busy.

use std::iter;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use crate::corpus::{BlockReader, CorpusFile, Documents, FieldTally, FileBlock, OnError};
use crate::count::Counter;
use crate::count::job::{
    CountJob, CountProgress, FileCountOptions, OnProgress, PartCount, Reached,
};
use crate::error::{Error, Result};
use crate::parallel::{self, lock};

impl Counter {
    /// Split the documents of files from the position `reached` on, and count their pretokens.
    /// `on_progress` is called regularly.
    ///
    /// A text file is one document. Where the pattern allows it and all of the text is counted, it
    /// is read in pieces. If several documents cannot be read, the error is that of the first one
    /// in the order of the files, for any number of threads.
    ///
    /// Afterwards, `reached` is the position at which counting ended, and
    /// [`take_skips`](Self::take_skips) returns the documents skipped before it. If `on_progress`
    /// fails, exactly the documents before that position are counted, unless the pattern
    /// [may fail](crate::Splitter::may_fail). After other errors, and with such patterns, this holds if the
    /// counter was made [`with_care`](Self::with_care) and [`is_whole`](Self::is_whole) is true.
    pub fn add_files(
        &mut self,
        files: &[CorpusFile],
        reached: &mut Reached,
        options: &FileCountOptions,
        on_progress: &mut OnProgress<'_>,
    ) -> Result<()> {
        let threads = parallel::worth(self.tables.len(), total_size(files));
        let (place, reading) = (reached.place, options.documents.reading());
        let mut blocks = BlockReader::new(files.to_vec(), None, reading, place, self.position);
        let splitter = may_cut(options).then_some(&self.splitter);
        // Copies of what the reader counts, so that a report does not wait for a read.
        let (packed, unpacked) = (Arc::clone(&blocks.packed), Mutex::new(Vec::new()));
        let next = || {
            let block = blocks.next(splitter).transpose()?;
            if let Ok(block) = &block {
                lock(&unpacked).push((block.start.file, block.unpacked));
            }
            Some(block).filter(|block| !matches!(block, Err(Error::Interrupted)))
        };
        let mut tally = FieldTally::of_rest(place);
        let check = |(last, of_block): (Option<usize>, FieldTally)| {
            tally.add(of_block);
            let Some(file) = last else { return Ok(()) };
            std::mem::take(&mut tally).check(&files[file], &options.documents.field)
        };
        let report = |mut progress: CountProgress| {
            progress.packed = packed.load(Ordering::Relaxed);
            progress.unpacked = std::mem::take(&mut *lock(&unpacked));
            on_progress(progress)
        };
        let count = |block, part: &mut PartCount<'_, '_>| count_block(block, files, part);
        let is_careful = self.tables[0].is_careful;
        let job = CountJob::new(&self.splitter, options, is_careful, &mut self.counted, reached);
        let done = job.run(&mut self.tables[..threads], iter::from_fn(next), count, check, report);
        self.position = blocks.position;
        done
    }
}

/// Whether text files may be read in pieces: all of their text is counted, or the counting fails.
fn may_cut(FileCountOptions { documents, max_chars }: &FileCountOptions) -> bool {
    documents.doc_cap.is_none() && max_chars.is_none() && documents.on_error != OnError::Skip
}

/// Count the documents of a block. Returns their tally, and the file if the block is its last.
fn count_block(
    block: Result<FileBlock>,
    files: &[CorpusFile],
    part: &mut PartCount<'_, '_>,
) -> Result<(Option<usize>, FieldTally)> {
    let mut block = block?;
    let file = block.start.file;
    let mut documents = Documents::of(&mut block, &files[file], &part.job.options.documents)?;
    part.positions.start = block.position;
    part.add(&mut documents, block.end, true)?;
    Ok((block.is_last.then_some(file), documents.tally))
}

/// An estimate of the decompressed size of files: four times their size.
fn total_size(files: &[CorpusFile]) -> usize {
    let size = |file: &CorpusFile| file.path.metadata().map_or(0, |metadata| metadata.len());
    let sizes = files.iter().map(|file| usize::try_from(size(file)).unwrap_or(usize::MAX));
    sizes.fold(0, usize::saturating_add).saturating_mul(4)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::env;
    use std::io::Write;
    use std::path::{Path, PathBuf};
    use std::sync::atomic::AtomicU64;

    use proptest::prelude::*;

    use super::*;
    use crate::corpus::{Bounds, Compression, DocumentOptions, FileKind, FilePlace, OnError};
    use crate::count::job::Skips;
    use crate::error::Error;
    use crate::{Counts, Pattern};

    /// A new folder for a test, removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Self {
            static NUMBER: AtomicU64 = AtomicU64::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("bytepair-files-{}-{number}", std::process::id());
            let path = env::temp_dir().join(name);
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn file(
            &self,
            name: &str,
            kind: FileKind,
            content: &[u8],
            packing: Compression,
        ) -> CorpusFile {
            let path = self.0.join(name);
            let packed = match packing {
                Compression::None => content.to_vec(),
                Compression::Gzip => {
                    let level = flate2::Compression::fast();
                    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
                    encoder.write_all(content).unwrap();
                    encoder.finish().unwrap()
                }
                #[cfg(feature = "zstd")]
                Compression::Zstd => zstd::stream::encode_all(content, 1).unwrap(),
                #[cfg(not(feature = "zstd"))]
                Compression::Zstd => return self.file(name, kind, content, Compression::Gzip),
            };
            std::fs::write(&path, packed).unwrap();
            CorpusFile { path, kind, compression: packing }
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _removed = std::fs::remove_dir_all(&self.0);
        }
    }

    fn options(block_bytes: usize) -> FileCountOptions {
        let bounds = Bounds { block_bytes, ..Bounds::default() };
        let field = "text".to_owned();
        let documents = DocumentOptions { field, bounds, ..DocumentOptions::default() };
        FileCountOptions { documents, max_chars: None }
    }

    fn counter(threads: usize) -> Counter {
        Counter::new(&Pattern::new("gpt2").unwrap(), threads).unwrap()
    }

    fn count(files: &[CorpusFile], options: &FileCountOptions, threads: usize) -> Result<Counts> {
        let mut counter = counter(threads);
        counter.add_files(files, &mut Reached::default(), options, &mut |_| Ok(()))?;
        counter.finish()
    }

    /// The slow reference: counts documents in memory on one thread.
    fn plain(texts: &[String]) -> Counts {
        let mut counter = counter(1);
        counter.add(&texts.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        counter.finish().unwrap()
    }

    fn text() -> impl Strategy<Value = String> {
        prop_oneof![
            "[a-c é\n\"\\\\]{0,40}",
            any::<String>(),
            "(word |two, |x){0,60}",
            "[中文字，。]{0,30}",
            "a{0,90}",
        ]
    }

    fn packing() -> impl Strategy<Value = Compression> {
        prop::sample::select(vec![Compression::None, Compression::Gzip, Compression::Zstd])
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        /// For any block size, number of threads and compression.
        #[test]
        fn counting_files_equals_counting_their_documents(
            files in prop::collection::vec(
                (any::<bool>(), prop::collection::vec(text(), 1..6), packing()), 0..5,
            ),
            blank in prop::sample::select(vec!["", "\n", " \r\n\n", "\t\n"]),
            block in prop::sample::select(vec![1, 5, 30, 200, 5000]),
            threads in 1usize..5,
            is_careful: bool,
        ) {
            let folder = Folder::new();
            let mut documents: Vec<String> = Vec::new();
            let make = |(number, (is_text, texts, packing)): (usize, (bool, Vec<String>, _))| {
                let (name, mut content) = (number.to_string(), String::new());
                if is_text {
                    documents.push(texts.concat());
                    return folder.file(&name, FileKind::Text, texts.concat().as_bytes(), packing);
                }
                for text in &texts {
                    let text = serde_json::to_string(text).unwrap();
                    content = format!("{content}{blank}{{\"a\":[1],\"text\": {text}}}\r\n");
                }
                content.truncate(content.len() - number % 2);
                documents.extend(texts);
                folder.file(&name, FileKind::Jsonl, content.as_bytes(), packing)
            };
            let files: Vec<CorpusFile> = files.into_iter().enumerate().map(make).collect();
            let mut counter = counter(threads);
            if is_careful {
                counter = counter.with_care();
            }
            let last = &mut None;
            let report = &mut |progress| { *last = Some(progress); Ok(()) };
            let mut reached = Reached::default();
            counter.add_files(&files, &mut reached, &options(block), report).unwrap();
            let size: usize = documents.iter().map(String::len).sum();
            prop_assert_eq!(counter.texts(), documents.len() as u64);
            prop_assert_eq!(counter.text_bytes(), size as u64);
            prop_assert_eq!(reached.place.file, files.len());
            let packed: u64 = files.iter().map(|f| f.path.metadata().unwrap().len()).sum();
            prop_assert_eq!(last.as_ref().unwrap().packed, packed);
            prop_assert_eq!(counter.finish().unwrap(), plain(&documents));
        }

        /// Counting that was interrupted continues where it ended.
        #[test]
        fn interrupted_counting_continues(
            texts in prop::collection::vec(text(), 1..30),
            block in prop::sample::select(vec![1, 30, 200]),
            moment in 0usize..5,
            threads in 1usize..4,
            packing in packing(),
        ) {
            let folder = Folder::new();
            let lines: Vec<String> = texts
                .iter()
                .map(|text| serde_json::json!({"text": text}).to_string() + "\n")
                .collect();
            let files = [
                folder.file("a", FileKind::Text, "é one. two ".repeat(300).as_bytes(), packing),
                folder.file("b", FileKind::Jsonl, lines.concat().as_bytes(), packing),
            ];
            let (mut reached, mut counts) = (Reached::default(), Vec::new());
            for round in 0.. {
                let mut counter = counter(threads);
                let mut calls = 0;
                let done = counter.add_files(&files, &mut reached, &options(block), &mut |_| {
                    calls += 1;
                    if round < 3 && calls > moment { Err(Error::Interrupted) } else { Ok(()) }
                });
                prop_assert!(counter.is_whole());
                counts.push(counter.finish().unwrap());
                if done.is_ok() {
                    break;
                }
            }
            let all = counts.iter().flat_map(Counts::iter).fold(
                BTreeMap::<Vec<u8>, u64>::new(),
                |mut all, (pretoken, count)| {
                    *all.entry(pretoken.to_vec()).or_default() += count;
                    all
                },
            );
            let documents: Vec<String> = [vec!["é one. two ".repeat(300)], texts].concat();
            let expected: BTreeMap<Vec<u8>, u64> =
                plain(&documents).iter().map(|(p, n)| (p.to_vec(), n)).collect();
            prop_assert_eq!(all, expected);
        }

        /// Limits in characters do not depend on blocks and threads.
        #[test]
        fn limits_are_exact(
            texts in prop::collection::vec(text(), 1..20),
            cap in prop::option::of(1usize..30),
            most in prop::option::of(1u64..200),
            block in prop::sample::select(vec![1, 30, 5000]),
            threads in 1usize..4,
        ) {
            let folder = Folder::new();
            let line = |text: &String| serde_json::json!({"text": text}).to_string() + "\n";
            let content: String = texts.iter().map(line).collect();
            let files = [folder.file("a", FileKind::Jsonl, content.as_bytes(), Compression::None)];
            let (mut expected, mut chars) = (Vec::new(), 0);
            for text in &texts {
                let text: String = text.chars().take(cap.unwrap_or(usize::MAX)).collect();
                chars += text.chars().count() as u64;
                expected.push(text);
                if most.is_some_and(|most| chars > most) {
                    break;
                }
            }
            let mut options = options(block);
            options.documents.doc_cap = cap;
            options.max_chars = most;
            prop_assert_eq!(count(&files, &options, threads).unwrap(), plain(&expected));
        }
    }

    fn error_of(folder: &Folder, name: &str) -> String {
        let (content, kind): (&[u8], _) = match name {
            "utf8.txt" => (b"one two\xFF", FileKind::Text),
            "bad.jsonl" => (b"{\"text\":\"a\"}\n\n{\"text\":\"b\"}\n{oops\n[]", FileKind::Jsonl),
            "utf8.jsonl" => (b"{\"text\":\"a\"}\n{\"text\":\"b\xFF\"}\n{oops", FileKind::Jsonl),
            "number.jsonl" => (b"{\"text\":\"a\"}\n{\"text\":5}", FileKind::Jsonl),
            "other.jsonl" => (b"{\"body\":\"a\"}\n{}\n", FileKind::Jsonl),
            "half.jsonl" => (b"{\"text\":\"\\ud83d\"}", FileKind::Jsonl),
            "page.jsonl" => (b"<!DOCTYPE html>\n<p>", FileKind::Jsonl),
            "long.jsonl" => {
                (b"{\"text\":\"a\"}\n{\"text\":\"aaaaaaaaaaaaaaaaaaaaaaaa\"}", FileKind::Jsonl)
            }
            _ => (b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", FileKind::Text),
        };
        let file = folder.file(name, kind, content, Compression::None);
        let damaged = folder.file("z", FileKind::Text, b"one", Compression::None);
        let damaged = CorpusFile { compression: Compression::Gzip, ..damaged };
        let mut errors = Vec::new();
        for (threads, block) in [(1, 1), (1, 500), (3, 1), (3, 13), (4, 500)] {
            let mut options = options(block);
            options.documents.bounds.document_bytes = 30;
            let files = [file.clone(), damaged.clone(), file.clone()];
            errors.push(count(&files, &options, threads).unwrap_err().to_string());
        }
        errors.dedup();
        assert_eq!(errors.len(), 1, "{errors:?}");
        errors[0].replace(folder.0.to_str().unwrap(), "")
    }

    #[test]
    fn the_first_error_is_reported_for_any_number_of_threads() {
        let folder = Folder::new();
        for (name, wrong) in [
            ("utf8.txt", "utf8.txt is not UTF-8 at byte 7"),
            ("bad.jsonl", "bad.jsonl, line 4: the line is not a JSON object: expected a key"),
            ("utf8.jsonl", "utf8.jsonl, line 2: the document is not UTF-8 at byte 1"),
            ("number.jsonl", "number.jsonl, line 2: the field is a number, not a string"),
            (
                "other.jsonl",
                "other.jsonl: no object has a field 'text' with a text; the first object has body; \
                 pass DocumentOptions::field to read",
            ),
            ("half.jsonl", "half.jsonl, line 1: the text has the lone surrogate \\ud83d, half of"),
            ("page.jsonl", "page.jsonl: it is a page of HTML"),
            ("long.jsonl", "long.jsonl, line 2: the line has more than the limit of 30 bytes"),
            ("long.txt", "long.txt: the document has more than the limit of 30 bytes"),
        ] {
            let error = error_of(&folder, name);
            assert!(error[1..].starts_with(wrong), "{name}: {error}");
        }
    }

    #[test]
    fn invalid_documents_are_skipped() {
        let folder = Folder::new();
        let long = "x".repeat(100);
        let lines =
            format!("{{\"text\":\"a\"}}\n{{oops\n\n{{\"text\":\"{long}\"}}\n{{\"text\":\"b\"}}");
        let files = [
            folder.file("a", FileKind::Jsonl, lines.as_bytes(), Compression::None),
            folder.file("b", FileKind::Text, b"\xFF", Compression::None),
            folder.file("c", FileKind::Text, long.as_bytes(), Compression::None),
            folder.file("d", FileKind::Text, b"d", Compression::None),
        ];
        for (threads, block) in [(1, 1), (1, 500), (3, 1), (3, 13)] {
            let mut options = options(block);
            options.documents.bounds.document_bytes = 60;
            options.documents.on_error = OnError::Skip;
            let mut counter = counter(threads);
            counter.add_files(&files, &mut Reached::default(), &options, &mut |_| Ok(())).unwrap();
            let skips = counter.take_skips();
            let places: Vec<_> = skips.first.iter().map(|skip| (skip.file, skip.row)).collect();
            assert_eq!(places, [(0, 1), (0, 2), (1, 0), (2, 0)]);
            assert_eq!((skips.documents, counter.take_skips()), (4, Skips::default()));
            assert!(
                skips.first[1]
                    .reason
                    .text()
                    .starts_with("the line has more than the limit of 60 bytes")
            );
            let texts = ["a", "b", "d"].map(str::to_owned);
            assert_eq!(counter.finish().unwrap(), plain(&texts));
        }
    }

    #[test]
    fn no_skips_are_reported_after_the_limit() {
        let folder = Folder::new();
        let lines = "{oops\n{\"text\":\"ab\"}\n".repeat(9) + "{oops\n";
        let files = [folder.file("a", FileKind::Jsonl, lines.as_bytes(), Compression::None)];
        for (threads, block) in [(1, 1), (1, 500), (3, 1), (3, 30)] {
            for (most, skips) in [(1, 1), (2, 2), (3, 2), (15, 8), (18, 10)] {
                let mut options = options(block);
                options.documents.on_error = OnError::Skip;
                options.max_chars = Some(most);
                let mut counter = counter(threads);
                let mut reached = Reached::default();
                counter.add_files(&files, &mut reached, &options, &mut |_| Ok(())).unwrap();
                assert_eq!(counter.take_skips().documents, skips);
            }
        }
    }

    /// Counting that is interrupted and continued skips the same documents as a single call.
    #[test]
    fn each_invalid_document_is_skipped_once() {
        let folder = Folder::new();
        let line = |row| match row % 4 {
            1 => "{oops\n".to_owned(),
            2 => format!("{{\"text\":\"{}\"}}\n", "x".repeat(100)),
            _ => "{\"text\":\"one\"}\n".to_owned(),
        };
        let lines: String = (0..60).map(line).collect();
        let files = [folder.file("a", FileKind::Jsonl, lines.as_bytes(), Compression::None)];
        for (threads, block, is_careful) in [(1, 1, false), (3, 20, false), (3, 100, true)] {
            let mut options = options(block);
            options.documents.on_error = OnError::Skip;
            options.documents.bounds.document_bytes = 60;
            let (mut reached, mut skips, mut texts) = (Reached::default(), Skips::default(), 0);
            for round in 0.. {
                let counter = counter(threads);
                let mut counter = if is_careful { counter.with_care() } else { counter };
                let done = counter.add_files(&files, &mut reached, &options, &mut |_| {
                    if round < 30 { Err(Error::Interrupted) } else { Ok(()) }
                });
                skips.append(&counter.take_skips());
                texts += counter.texts();
                if done.is_ok() {
                    break;
                }
            }
            let rows: Vec<_> = skips.first.iter().map(|skip| skip.row).collect();
            assert_eq!((rows, skips.documents, texts), (vec![1, 2, 5, 6, 9], 30, 30));
        }
    }

    #[test]
    fn a_careful_counter_is_whole_after_an_error() {
        let folder = Folder::new();
        let line = "{\"text\":\"one two\"}\n";
        let content = line.repeat(50) + "{oops\n" + &line.repeat(50);
        let files = [folder.file("a", FileKind::Jsonl, content.as_bytes(), Compression::None)];
        for (threads, block) in [(1, 1), (3, 20), (3, 1000)] {
            let mut counter = counter(threads).with_care();
            let mut reached = Reached::default();
            let done = counter.add_files(&files, &mut reached, &options(block), &mut |_| Ok(()));
            assert!(done.is_err() && counter.is_whole());
            let FilePlace { line, row, .. } = reached.place;
            assert!(line == row && line <= 50 && (block > 1 || line == 50));
            let counts = counter.finish().unwrap();
            assert_eq!(counts, plain(&vec!["one two".to_owned(); usize::try_from(row).unwrap()]));
        }
    }

    #[test]
    fn the_decompressed_bytes_of_each_file_are_reported() {
        let folder = Folder::new();
        let content = "ab, cd. ".repeat(100_000);
        let file = folder.file("a", FileKind::Text, content.as_bytes(), Compression::Gzip);
        let mut unpacked = BTreeMap::new();
        let report = &mut |progress: CountProgress| {
            unpacked.extend(progress.unpacked);
            Ok(())
        };
        let (files, mut reached) = ([file.clone(), file], Reached::default());
        counter(2).add_files(&files, &mut reached, &options(1000), report).unwrap();
        assert_eq!(Vec::from_iter(unpacked), [(0, 800_000), (1, 800_000)]);
    }

    /// What is before the place at which counting continues may have the field.
    #[test]
    fn a_field_is_missed_in_whole_files_only() {
        let folder = Folder::new();
        let lines = "{\"text\":\"a\"}\n{\"body\":\"b\"}\n";
        let half = folder.file("a", FileKind::Jsonl, lines.as_bytes(), Compression::None);
        let none = folder.file("b", FileKind::Jsonl, b"{\"body\":\"b\"}", Compression::None);
        for (threads, block, is_careful) in [(1, 1, false), (3, 1, true), (2, 500, false)] {
            let place = FilePlace { file: 0, byte: 13, line: 1, row: 1 };
            for (files, is_missed) in
                [(vec![half.clone()], false), (vec![half.clone(), none.clone()], true)]
            {
                let counter = counter(threads);
                let mut counter = if is_careful { counter.with_care() } else { counter };
                let mut reached = Reached { place, chars: 0 };
                let done =
                    counter.add_files(&files, &mut reached, &options(block), &mut |_| Ok(()));
                assert_eq!(done.is_err(), is_missed);
                assert_eq!((counter.texts(), counter.is_whole()), (files.len() as u64, true));
            }
        }
    }

    #[test]
    fn a_missing_file_is_an_error() {
        let path = Path::new("/no/such/file.txt").to_owned();
        let file = CorpusFile { path, kind: FileKind::Text, compression: Compression::None };
        let error = count(&[file], &options(10), 2).unwrap_err().to_string();
        assert!(error.starts_with("/no/such/file.txt: it cannot be read: "), "{error}");
    }
}
