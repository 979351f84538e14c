//! Count the tokens of text files: `cargo run --release --example encode -- TOKENIZER FILES...`.
//!
//! TOKENIZER is a native file, a `tokenizer.json`, or a rank file of GPT-4's vocabulary.
#![expect(clippy::print_stdout, reason = "it shows the result")]

use std::error::Error;
use std::ffi::OsStr;
use std::path::Path;

use bytepair::{Pattern, Tokenizer};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: encode TOKENIZER FILES...")?;
    let tokenizer = match Path::new(&path).extension().and_then(OsStr::to_str) {
        Some("tiktoken") => {
            let pattern = Pattern::named("gpt4").ok_or("a published pattern")?;
            Tokenizer::from_rank_file(&std::fs::read(&path)?, [], pattern)?
        }
        Some("json") => Tokenizer::from_tokenizer_json(&std::fs::read(&path)?)?,
        _ => Tokenizer::open(&path)?,
    };
    for file in arguments {
        let text = std::fs::read_to_string(&file)?;
        let tokens = tokenizer.count(&text, tokenizer.plain())?;
        println!("{tokens:>12} tokens, {:>12} bytes  {file}", text.len());
    }
    Ok(())
}
