//! Counting with a memory limit against counting without.

use std::fs;
use std::path::{Path, PathBuf};

use bytepair::{Counter, Counts, Error, Pattern};

/// An empty folder for one test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the folder of the build is writable");
    folder
}

const LETTERS: [char; 16] =
    ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p'];

/// Short and long pretokens; most are new, some repeat often.
fn texts() -> Vec<String> {
    let word = |i: usize| match i % 5 {
        0 => "the".to_owned(),
        1 => format!("internationalization{}", "x".repeat(i * i % 97)),
        2 => "中文".repeat(i % 40),
        _ => (0..4).map(|k| LETTERS[(i * 7919) >> (3 * k) & 15]).collect(),
    };
    (0..40).map(|t| (0..2500).map(|i| word(t * 911 + i * 13) + " ").collect::<String>()).collect()
}

fn count(texts: &[&str], threads: usize, limit: Option<(usize, &Path)>) -> Counts {
    let mut counter =
        Counter::new(&Pattern::new("nanochat").expect("a name"), threads).expect("a known pattern");
    if let Some((bytes, folder)) = limit {
        counter = counter.with_memory_limit(bytes, folder);
    }
    texts.chunks(9).for_each(|chunk| counter.add(chunk).expect("the pattern splits any text"));
    counter.finish().expect("the folder is writable")
}

#[test]
fn a_limit_does_not_change_the_counts() {
    let texts = texts();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let unlimited = count(&texts, 1, None);
    for threads in [1, 2, 5] {
        for limit in [0, 300_000, 1_000_000, usize::MAX / 8] {
            let folder = folder(&format!("limit-{threads}-{limit}"));
            assert!(count(&texts, threads, Some((limit, &folder))) == unlimited);
            let spilled = fs::read_dir(&folder).unwrap().count() > 0;
            assert_eq!(spilled, limit <= 1_000_000, "{threads} threads, {limit} bytes");
            fs::remove_dir_all(folder).unwrap();
        }
    }
}

#[test]
fn empty_texts_have_no_counts() {
    assert!(count(&[], 2, Some((0, &folder("empty")))).is_empty());
    assert!(count(&["", ""], 2, Some((0, &folder("empty-texts")))).is_empty());
}

#[test]
fn a_missing_folder_is_an_error_that_names_it() {
    let missing = folder("gone").join("missing");
    let counter = Counter::new(&Pattern::new("gpt2").unwrap(), 1).unwrap();
    let mut counter = counter.with_memory_limit(0, &missing);
    counter.add(&["some text"]).unwrap();
    let error = counter.finish().unwrap_err();
    assert!(matches!(&error, Error::Spill { path, .. } if path.contains("missing")), "{error}");
}
