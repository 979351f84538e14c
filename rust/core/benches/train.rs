//! The time of counting a text file and of learning merges from the counts:
//! `cargo bench -p bytepair --bench train -- FILE [VOCAB_SIZE] [THREADS]`.
//!
//! Documents are separated by zero bytes.
#![expect(clippy::print_stdout, reason = "it reports")]

use std::num::NonZeroU64;
use std::time::Instant;

use bytepair::{Counter, Pattern, Ties, TrainOptions, train};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().expect("pass a text file");
    let mut number =
        |default| arguments.next().map_or(default, |text| text.parse().expect("a number"));
    let (vocab_size, threads) = (number(32768), number(2));
    let text = std::fs::read_to_string(&file).expect("the file is UTF-8");
    let documents: Vec<&str> = text.split('\0').collect();

    let started = Instant::now();
    let mut counter =
        Counter::new(&Pattern::new("nanochat").expect("a name"), threads).expect("a known pattern");
    for batch in documents.chunks(1024) {
        counter.add(batch).expect("the pattern splits the text");
    }
    let counts = counter.finish().expect("no memory limit");
    println!("count {:?}, {} distinct pretokens", started.elapsed(), counts.len());

    for ties in [Ties::RustBpe, Ties::Hf] {
        let started = Instant::now();
        let options = TrainOptions {
            merges: vocab_size - 256,
            ties,
            min_count: NonZeroU64::MIN,
            threads,
            ..TrainOptions::default()
        };
        let trained = train(&counts, &options, &mut |_| Ok(())).expect("training succeeds");
        let (last, count) = (trained.merges.len(), trained.counts.last());
        println!("merge {:?}, {last} merges, the last of count {count:?}", started.elapsed());
    }
}
