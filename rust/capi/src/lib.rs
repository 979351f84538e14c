//! The tokenizer for C: `include/bytepair.h` is made of this crate.
//!
//! Pointers and lengths in, values of the core, pointers and lengths out: each function checks its
//! arguments, calls one function of the core, and converts the result or the error. `arguments`
//! turns what a caller passes into references and slices, `failure` has the codes, `result` turns
//! results into codes, messages and values behind pointers, and catches panics; `buffers` are vectors
//! that a caller holds; all other files are functions of the interface, by subject.
//!
//! The names here are those of Rust; `cbindgen.toml` gives types the prefix of C.

#![expect(unsafe_code, reason = "the border to C: functions by name, and memory of the caller")]
#![expect(clippy::missing_safety_doc, reason = "the head of the header says what every call needs")]
#![expect(clippy::doc_markdown, reason = "the doc comments are those of the header")]

// In the order of the header.
pub mod failure;

pub mod arguments;

pub mod result;

pub mod load;

pub mod tokenizer;

pub mod encode;

pub mod render;

pub mod decode;

pub mod buffers;

pub mod train;
