"""Solutions of lesson 6, the toy in Rust."""

# %% hello
HELLO = r"""
fn main() {
    let name = std::env::args().nth(1).unwrap_or_else(|| "world".to_string());
    println!("hello, {name}");
}
"""

# %% count-pairs
COUNT_PAIRS = r"""
/// How often each pair of neighbours occurs.
fn count_pairs(ids: &[u32]) -> HashMap<Pair, u64> {
    let mut counts = HashMap::new();
    for window in ids.windows(2) {
        *counts.entry((window[0], window[1])).or_insert(0) += 1;
    }
    counts
}
"""

# %% merge
MERGE = r"""
/// Puts `new` in place of each `pair`, from left to right, and says how many it replaced.
fn merge(ids: &mut Vec<u32>, pair: Pair, new: u32) -> usize {
    let before = ids.len();
    let (mut read, mut write) = (0, 0);
    while read < ids.len() {
        if ids[read] == pair.0 && ids.get(read + 1) == Some(&pair.1) {
            ids[write] = new;
            read += 2;
        } else {
            ids[write] = ids[read];
            read += 1;
        }
        write += 1;
    }
    ids.truncate(write);
    before - write
}
"""

# %% train
TRAIN = r"""
/// Learns merges: each is the most frequent pair at its time, with its count.
fn train(ids: &mut Vec<u32>, merges: usize) -> Vec<(Pair, u64)> {
    let mut learned = Vec::new();
    while learned.len() < merges {
        let counts = count_pairs(ids);
        let best = counts.into_iter().max_by_key(|&(pair, count)| (count, Reverse(pair)));
        let Some((pair, count)) = best else { break };
        merge(ids, pair, 256 + learned.len() as u32);
        learned.push((pair, count));
    }
    learned
}
"""

# %% program
PROGRAM = r"""
/// Trains on a file: `arguments` are its name and the number of merges.
fn program(arguments: &[String]) -> Result<String, String> {
    let [file, merges] = arguments else {
        return Err("usage: toy FILE MERGES".to_string());
    };
    let bytes = std::fs::read(file).map_err(|error| format!("{file}: {error}"))?;
    let merges = merges
        .parse()
        .map_err(|error| format!("MERGES is {merges:?}, which is no number: {error}"))?;
    let mut ids = bytes.into_iter().map(u32::from).collect();
    let lines = train(&mut ids, merges)
        .into_iter()
        .map(|((left, right), count)| format!("{left} {right} {count}\n"))
        .collect();
    Ok(lines)
}
"""
