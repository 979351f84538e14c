#![expect(clippy::print_stdout, reason = "it reports")]
//! The throughput of splitting a text file:
//! `cargo bench -p bytepair --bench split -- FILE [PATTERN]`.
//!
//! Prints the throughput in MB/s and the construction time of the chosen splitter, the automaton
//! and the regular-expression engine, and the throughput of a plain loop that hashes every byte.

use std::time::Instant;

use bytepair::{Pattern, Splitter};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().expect("pass a text file");
    let pattern = Pattern::new(&arguments.next().unwrap_or_else(|| "nanochat".to_owned()))
        .expect("a pattern name or a regular expression");
    let text = std::fs::read_to_string(&file).expect("the file is UTF-8");
    let timed = |name: &str, build: &dyn Fn() -> Option<Splitter>| {
        let started = Instant::now();
        let splitter = build();
        println!("{name:>30} {:8.1} ms to build", started.elapsed().as_secs_f64() * 1e3);
        splitter
    };
    let valid = "the pattern is valid";
    let fast = timed("chosen", &|| Some(Splitter::new(&pattern).expect(valid))).expect(valid);
    let table = timed("table", &|| Splitter::by_table(&pattern.steps()[0]).expect(valid));
    let slow = timed("regex", &|| Some(Splitter::by_regex(&pattern).expect(valid))).expect(valid);
    let short = &text.chars().take(2_000_000).collect::<String>();

    let hash = |text: &str| {
        text.bytes().fold(0u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3))
    };
    let count = |splitter: &Splitter, text: &str| {
        let mut count = 0;
        splitter.for_each(text, |_| count += 1).expect("the pattern splits the text");
        count
    };
    for _ in 0..3 {
        rate("a loop that hashes every byte", text.len(), || hash(&text));
        rate(fast.tier(), text.len(), || count(&fast, &text));
        if let Some(table) = &table {
            rate(table.tier(), text.len(), || count(table, &text));
        }
        rate(slow.tier(), short.len(), || count(&slow, short));
    }
}

fn rate(name: &str, bytes: usize, work: impl FnOnce() -> u64) {
    let started = Instant::now();
    let result = work();
    let seconds = started.elapsed().as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a rate needs few digits")]
    let rate = bytes as f64 / seconds / 1e6;
    println!("{name:>30} {rate:8.0} MB/s   ({result})");
}
