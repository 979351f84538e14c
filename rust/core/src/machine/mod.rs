//! The machine: vector instructions, prefetching, huge pages, mapped arrays, the clock.

pub(crate) mod array;
pub mod simd;

// The standard library has no clock for WebAssembly in a browser.
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub(crate) use std::time::Instant;
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
pub(crate) use web_time::Instant;
