"""Solutions of lesson 8, Rust from Python."""

# %% merge
MERGE = r"""
/// Puts `new` in place of each `pair`, from left to right.
#[pyfunction]
fn merge(mut ids: Vec<u32>, pair: (u32, u32), new: u32) -> Vec<u32> {
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
    ids
}
"""

# %% decode
DECODE = r"""
/// The text of these ids.
#[pyfunction]
fn decode(ids: Vec<u32>, vocabulary: Vec<Vec<u8>>) -> PyResult<String> {
    let mut bytes = Vec::new();
    for (position, &id) in ids.iter().enumerate() {
        let token = vocabulary.get(id as usize).ok_or_else(|| {
            let tokens = vocabulary.len();
            PyValueError::new_err(format!(
                "id {id} at position {position}: the vocabulary has {tokens} tokens"
            ))
        })?;
        bytes.extend(token);
    }
    Ok(String::from_utf8(bytes)?)
}
"""

# %% class
CLASS = r"""
use std::cmp::Reverse;

/// Counts the pairs of neighbouring bytes.
#[pyclass]
#[derive(Default)]
struct PairCounter {
    counts: HashMap<(u8, u8), u64>,
}

#[pymethods]
impl PairCounter {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Counts the pairs of some bytes, too.
    fn add(&mut self, data: &[u8]) {
        for pair in data.windows(2) {
            *self.counts.entry((pair[0], pair[1])).or_insert(0) += 1;
        }
    }

    /// How many distinct pairs there are.
    fn __len__(&self) -> usize {
        self.counts.len()
    }

    /// The `n` most frequent pairs, of equally frequent ones the smaller first.
    fn most_common(&self, n: usize) -> Vec<((u8, u8), u64)> {
        let mut entries: Vec<_> =
            self.counts.iter().map(|(&pair, &count)| (pair, count)).collect();
        entries.sort_by_key(|&(pair, count)| (Reverse(count), pair));
        entries.truncate(n);
        entries
    }
}
"""

# %% detach
DETACH = r"""
/// How often each pair of neighbouring bytes occurs.
#[pyfunction]
fn count_pairs(py: Python<'_>, data: &[u8]) -> HashMap<(u8, u8), u64> {
    py.detach(|| count(data))
}
"""
