//! `Listed`: the tables of a `tokenizer.json`, on their way into a `Model`.

use bytepair::memory;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;

use crate::errors;
use crate::model::{Model, names};
use crate::tokenizer::Tokenizer;

/// The tokens and the merges of a `tokenizer.json`.
#[pyclass(frozen, module = "bytepair._core")]
pub(crate) struct Listed {
    tables: bytepair::formats::tokenizer_json::Listed,
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
    fn find(py: Python<'_>, data: &[u8]) -> PyResult<Option<(Self, Py<PyBytes>)>> {
        let found =
            errors::checked(py.detach(|| bytepair::formats::tokenizer_json::Listed::find(data)))?;
        let Some(found) = found else { return Ok(None) };
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
        errors::checked(memory::check(2 * rest.iter().map(|part| part.len()).sum::<usize>()))?;
        let rest = PyBytes::new(py, &rest.concat()).unbind();
        let added = found.added.into_iter().collect();
        Ok(Some((Self { tables: found.listed, added, size: found.size }, rest)))
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
            let pattern = bytepair::Pattern::from_regex(pattern);
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
) -> PyResult<(String, String)> {
    let core = tokenizer.get().core();
    let texts =
        errors::checked(py.detach(|| bytepair::formats::tokenizer_json::texts(core, &added)))?;
    errors::checked(memory::check(texts.0.len() + texts.1.len()))?;
    Ok(texts)
}
