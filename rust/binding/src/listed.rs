//! `Listed`: the tables of a `tokenizer.json`, on their way into a `Model`.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;

use crate::model::{Model, names};
use crate::tokenizer::Tokenizer;

/// The tokens and the merges of a `tokenizer.json`.
#[pyclass(frozen, module = "bytepair._core")]
pub(crate) struct Listed {
    tables: bytepair::listed::Listed,
    /// The added tokens that the vocabulary has too.
    #[pyo3(get)]
    added: BTreeMap<String, u32>,
    /// How many entries the vocabulary has.
    #[pyo3(get)]
    size: usize,
}

#[pymethods]
impl Listed {
    /// Take the tables out of a file; None if anything about them is unusual.
    #[staticmethod]
    fn find(py: Python<'_>, data: &[u8]) -> Option<(Self, Py<PyBytes>)> {
        let found = py.detach(|| bytepair::listed::Listed::find(data))?;
        let [first, last] = found.places;
        let empty =
            |place: &std::ops::Range<usize>| if data[place.start] == b'{' { "{}" } else { "[]" };
        let rest = [
            &data[..first.start],
            empty(&first).as_bytes(),
            &data[first.end..last.start],
            empty(&last).as_bytes(),
            &data[last.end..],
        ];
        let rest = PyBytes::new(py, &rest.concat()).unbind();
        let added = found.added.into_iter().collect();
        Some((Self { tables: found.listed, added, size: found.size }, rest))
    }

    /// Whether all 256 bytes are tokens.
    fn has_all_bytes(&self) -> bool {
        self.tables.has_all_bytes()
    }

    /// Put a tokenizer together, with the rule of ranks if the merges can stand for it and shall.
    #[pyo3(signature = (pattern, special_tokens, *, ranks, ignore_merges, notes))]
    fn model(
        &self,
        py: Python<'_>,
        pattern: &str,
        special_tokens: &Bound<'_, PyAny>,
        ranks: bool,
        ignore_merges: bool,
        notes: BTreeMap<String, String>,
    ) -> PyResult<Model> {
        let special = names(special_tokens)?;
        Model::new(py.detach(|| {
            let pattern = bytepair::Pattern::new(pattern);
            let tokenizer = self.tables.tokenizer(special, pattern, ranks, ignore_merges)?;
            Ok(tokenizer.with_notes(notes))
        }))
    }
}

/// The texts of `model.vocab` and `model.merges`, with further entries of the vocabulary.
#[pyfunction]
pub(crate) fn listed_texts(
    py: Python<'_>,
    tokenizer: &Bound<'_, Tokenizer>,
    added: Vec<(String, u32)>,
) -> (String, String) {
    let core = tokenizer.get().core();
    py.detach(|| bytepair::listed::texts(core, &added))
}
