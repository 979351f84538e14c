//! Every way to split gives the same pretokens of real texts: code, plays, and declarations in many
//! languages. The texts stand beside the repository, or where `BYTEPAIR_SHARED` says; without them
//! only code is split.

use std::path::PathBuf;

use bytepair::{Pattern, Splitter};

fn shared_texts() -> Vec<String> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared");
    let shared = std::env::var_os("BYTEPAIR_SHARED").map_or_else(|| beside.into(), PathBuf::from);
    let folders = ["sample", "udhr"].map(|name| shared.join("data").join(name));
    let files = folders.iter().flat_map(std::fs::read_dir).flatten().flatten();
    let texts = files.map(|file| std::fs::read(file.path()).unwrap_or_default());
    texts.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect()
}

fn pretokens<'t>(splitter: &Splitter, text: &'t str) -> Vec<&'t str> {
    let mut all = Vec::new();
    splitter.for_each(text, |pretoken| all.push(pretoken)).expect("no pattern gives up");
    all
}

#[test]
fn every_way_splits_real_texts_alike() {
    let mut texts = shared_texts();
    if texts.is_empty() {
        println!("skipped: the shared texts are not there");
    }
    texts.push(include_str!("../src/pretokenize/scan/classify.rs").to_owned());
    for pattern in Pattern::names().filter_map(Pattern::named) {
        let ways = [
            Splitter::new(&pattern).unwrap(),
            Splitter::by_table(&pattern).unwrap().expect("an automaton can follow it"),
            Splitter::by_regex(&pattern).unwrap(),
        ];
        for text in &texts {
            let [first, others @ ..] = ways.each_ref().map(|way| pretokens(way, text));
            assert_eq!(first.concat(), *text);
            assert!(others.iter().all(|other| *other == first), "{:?}", pattern.name());
        }
    }
}
