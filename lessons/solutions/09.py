"""Solutions of lesson 9, the whole small library."""

# %% merge_word
MERGE = r"""
//! One merge in one word.

/// Two neighbours.
pub type Pair = (u32, u32);

/// Replaces each `pair` by `new`; calls `change` with each pair that is lost (-1) or gained (1).
pub fn merge_word(ids: &mut Vec<u32>, pair: Pair, new: u32, mut change: impl FnMut(Pair, i64)) {
    let (mut read, mut write) = (0, 0);
    while read < ids.len() {
        if ids[read] == pair.0 && ids.get(read + 1) == Some(&pair.1) {
            change(pair, -1);
            if write > 0 {
                let left = ids[write - 1];
                change((left, pair.0), -1);
                change((left, new), 1);
            }
            if let Some(&right) = ids.get(read + 2) {
                change((pair.1, right), -1);
                change((new, right), 1);
            }
            ids[write] = new;
            read += 2;
        } else {
            ids[write] = ids[read];
            read += 1;
        }
        write += 1;
    }
    ids.truncate(write);
}
"""

# %% train
TRAIN = r"""
/// Merges a pair in all words; returns the pairs that were born.
fn merge_pair(words: &mut [Word], pairs: &mut Pairs, pair: Pair, new: u32) -> Vec<Pair> {
    let mut born = Vec::new();
    let places = std::mem::take(&mut pairs.entry(pair).or_default().places);
    for number in places {
        let Word { ids, times } = &mut words[number];
        merge_word(ids, pair, new, |changed, change| {
            let found = pairs.entry(changed).or_default();
            found.count += change * *times;
            if change > 0 {
                if found.places.is_empty() {
                    born.push(changed);
                }
                found.place(number);
            }
        });
    }
    born
}

/// Learns at most `merges` merges; the first one makes id 256.
pub fn train(words: &mut [Word], merges: usize) -> Vec<Pair> {
    let mut pairs = count_pairs(words);
    let mut heap: BinaryHeap<(i64, Reverse<Pair>)> =
        pairs.iter().map(|(&pair, found)| (found.count, Reverse(pair))).collect();
    let mut learned = Vec::new();
    while learned.len() < merges {
        let Some((count, Reverse(pair))) = heap.pop() else { break };
        let now = pairs[&pair].count;
        if now == 0 {
            continue;
        }
        if now != count {
            heap.push((now, Reverse(pair)));
            continue;
        }
        let born = merge_pair(words, &mut pairs, pair, 256 + learned.len() as u32);
        heap.extend(born.into_iter().map(|pair| (pairs[&pair].count, Reverse(pair))));
        learned.push(pair);
    }
    learned
}
"""

# %% encode
ENCODE = r"""
//! One pretoken in, its ids out.

use crate::merge::{Pair, merge_word};
use std::collections::HashMap;

/// The ids of one pretoken.
pub fn encode(pretoken: &str, merges: &HashMap<Pair, u32>) -> Vec<u32> {
    let mut ids: Vec<u32> = pretoken.bytes().map(u32::from).collect();
    loop {
        let merge = |window: &[u32]| {
            let pair = (window[0], window[1]);
            let new = *merges.get(&pair)?;
            Some((new, pair))
        };
        let Some((new, pair)) = ids.windows(2).filter_map(merge).min() else { return ids };
        merge_word(&mut ids, pair, new, |_, _| {});
    }
}
"""

