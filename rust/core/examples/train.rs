//! Train a tokenizer on text files:
//! `cargo run --release --example train -- FILES... VOCAB_SIZE OUT`.
#![expect(clippy::print_stdout, reason = "it shows the result")]

use std::error::Error;

use bytepair::{Counter, Pattern, TrainOptions, train};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [files @ .., vocab_size, out] = &arguments[..] else {
        return Err("usage: train FILES... VOCAB_SIZE OUT".into());
    };
    let special = ["<|endoftext|>".to_owned()];
    let merges = vocab_size.parse::<usize>()?.saturating_sub(256 + special.len());
    let pattern = Pattern::named("gpt4").ok_or("a published pattern")?;
    let threads = std::thread::available_parallelism()?.get();

    let mut counter = Counter::new(&pattern, threads)?;
    for file in files {
        counter.add(&[&std::fs::read_to_string(file)?])?;
    }
    let options = TrainOptions { merges, threads, ..TrainOptions::default() };
    let trained = train(&counter.finish()?, &options, &mut |_| Ok(()))?;
    let tokenizer = trained.to_tokenizer(&special, pattern)?;
    tokenizer.save(out)?;
    println!("{} ids, saved to {out}", tokenizer.vocabulary().len());
    Ok(())
}
