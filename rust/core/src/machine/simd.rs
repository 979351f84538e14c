//! The choice of vector instructions: the widest of this processor, unless others are requested.
//!
//! A `SimdLevel` is proof that the processor has its instructions, because only `detect` creates
//! one. One list of features per level serves detection and compilation. The results are the same
//! on every level; requesting a level is for tests and benchmarks. No other file prefetches.

#[cfg(target_arch = "aarch64")]
use std::arch::is_aarch64_feature_detected;
use std::sync::OnceLock;

use crate::error::{Error, Result};

/// Work that is compiled once for each level.
pub(crate) trait Work {
    type Output;

    /// Do the work. This function, and all functions it calls that need the instructions of the
    /// level, must be `#[inline(always)]`.
    fn run(self) -> Self::Output;
}

/// Vector instructions of this processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SimdLevel {
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512, Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "aarch64")]
    Neon(Neon),
    Portable,
}

/// No vector instructions: the safe reference for each level.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Portable;

#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    expect(unused_macros, reason = "there are no levels")
)]
macro_rules! level {
    ($level:ident, $is_detected:ident: $($feature:tt)*) => {
        /// Proof that the processor has all features of the level.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) struct $level(());

        impl $level {
            fn detect() -> Option<Self> {
                ($($is_detected!($feature))&&*).then_some(Self(()))
            }

            /// Do work that is compiled for the level.
            #[inline]
            #[expect(unsafe_code, reason = "the compiler cannot know the processor")]
            pub(crate) fn run<W: Work>(self, work: W) -> W::Output {
                #[target_feature($(enable = $feature),*)]
                fn run<W: Work>(work: W) -> W::Output {
                    work.run()
                }
                // SAFETY: only `detect` creates `self`, if the processor has all of the features.
                unsafe { run(work) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
level!(Avx512, is_x86_feature_detected:
    "avx512f" "avx512bw" "avx512dq" "avx512vbmi" "avx512vbmi2" "avx2" "fma" "f16c"
    "bmi1" "bmi2" "lzcnt" "popcnt");

#[cfg(target_arch = "x86_64")]
level!(Avx2, is_x86_feature_detected: "avx2" "bmi1" "bmi2" "lzcnt" "popcnt");

#[cfg(target_arch = "aarch64")]
level!(Neon, is_aarch64_feature_detected: "neon");

/// The level that was requested.
static REQUESTED: OnceLock<SimdLevel> = OnceLock::new();

impl SimdLevel {
    /// All levels of this processor, the widest first.
    pub(crate) fn all() -> Vec<Self> {
        let mut all = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = Avx2::detect();
            // The level of AVX-512 carries the proof of AVX2 too, for code that has no wider form.
            all.extend(Avx512::detect().zip(avx2).map(|(wide, narrow)| Self::Avx512(wide, narrow)));
            all.extend(avx2.map(Self::Avx2));
        }
        #[cfg(target_arch = "aarch64")]
        all.extend(Neon::detect().map(Self::Neon));
        all.push(Self::Portable);
        all
    }

    /// The level that was requested, or else the widest.
    #[inline]
    pub(crate) fn current() -> Self {
        static WIDEST: OnceLock<SimdLevel> = OnceLock::new();
        *REQUESTED.get().unwrap_or_else(|| WIDEST.get_or_init(|| Self::all()[0]))
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(..) => "avx512",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => "avx2",
            #[cfg(target_arch = "aarch64")]
            Self::Neon(_) => "neon",
            Self::Portable => "portable",
        }
    }
}

/// Use these instructions in this process from now on: `"avx512"`, `"avx2"`, `"neon"`, or
/// `"portable"`, which every processor has. An existing tokenizer keeps its scanner.
///
/// Fails with [`Error::Simd`] if this processor does not have them, or if others were requested
/// before.
///
/// ```
/// bytepair::machine::simd::only("portable")?;
/// let splitter = bytepair::Splitter::new(&bytepair::Pattern::new("gpt2")?)?;
/// assert_eq!(splitter.tier(), "portable");
/// assert!(bytepair::machine::simd::only("mmx").is_err());
/// # Ok::<(), bytepair::Error>(())
/// ```
pub fn only(name: &str) -> Result<()> {
    let all = SimdLevel::all();
    let named = all.iter().find(|level| level.name() == name);
    let requested = named.map(|level| *REQUESTED.get_or_init(|| *level));
    if requested.is_some_and(|level| level.name() == name) {
        return Ok(());
    }
    let usable = requested.map_or(all, |level| vec![level]);
    let usable: Vec<_> = usable.into_iter().map(SimdLevel::name).collect();
    let usable = usable.join(", ");
    let reason = format!("the instructions {name:?} cannot be used, only {usable}");
    Err(Error::Simd { reason: reason.into() })
}

/// Prefetch the cache line of `items[index]`, which need not exist.
///
/// Tables that exceed the caches are accessed in the order of the text, which no hardware
/// prefetcher can predict. Code that knows some positions in advance prefetches them and continues.
#[cfg(target_arch = "x86_64")]
#[inline]
#[expect(
    unsafe_code,
    reason = "without it, cache misses take a third of encoding and merging time"
)]
pub(crate) fn prefetch<T>(items: &[T], index: usize) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch has no effect on values, and any address is allowed. There is no result to
    // compare with a safe reference; the callers have their own tests.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(items.as_ptr().wrapping_add(index).cast()) };
}

/// Prefetching is implemented for x86-64 only.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(crate) fn prefetch<T>(_items: &[T], _index: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_index_may_be_prefetched_and_no_value_changes() {
        for length in [0, 1, 1000] {
            let items: Vec<u64> = (0..length).collect();
            for index in [0, 1, 999, 1000, usize::MAX / 3, usize::MAX] {
                prefetch(&items, index);
            }
            assert!(items.into_iter().eq(0..length));
        }
    }
}
