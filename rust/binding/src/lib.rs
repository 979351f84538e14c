//! The Python module `bytepair._core`: one file for each class, conversion only.
//!
//! Each method borrows its arguments, releases the interpreter lock, calls one function of the
//! core, and converts the result or the error.

#![expect(clippy::doc_markdown, reason = "Python shows the doc comments as docstrings")]
#![expect(clippy::doc_link_with_quotes, reason = "the same")]
#![expect(clippy::needless_pass_by_value, reason = "PyO3 hands extracted arguments over by value")]

mod added_token;
mod arguments;
mod arrays;
mod callables;
mod columns;
mod count_columns;
mod count_progress;
mod counter;
mod counts;
mod counts_footer;
mod decode_stream;
mod decoding;
mod derived;
mod document_batch;
mod document_reader;
mod encode_stream;
mod errors;
mod file_object;
mod file_place;
mod files;
mod history;
mod ids;
mod internals;
mod interrupt;
mod ints;
mod invalid_text;
mod match_lengths;
mod model;
mod options;
mod packing;
mod parity;
mod parity_training;
mod pattern;
mod rank_file;
mod reading;
mod render;
mod rendered;
mod rivals;
mod roles;
mod row_packer;
mod row_piece;
mod row_places;
mod row_plan;
mod row_range;
mod rows;
mod rules;
mod session;
mod skipped_rows;
mod skips;
mod splitter;
mod text;
mod tokenizer;
mod tokenizer_json;
mod training;
mod unmade_merge;
mod view;
mod vocabulary;

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
    use crate::added_token::PyAddedToken;
    #[pymodule_export]
    use crate::arguments::{shown, threads};
    #[pymodule_export]
    use crate::callables::register;
    #[pymodule_export]
    use crate::columns::{encode_file, encode_utf8};
    #[pymodule_export]
    use crate::count_columns::PyCountColumns;
    #[pymodule_export]
    use crate::count_progress::PyCountProgress;
    #[pymodule_export]
    use crate::counter::PyCounter;
    #[pymodule_export]
    use crate::counts::PyCounts;
    #[pymodule_export]
    use crate::counts_footer::{PyCountsFooter, counts_footer};
    #[pymodule_export]
    use crate::decode_stream::PyDecodeStream;
    #[pymodule_export]
    use crate::derived::{with_notes, with_repeats, with_special_tokens};
    #[pymodule_export]
    use crate::document_batch::PyDocumentBatch;
    #[pymodule_export]
    use crate::document_reader::PyDocumentReader;
    #[pymodule_export]
    use crate::encode_stream::PyEncodeStream;
    #[pymodule_export]
    use crate::file_place::PyFilePlace;
    #[pymodule_export]
    use crate::files::{parquet_rows, unpack};
    #[pymodule_export]
    use crate::history::PyPairHistory;
    #[pymodule_export]
    use crate::internals::{encode_pretoken, merge_counts, repeats, twin_ids};
    #[pymodule_export]
    use crate::invalid_text::{PyInvalidText, lone_surrogates, not_utf8};
    #[pymodule_export]
    use crate::match_lengths::{PyMatchLengths, match_lengths};
    #[pymodule_export]
    use crate::model::PyModel;
    #[pymodule_export]
    use crate::packing::{crc32, gather, pack, plan_rows};
    #[pymodule_export]
    use crate::parity::train_parity;
    #[pymodule_export]
    use crate::parity_training::PyParityTraining;
    #[pymodule_export]
    use crate::pattern::pattern;
    #[pymodule_export]
    use crate::rank_file::{PyRankFile, rank_file};
    #[pymodule_export]
    use crate::render::render;
    #[pymodule_export]
    use crate::rendered::PyRendered;
    #[pymodule_export]
    use crate::rivals::PyRivals;
    #[pymodule_export]
    use crate::roles::{roles, usual_roles};
    #[pymodule_export]
    use crate::row_packer::PyRowPacker;
    #[pymodule_export]
    use crate::row_piece::PyRowPiece;
    #[pymodule_export]
    use crate::row_places::PyRowPlaces;
    #[pymodule_export]
    use crate::row_plan::PyRowPlan;
    #[pymodule_export]
    use crate::row_range::PyRowRange;
    #[pymodule_export]
    use crate::rows::encode_rows;
    #[pymodule_export]
    use crate::rules::PyTextRules;
    #[pymodule_export]
    use crate::session::PySession;
    #[pymodule_export]
    use crate::skipped_rows::PySkippedRows;
    #[pymodule_export]
    use crate::skips::PySkips;
    #[pymodule_export]
    use crate::splitter::PySplitter;
    #[pymodule_export]
    use crate::tokenizer::PyTokenizer;
    #[pymodule_export]
    use crate::tokenizer_json::{
        composed_pattern, from_oniguruma, harmless_pattern, is_harmless, is_rank_file,
        is_rule_of_ranks, means_the_same, mistaken, to_bytes, to_characters, to_oniguruma,
        tokenizer_json, tokenizer_json_losses,
    };
    #[pymodule_export]
    use crate::training::{
        extend, resume, train, verify_merges, verify_superwords, with_vocab_size,
    };
    #[pymodule_export]
    use crate::unmade_merge::PyUnmadeMerge;
    #[pymodule_export]
    use crate::view::PyView;

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
