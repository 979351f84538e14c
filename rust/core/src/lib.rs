#![doc = include_str!("../README.md")]
//!
//! # How the crate is built
//!
//! The modules stand in the order in which the data flows:
//!
//! ```text
//! corpus → pretokenize → count → train → vocabulary → encode / decode → batch → shards
//! ```
//!
//! 1. [`corpus`] reads files.
//! 2. [`pretokenize`] splits a text into *pretokens* with a regular expression; no token ever
//!    crosses the border between two pretokens.
//! 3. [`count`] reduces a corpus to its distinct pretokens and how often each occurs.
//! 4. [`mod@train`] merges the most frequent pair of neighbours, again and again, and returns the
//!    merges in order.
//! 5. [`vocabulary`] is the result: ids and their bytes, checked once and immutable.
//! 6. [`encode`] applies the merges to new text; [`decode`] joins the bytes of ids.
//! 7. [`tokenizer`] ties the four values together; [`batch`] encodes many texts.
//! 8. [`shards`] puts encoded documents into the rows of a training run.
//! 9. [`formats`] writes and reads tokenizer files.
//!
//! [`machine`] and [`parallel`] are what all of them run on.

pub mod error;

pub mod memory;

pub mod parallel;

pub mod machine;

mod hash;

pub mod text;

pub mod pretokenize;

pub mod vocabulary;

pub mod decode;

pub mod corpus;

pub mod count;

mod merge;

mod cache;

pub mod encode;

pub mod tokenizer;

pub mod batch;

pub mod train;

pub mod shards;

pub mod formats;

#[cfg(feature = "parquet")]
pub use count::column::Progress;
pub use count::{Counter, Counts};
pub use encode::{EncodeOptions, Special};
pub use error::{Error, Result};
pub use pretokenize::{Pattern, Splitter};
pub use text::Text;
pub use tokenizer::Tokenizer;
pub use train::{Mismatch, Ties, TrainOptions, Trained, train, train_more, verify};
pub use vocabulary::{MergeRule, Vocabulary};
