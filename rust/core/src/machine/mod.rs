//! The processor and its memory: vector instructions, prefetching, huge pages, mapped arrays.

pub(crate) mod array;

pub(crate) mod huge_pages;

pub(crate) mod lanes;

pub(crate) mod prefetch;

pub mod simd;
