//! The throughput of encoding a text file, with cold caches in the first pass and warm ones later:
//! `cargo bench -p bytepair --bench encode -- TOKENIZER_FILE TEXT_FILE [PASSES]`.
//!
//! Documents are separated by zero bytes.
#![expect(clippy::print_stdout, reason = "it reports")]

use std::time::Instant;

use bytepair::{Text, Tokenizer};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [tokenizer, text, passes @ ..] = &arguments[..] else {
        panic!("pass a tokenizer file and a text file")
    };
    let passes: usize = passes.first().map_or(4, |passes| passes.parse().expect("a number"));
    let started = Instant::now();
    let tokenizer = Tokenizer::open(tokenizer).expect("a tokenizer file");
    println!("load {:?}", started.elapsed());
    let text = std::fs::read_to_string(text).expect("the file is UTF-8");
    let documents: Vec<Text<'_>> = text.split('\0').map(Text::Utf8).collect();
    for _ in 0..passes {
        let started = Instant::now();
        let arrays = tokenizer.encode_arrays::<u32>(&documents, tokenizer.plain(), 1);
        let count = arrays.expect("the tokenizer covers the text").ids.len();
        let seconds = started.elapsed().as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "a rate needs few digits")]
        let rate = text.len() as f64 / seconds / 1e6;
        println!("{rate:8.0} MB/s, {count} ids");
    }
}
