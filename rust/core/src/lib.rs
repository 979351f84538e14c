//! Byte-level byte-pair encoding: learn a vocabulary from text, then turn text into ids and back.
//!
//! The modules stand in the order in which the data flows:
//!
//! ```text
//! text → pretokenize → count → train → vocabulary → encode / decode → render / shards
//! ```
//!
//! 1. [`pretokenize`] splits a text into *pretokens* with a regular expression; no token ever
//!    crosses the border between two pretokens.
//! 2. [`count`] reduces a corpus to its distinct pretokens and how often each occurs.
//! 3. [`train`] merges the most frequent pair of neighbours, again and again, and returns the
//!    merges in order.
//! 4. [`vocabulary`] is the result: ids and their bytes, checked once and immutable.
//! 5. [`encode`] applies the merges to new text; [`decode`] joins the bytes of ids.
//! 6. [`render`] turns conversations into ids with a loss mask.
//! 7. [`shards`] puts documents that are ids already into the rows of a training run.
//! 8. [`file`] writes and reads the native tokenizer file, [`listed`] the tables of Hugging Face's.
//!
//! [`simd`] says which instructions all of them use. [`Tokenizer`] ties them together. The crate never prints, reads no environment variable, and
//! knows nothing of Python.

pub mod text;

pub mod pretokenize;

pub mod count;

pub mod train;

pub mod vocabulary;

pub mod encode;

pub mod decode;

pub mod render;

pub mod shards;

pub mod tokenizer;

pub mod token;

pub mod arrays;

pub mod documents;

pub mod rows;

pub mod spans;

pub mod stream;

pub mod grow;

pub mod file;

pub mod listed;

pub mod parallel;

pub mod parquet;

pub mod simd;

mod column;

mod slots;

mod index;

mod key;
mod keys;

mod kit;

mod lanes;

mod pages;

mod prefetch;

mod unharmed;

mod utf8;

pub mod error;

pub use count::{Counter, Counts};
pub use encode::Special;
pub use error::{Error, Result};
pub use pretokenize::{Pattern, Splitter};
pub use text::Text;
pub use tokenizer::Tokenizer;
pub use train::{Mismatch, Ties, TrainOptions, Trained, train, train_more, verify};
pub use vocabulary::{MergeRule, Rule, Vocabulary};
