"""Solutions of lesson 7, map and reduce."""

# %% count
COUNT = r"""
/// The map step: the distinct pretokens of a text, with their counts.
fn count<'t>(text: &'t str) -> Counts<'t> {
    let mut counts = Counts::new();
    for pretoken in pretokens(text) {
        *counts.entry(pretoken).or_insert(0) += 1;
    }
    counts
}
"""

# %% cut
CUT = r"""
/// Cuts a text into pieces of about equal length, where pretokens begin.
fn cut(text: &str, parts: usize) -> Vec<&str> {
    let mut cuts = vec![0];
    for n in 1..parts {
        let near = n * text.len() / parts;
        let found = text.as_bytes()[near..].iter().position(|&byte| begins(byte));
        cuts.push(found.map_or(text.len(), |found| near + found));
    }
    cuts.push(text.len());
    cuts.windows(2).map(|ends| &text[ends[0]..ends[1]]).collect()
}
"""

# %% reduce
REDUCE = r"""
/// The reduce step: adds the counts of all parts.
fn reduce(mut parts: Vec<Counts>) -> Counts {
    parts.sort_by_key(|part| part.len());
    let mut sum = parts.pop().unwrap_or_default();
    for part in parts {
        for (pretoken, count) in part {
            *sum.entry(pretoken).or_insert(0) += count;
        }
    }
    sum
}
"""

# %% map-reduce
MAP_REDUCE = r"""
/// Counts the pieces of a text, each on a thread of its own, and adds the counts.
fn map_reduce<'t>(
    text: &'t str,
    threads: usize,
    map: impl Fn(&'t str) -> Counts<'t> + Sync,
) -> Counts<'t> {
    let map = &map;
    let parts = std::thread::scope(|scope| {
        let threads: Vec<_> =
            cut(text, threads).into_iter().map(|piece| scope.spawn(move || map(piece))).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Counts<'t>>| {
            thread.join().expect("a thread that counts does not panic")
        };
        threads.into_iter().map(join).collect()
    });
    reduce(parts)
}
"""