# %% tokenizer
TOKENIZER = r"""
/// A tokenizer; before training its vocabulary is the 256 bytes.
#[pyclass]
pub struct Tokenizer {
    pattern: String,
    regex: Option<Regex>,
    merges: HashMap<Pair, u32>,
    vocabulary: Vec<Vec<u8>>,
}

/// The vocabulary before training: the 256 bytes.
fn bytes() -> Vec<Vec<u8>> {
    (0..=255).map(|byte| vec![byte]).collect()
}

#[pymethods]
impl Tokenizer {
    #[new]
    fn new() -> Self {
        Self { pattern: String::new(), regex: None, merges: HashMap::new(), vocabulary: bytes() }
    }

    /// A tokenizer with these merges, in the order in which they were learned.
    #[staticmethod]
    fn from_merges(pattern: &str, merges: Vec<Pair>) -> PyResult<Self> {
        let regex = Regex::new(pattern).map_err(pattern_error)?;
        let mut made = Self { pattern: pattern.to_string(), regex: Some(regex), ..Self::new() };
        for (left, right) in merges {
            let [first, second] = [left, right].map(|id| made.vocabulary.get(id as usize));
            let (Some(first), Some(second)) = (first, second) else {
                let message = format!("merge ({left}, {right}) has an id that does not exist yet");
                return Err(PyValueError::new_err(message));
            };
            let token = [&first[..], second].concat();
            made.merges.insert((left, right), made.vocabulary.len() as u32);
            made.vocabulary.push(token);
        }
        Ok(made)
    }

    /// The merged pairs, in the order in which they were learned.
    fn merges(&self) -> Vec<Pair> {
        let mut learned: Vec<_> = self.merges.iter().map(|(&pair, &new)| (new, pair)).collect();
        learned.sort();
        learned.into_iter().map(|(_, pair)| pair).collect()
    }

    /// Trains on texts, `buffer_size` of them at a time.
    #[pyo3(signature = (iterator, vocab_size, buffer_size = 8192, pattern = None))]
    fn train_from_iterator(
        &mut self,
        py: Python<'_>,
        iterator: &Bound<'_, PyAny>,
        vocab_size: usize,
        buffer_size: usize,
        pattern: Option<&str>,
    ) -> PyResult<()> {
        if vocab_size < 256 {
            let message = format!("vocab_size is {vocab_size}; it must be at least 256");
            return Err(PyValueError::new_err(message));
        }
        if buffer_size < 1 {
            let message = format!("buffer_size is {buffer_size}; it must be at least 1");
            return Err(PyValueError::new_err(message));
        }
        let pattern = pattern.unwrap_or(GPT4_PATTERN);
        let regex = Regex::new(pattern).map_err(pattern_error)?;
        let mut words: Vec<Word> = count_texts(iterator, buffer_size, &regex)?
            .into_iter()
            .map(|(text, times)| Word { ids: text.bytes().map(u32::from).collect(), times })
            .collect();
        let learned = py.detach(|| train(&mut words, vocab_size - 256));
        *self = Self::from_merges(pattern, learned)?;
        Ok(())
    }

    /// The split pattern; empty before training.
    fn get_pattern(&self) -> &str {
        &self.pattern
    }

    /// The 256 bytes and the merges.
    #[getter]
    fn vocab_size(&self) -> usize {
        self.vocabulary.len()
    }

    /// The bytes of each token and its rank, in order of rank.
    fn get_mergeable_ranks(&self) -> Vec<(Vec<u8>, u32)> {
        self.vocabulary.iter().cloned().zip(0..).collect()
    }

    /// The ids of a text; none before training.
    fn encode(&self, text: &str) -> PyResult<Vec<u32>> {
        let Some(regex) = &self.regex else { return Ok(vec![]) };
        let pretokens = pretokens(regex, text).map_err(pattern_error)?;
        Ok(pretokens.into_iter().flat_map(|pretoken| encode(pretoken, &self.merges)).collect())
    }

    /// The ids of many texts.
    fn batch_encode(&self, texts: Vec<String>) -> PyResult<Vec<Vec<u32>>> {
        texts.iter().map(|text| self.encode(text)).collect()
    }

    /// The text of ids.
    fn decode(&self, ids: Vec<u32>) -> PyResult<String> {
        let mut bytes = Vec::new();
        for id in ids {
            let token = self.vocabulary.get(id as usize).ok_or_else(|| {
                let size = self.vocabulary.len();
                PyValueError::new_err(format!(
                    "Unknown token id: id {id} is not in the vocabulary, whose ids are below {size}"
                ))
            })?;
            bytes.extend(token);
        }
        Ok(String::from_utf8(bytes)?)
    }

    /// The texts of many lists of ids.
    fn batch_decode(&self, batch_ids: Vec<Vec<u32>>) -> PyResult<Vec<String>> {
        batch_ids.into_iter().map(|ids| self.decode(ids)).collect()
    }
}
"""

# %% saved
import json
import re


class SmallTokenizer:
    """A trained tokenizer with special tokens."""

    def __init__(self, core, special=()):
        self.core = core
        self.special = {name: core.vocab_size + n for n, name in enumerate(special)}

    @classmethod
    def train(cls, texts, vocab_size, special=()):
        """Train on texts; `vocab_size` includes the special tokens."""
        core = small_bpe.Tokenizer()
        core.train_from_iterator(texts, vocab_size - len(special))
        return cls(core, special)

    def encode(self, text, allowed=()):
        """The ids of a text; the names in `allowed` become special tokens."""
        names = sorted(set(allowed) & set(self.special), key=len, reverse=True)
        if not names:
            return self.core.encode(text)
        ids = []
        for part in re.split(f"({'|'.join(map(re.escape, names))})", text):
            ids += [self.special[part]] if part in names else self.core.encode(part)
        return ids

    def decode(self, ids):
        """The text of ids, with the names of special tokens."""
        names = {id: name for name, id in self.special.items()}
        parts, run = [], []
        for id in ids:
            if id in names:
                parts += [self.core.decode(run), names[id]]
                run = []
            else:
                run.append(id)
        return "".join([*parts, self.core.decode(run)])

    def save(self, path):
        """Write the tokenizer to a file."""
        content = {
            "pattern": self.core.get_pattern(),
            "merges": self.core.merges(),
            "special": list(self.special),
        }
        path.write_text(json.dumps(content), encoding="utf-8")

    @classmethod
    def load(cls, path):
        """Read a file that `save` has written."""
        content = json.loads(path.read_text(encoding="utf-8"))
        merges = [tuple(pair) for pair in content["merges"]]
        core = small_bpe.Tokenizer.from_merges(content["pattern"], merges)
        return cls(core, content["special"])
