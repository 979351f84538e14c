//! `UnmadeMerge`: a merge of a list that training would not have made.

use bytepair::train::Mismatch;
use pyo3::prelude::*;

/// Two tokens that merge.
type BytePair = (Vec<u8>, Vec<u8>);

/// A merge of a list that training would not have made, and what it would have made instead.
#[pyclass(frozen, get_all, name = "UnmadeMerge", module = "bytepair._core")]
pub(crate) struct PyUnmadeMerge {
    /// The index of the merge.
    pub(crate) step: usize,
    /// The pair of tokens that the list merges.
    pub(crate) pair: BytePair,
    /// How often it occurred.
    pub(crate) count: u64,
    /// The pair that training would have merged; None if there was none.
    pub(crate) best: Option<BytePair>,
    /// How often that one occurred.
    pub(crate) best_count: Option<u64>,
}

impl PyUnmadeMerge {
    /// A mismatch of the core, given the bytes of each id.
    pub(crate) fn new(mismatch: &Mismatch, tokens: &[Vec<u8>]) -> Self {
        let bytes = |(left, right): (u32, u32)| {
            (tokens[left as usize].clone(), tokens[right as usize].clone())
        };
        let (pair, count) = mismatch.pair;
        Self {
            step: mismatch.step,
            pair: bytes(pair),
            count,
            best: mismatch.best.map(|(pair, _)| bytes(pair)),
            best_count: mismatch.best.map(|(_, count)| count),
        }
    }
}
