//! Every splitter finds the same pretokens in real texts: code, plays, and declarations in many
//! languages. The texts are in the folder `shared` beside the repository, or in the one that
//! `BYTEPAIR_SHARED` names; without them only code is split.

use std::path::PathBuf;

use bytepair::{Pattern, Splitter};

fn shared_texts() -> Vec<String> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared");
    let shared = std::env::var_os("BYTEPAIR_SHARED").map_or_else(|| default.into(), PathBuf::from);
    let folders = ["sample", "udhr"].map(|name| shared.join("data").join(name));
    let files = folders.iter().flat_map(std::fs::read_dir).flatten().flatten();
    let texts = files.map(|file| std::fs::read(file.path()).unwrap_or_default());
    texts.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect()
}

fn pretokens<'t>(splitter: &Splitter, text: &'t str) -> Vec<&'t str> {
    let mut all = Vec::new();
    splitter.for_each(text, |pretoken| all.push(pretoken)).expect("named patterns do not fail");
    all
}

#[test]
fn all_splitters_agree_on_real_texts() {
    let mut texts = shared_texts();
    if texts.is_empty() {
        println!("the shared texts were not found; only code is split");
    }
    texts.push(include_str!("../src/pretokenize/scan/classify.rs").to_owned());
    for pattern in Pattern::names().filter_map(Pattern::named) {
        let splitters = [
            Splitter::new(&pattern).unwrap(),
            Splitter::by_table(&pattern.steps()[0])
                .unwrap()
                .expect("an automaton exists for every named pattern"),
            Splitter::by_regex(&pattern).unwrap(),
        ];
        for text in &texts {
            let [first, others @ ..] =
                splitters.each_ref().map(|splitter| pretokens(splitter, text));
            assert_eq!(first.concat(), *text);
            assert!(others.iter().all(|other| *other == first), "{:?}", pattern.name());
        }
    }
}
