//! How fast a text file is encoded, first pass and again:
//! `cargo bench -p bytepair --bench encode -- TOKENIZER_FILE TEXT_FILE [PASSES]`.
#![expect(clippy::print_stdout, reason = "it reports")]

use std::time::Instant;

use bytepair::{EncodeOptions, Text, Tokenizer};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [tokenizer, text, passes @ ..] = &arguments[..] else { panic!("a tokenizer and a text") };
    let passes: usize = passes.first().map_or(4, |passes| passes.parse().expect("a number"));
    let started = Instant::now();
    let tokenizer = Tokenizer::open(tokenizer).expect("it is a tokenizer");
    println!("load {:?}", started.elapsed());
    let text = std::fs::read_to_string(text).expect("the file is UTF-8");
    let documents: Vec<Text<'_>> = text.split('\0').map(Text::Utf8).collect();
    for _ in 0..passes {
        let started = Instant::now();
        let arrays = tokenizer.encode_arrays::<u32>(&documents, &EncodeOptions::default(), 1);
        let count = arrays.expect("it encodes").ids.len();
        let seconds = started.elapsed().as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "a rate needs few digits")]
        let rate = text.len() as f64 / seconds / 1e6;
        println!("{rate:8.0} MB/s, {count} ids");
    }
}
