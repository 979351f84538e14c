//! The Python module `bytepair._core`: conversion only.
//!
//! Each method borrows its arguments, releases the interpreter lock, calls one function of the
//! core, and converts the result or the error.

#![expect(clippy::doc_markdown, reason = "Python shows the doc comments as docstrings")]
#![expect(clippy::doc_link_with_quotes, reason = "the same")]
#![expect(clippy::too_many_arguments, reason = "keywords in Python")]
#![expect(clippy::needless_pass_by_value, reason = "PyO3 hands extracted arguments over by value")]

mod arguments;
mod arrays;
mod columns;
mod counts;
mod decoding;
mod errors;
mod files;
mod ids;
mod internals;
mod interrupt;
mod ints;
mod model;
mod parity;
mod rows;
mod rules;
mod streams;
mod text;
mod tokenizer;
mod tokenizer_json;
mod training;
mod view;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Replaces musl's allocator, which takes one lock and keeps returning memory to the system:
/// training from files takes up to 1.4 times as long with it (docs/maintainers/releases.md).
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Restrict the vector instructions to `BYTEPAIR_SIMD`, if it is set.
fn instructions() -> PyResult<()> {
    match std::env::var("BYTEPAIR_SIMD") {
        Ok(name) if !name.is_empty() => bytepair::machine::simd::only(&name)
            .map_err(|error| PyValueError::new_err(format!("BYTEPAIR_SIMD: {error}"))),
        _ => Ok(()),
    }
}

#[pymodule(gil_used = false)]
mod _core {
    use bytepair::corpus;
    use pyo3::prelude::*;

    use crate::arguments::names;

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    const UNICODE_VERSION: &str = bytepair::pretokenize::UNICODE_VERSION;

    #[pymodule_export]
    use crate::{
        arguments::{shown, threads},
        columns::{encode_file, encode_utf8, lone_surrogates, not_utf8, render},
        counts::{PyCounter, PyCounts},
        files::{PyDocumentReader, counts_footer, parquet_rows, parquet_size, rank_file, unpack},
        internals::{
            added_tokens, count_batch, encode_pretoken, ignores_merges, is_lossless, merge_counts,
            pretokenize, repeats, roles, split_engine, text_rules, truncate_text, twin_ids,
            usual_roles, whole_only_ids, with_notes, with_repeats, with_special_tokens,
            with_uncovered_dropped,
        },
        model::PyModel,
        parity::{PyPairHistory, train_parity},
        rows::{PyRowPacker, crc32, encode_rows, gather, pack, plan_rows},
        rules::{PySplitter, PyTextRules, pattern},
        streams::{PyDecodeStream, PyEncodeStream, PySession},
        tokenizer::PyTokenizer,
        tokenizer_json::{
            harmless_pattern, is_rank_file, is_rule_of_ranks, mistaken, to_bytes, to_characters,
            tokenizer_json, tokenizer_json_losses,
        },
        training::{extend, resume, train, verify_merges, with_vocab_size},
        view::PyView,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::instructions()?;
        let named = |name| Some((name, bytepair::Pattern::named(name)?.steps().concat()));
        let all = bytepair::Pattern::names().chain(bytepair::Pattern::encodings());
        let patterns: Vec<_> = all.filter_map(named).collect();
        let py = module.py();
        module.add("PATTERNS", pyo3::types::IntoPyDict::into_py_dict(patterns, py)?)?;
        module.add("TIES", names(py, &bytepair::Ties::NAMED)?)?;
        module.add("ERROR_MODES", names(py, &corpus::OnError::NAMED)?)?;
        module.add("FILE_KINDS", names(py, &corpus::FileKind::NAMED)?)?;
        module.add("COMPRESSIONS", names(py, &corpus::Compression::NAMED)?)
    }
}
