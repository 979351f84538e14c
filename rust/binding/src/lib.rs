//! The Python module `bytepair._core`: one file for each class, conversion only.
//!
//! Each method borrows its arguments, releases the interpreter lock, calls one function of the
//! core, and converts the result or the error.

#![expect(clippy::doc_markdown, reason = "Python shows the doc comments as docstrings")]
#![expect(clippy::doc_link_with_quotes, reason = "the same")]
#![expect(clippy::needless_pass_by_value, reason = "PyO3 hands extracted arguments over by value")]

mod arguments;
mod arrays;

mod columns;
mod counter;
mod counts;
mod decode_stream;

mod derived;
mod encode_stream;
mod errors;
mod files;
mod history;
mod ids;
mod interrupt;
mod ints;
mod model;
mod options;
mod parity;
mod pattern;
mod render;
mod rows;
mod session;
mod shards;
mod text;
mod tokenizer;
mod tokenizer_json;
mod training;
mod view;
mod vocabulary;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Replaces musl's allocator, which takes one lock and keeps returning memory to the system:
/// training from files takes up to 1.4 times as long with it (docs/install.md).
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
    use pyo3::prelude::*;

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    const UNICODE_VERSION: &str = bytepair::pretokenize::UNICODE_VERSION;

    #[pymodule_export]
    use crate::arguments::threads;
    #[pymodule_export]
    use crate::columns::{encode_file, encode_utf8};
    #[pymodule_export]
    use crate::counter::{PyCounter, lone_surrogates, not_utf8};
    #[pymodule_export]
    use crate::counts::{PyCounts, counts_footer};
    #[pymodule_export]
    use crate::decode_stream::PyDecodeStream;
    #[pymodule_export]
    use crate::derived::{with_notes, with_repeats, with_special_tokens};
    #[pymodule_export]
    use crate::encode_stream::PyEncodeStream;
    #[pymodule_export]
    use crate::files::{PyDocumentReader, parquet_rows, unpack};
    #[pymodule_export]
    use crate::history::PyPairHistory;
    #[pymodule_export]
    use crate::model::PyModel;
    #[pymodule_export]
    use crate::parity::train_parity;
    #[pymodule_export]
    use crate::pattern::{match_lengths, pattern};
    #[pymodule_export]
    use crate::render::{pack, render};
    #[pymodule_export]
    use crate::rows::encode_rows;
    #[pymodule_export]
    use crate::session::PySession;
    #[pymodule_export]
    use crate::shards::{best_fit, crc32, gather};
    #[pymodule_export]
    use crate::tokenizer::PyTokenizer;
    #[pymodule_export]
    use crate::tokenizer_json::{
        from_oniguruma, harmless_pattern, is_harmless, is_rank_file, is_rule_of_ranks,
        means_the_same, mistaken, pattern_of_steps, rank_file, to_bytes, to_characters,
        to_oniguruma, tokenizer_json, tokenizer_json_losses,
    };
    #[pymodule_export]
    use crate::training::{
        extend, resume, train, verify_merges, verify_superwords, with_vocab_size,
    };
    #[pymodule_export]
    use crate::view::PyView;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::instructions()?;
        let named = |name| Some((name, bytepair::Pattern::named(name)?.regex().to_owned()));
        let all = bytepair::Pattern::names().chain(bytepair::Pattern::encodings());
        let patterns: Vec<_> = all.filter_map(named).collect();
        module.add("PATTERNS", pyo3::types::IntoPyDict::into_py_dict(patterns, module.py())?)
    }
}
