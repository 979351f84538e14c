#![doc = include_str!("../README.md")]
//!
//! # How the crate is built
//!
//! The modules follow the flow of the data, and import only from modules before them:
//!
//! ```text
//! error, memory, parallel, machine, hash, text      the base of all other modules
//! search        regular expressions with limits
//! rules         what happens to a text before it is merged, and to ids after that, as values
//! pretokenize   a text and a pattern to pretokens; no token crosses a pretoken boundary
//! vocabulary    ids and their bytes, checked once and immutable
//! decode        ids to bytes
//! corpus        files to documents
//! count         texts to distinct pretokens and how often each occurs
//! merge         the bytes of one pretoken to ids
//! encode        a text to ids
//! tokenizer     the four values of a tokenizer together
//! roles         which special token begins a text, ends one, ends a turn
//! bulk          many texts to ids
//! train         counts to merges, exactly: repeatedly merges the most frequent adjacent pair
//! rows          documents of ids to the rows of a training run: the one packer
//! formats       a tokenizer or counts to a file and back
//! ```
//!
//! Modules that are public but not in this documentation are for the Python package; they may
//! change with every version.

#[doc(hidden)]
pub mod bulk;
#[doc(hidden)]
pub mod corpus;
mod count;
#[doc(hidden)]
pub mod decode;
#[doc(hidden)]
pub mod encode;
mod error;
#[doc(hidden)]
pub mod formats;
mod hash;
#[doc(hidden)]
pub mod machine;
#[doc(hidden)]
pub mod memory;
mod merge;
#[doc(hidden)]
pub mod parallel;
#[doc(hidden)]
pub mod pretokenize;
#[doc(hidden)]
pub mod roles;
#[doc(hidden)]
pub mod rows;
pub mod rules;
#[doc(hidden)]
pub mod search;
#[doc(hidden)]
pub mod text;
#[doc(hidden)]
pub mod tokenizer;
#[doc(hidden)]
pub mod train;
mod vocabulary;

#[cfg(feature = "parquet")]
pub use corpus::parquet::{RowRange, TextColumn};
pub use count::job::{CountProgress, FileCountOptions, Reached};
pub use count::{Counter, Counts};
pub use encode::{EncodeOptions, Special};
pub use error::{Error, Hint, Reason, Result, shortened};
#[cfg(feature = "parquet")]
pub use formats::counts_file::CountsFile;
pub use pretokenize::Pattern;
pub use roles::Role;
pub use rules::{AddedToken, TextRules};
pub use tokenizer::Tokenizer;
pub use tokenizer::parts::TokenizerParts;
pub use train::{Ties, TrainOptions, Trained, Veto, train};
pub use vocabulary::{MergeRule, Vocabulary};

#[doc(hidden)]
pub use count::job::Skips;
#[doc(hidden)]
pub use hash::crc32;
#[doc(hidden)]
pub use pretokenize::Splitter;
#[doc(hidden)]
pub use text::Text;
#[doc(hidden)]
pub use train::{Mismatch, train_more, verify};
