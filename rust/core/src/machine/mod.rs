//! The machine: vector instructions, prefetching, huge pages, mapped arrays, the clock.

pub(crate) mod array;

pub(crate) mod clock;

pub(crate) mod huge_pages;

pub(crate) mod lanes;

pub(crate) mod prefetch;

pub mod simd;
