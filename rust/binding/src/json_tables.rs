//! `JsonTables`: the tables of a `tokenizer.json`, parsed by the core.

use bytepair::memory;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;

use crate::errors;
use crate::model::{PyModel, names};
use crate::tokenizer::PyTokenizer;

/// The tokens and the merges of a `tokenizer.json`.
#[pyclass(frozen, name = "JsonTables", module = "bytepair._core")]
pub(crate) struct PyJsonTables {
    tables: bytepair::formats::tokenizer_json::JsonTables,
    /// The added tokens that the vocabulary contains too.
    #[pyo3(get)]
    added: BTreeMap<String, u32>,
    /// The number of entries in the vocabulary.
    #[pyo3(get)]
    size: usize,
}

#[pymethods]
impl PyJsonTables {
    /// Parse the tables of a file. Returns them, and the file with empty tables in their place; or
    /// `None` if the file has another form than usual.
    #[staticmethod]
    fn parse(py: Python<'_>, data: &[u8]) -> PyResult<Option<(Self, Py<PyBytes>)>> {
        let found = errors::checked(
            py.detach(|| bytepair::formats::tokenizer_json::JsonTables::parse(data)),
        )?;
        let Some(found) = found else { return Ok(None) };
        let [first, last] = found.ranges;
        let empty =
            |place: &std::ops::Range<usize>| if data[place.start] == b'{' { "{}" } else { "[]" };
        let rest = [
            &data[..first.start],
            empty(&first).as_bytes(),
            &data[first.end..last.start],
            empty(&last).as_bytes(),
            &data[last.end..],
        ];
        errors::checked(memory::check(2 * rest.iter().map(|part| part.len()).sum::<usize>()))?;
        let rest = PyBytes::new(py, &rest.concat()).unbind();
        let added = found.added.into_iter().collect();
        Ok(Some((Self { tables: found.tables, added, size: found.size }, rest)))
    }

    /// Whether all 256 bytes are tokens.
    fn has_all_bytes(&self) -> bool {
        self.tables.has_all_bytes()
    }

    /// Build a tokenizer. With `ranks`, it uses the merge rule of ranks, if the merges are
    /// equivalent to that rule.
    #[pyo3(signature = (pattern, special_tokens, *, ranks, ignore_merges, notes))]
    fn model(
        &self,
        py: Python<'_>,
        pattern: &str,
        special_tokens: &Bound<'_, PyAny>,
        ranks: bool,
        ignore_merges: bool,
        notes: BTreeMap<String, String>,
    ) -> PyResult<PyModel> {
        let special = names(special_tokens)?;
        PyModel::new(py.detach(|| {
            let pattern = bytepair::Pattern::from_regex(pattern);
            let tokenizer = self.tables.tokenizer(special, pattern, ranks, ignore_merges)?;
            Ok(tokenizer.with_notes(notes))
        }))
    }
}

/// The JSON text of `model.vocab` and `model.merges`; `added` holds further entries of the
/// vocabulary.
#[pyfunction]
pub(crate) fn json_texts(
    py: Python<'_>,
    tokenizer: &Bound<'_, PyTokenizer>,
    added: Vec<(String, u32)>,
) -> PyResult<(String, String)> {
    let core = tokenizer.get().core();
    let texts =
        errors::checked(py.detach(|| bytepair::formats::tokenizer_json::texts(core, &added)))?;
    errors::checked(memory::check(texts.0.len() + texts.1.len()))?;
    Ok(texts)
}
