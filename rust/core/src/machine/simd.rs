//! The choice of vector instructions: the widest of this processor, unless others are requested.
//!
//! A `SimdLevel` is proof that the processor has its instructions, because only `detect` creates
//! one. One list of features per level serves detection and compilation. The results are the same
//! on every level; requesting a level is for tests and benchmarks. No other file prefetches.

#![expect(
    clippy::inline_always,
    reason = "the code must be compiled for the instructions of the caller"
)]

#[cfg(target_arch = "aarch64")]
use std::arch::is_aarch64_feature_detected;
use std::sync::OnceLock;

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
/// Fails if this processor does not have them, or if others were requested before; the error names
/// those that can be used.
///
/// ```
/// bytepair::machine::simd::only("portable")?;
/// let splitter = bytepair::Splitter::new(&bytepair::Pattern::new("gpt2")?)?;
/// assert_eq!(splitter.tier(), "portable");
/// assert!(bytepair::machine::simd::only("mmx").is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn only(name: &str) -> Result<(), String> {
    let all = SimdLevel::all();
    let named = all.iter().find(|level| level.name() == name);
    let requested = named.map(|level| *REQUESTED.get_or_init(|| *level));
    if requested.is_some_and(|level| level.name() == name) {
        return Ok(());
    }
    let usable = requested.map_or(all, |level| vec![level]);
    let usable: Vec<_> = usable.into_iter().map(SimdLevel::name).collect();
    let usable = usable.join(", ");
    Err(format!("the instructions {name:?} cannot be used, only {usable}"))
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

// ---------------------------------------------------------------------------- lanes
//
// Operations on a few numbers at once, with vector instructions where the processor has them.
//
// `run` runs a `LaneWork` with the operations of the current level. They halve the time of
// merging.

/// Work that uses lanes.
pub(crate) trait LaneWork {
    type Output;

    /// Do the work. This function, and all functions that it passes `lanes` to, must be
    /// `#[inline(always)]`.
    fn run(self, lanes: impl Lanes) -> Self::Output;
}

/// Operations on a few numbers; all implementations give the same results.
pub(crate) trait Lanes: Copy {
    /// The lowest of `COUNT` numbers; `COUNT` is a multiple of eight.
    fn lowest<const COUNT: usize>(self, numbers: &[u32; COUNT]) -> u32;

    /// The word that equals `key` under `mask`, or zero if there is none. At most one word other
    /// than zero may equal `key`.
    fn find(self, words: &[u64; 8], mask: u64, key: u64) -> u64;
}

/// Do the work with the widest lanes of the current level.
#[inline]
pub(crate) fn run<W: LaneWork>(work: W) -> W::Output {
    run_on(SimdLevel::current(), work)
}

#[inline]
fn run_on<W: LaneWork>(level: SimdLevel, work: W) -> W::Output {
    match level {
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx512(_, avx2) | SimdLevel::Avx2(avx2) => avx2.run(WithLanes(work, avx2)),
        _ => work.run(Portable),
    }
}

#[cfg(target_arch = "x86_64")]
struct WithLanes<W, L>(W, L);

#[cfg(target_arch = "x86_64")]
impl<W: LaneWork, L: Lanes> Work for WithLanes<W, L> {
    type Output = W::Output;

    #[inline(always)]
    fn run(self) -> W::Output {
        self.0.run(self.1)
    }
}

impl Lanes for Portable {
    #[inline(always)]
    fn lowest<const COUNT: usize>(self, numbers: &[u32; COUNT]) -> u32 {
        numbers.iter().copied().fold(u32::MAX, u32::min)
    }

    #[inline(always)]
    fn find(self, words: &[u64; 8], mask: u64, key: u64) -> u64 {
        words.iter().copied().find(|word| word & mask == key).unwrap_or(0)
    }
}

#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "vector instructions")]
mod avx2 {
    use std::arch::x86_64::{
        _mm_cvtsi128_si32, _mm_cvtsi128_si64, _mm_min_epu32, _mm_or_si128, _mm_shuffle_epi32,
        _mm_unpackhi_epi64, _mm256_and_si256, _mm256_castsi256_si128, _mm256_cmpeq_epi64,
        _mm256_extracti128_si256, _mm256_loadu_si256, _mm256_min_epu32, _mm256_or_si256,
        _mm256_set1_epi32, _mm256_set1_epi64x, _mm256_setzero_si256,
    };

    use super::{Avx2, Lanes};

    impl Lanes for Avx2 {
        #[inline(always)]
        fn lowest<const COUNT: usize>(self, numbers: &[u32; COUNT]) -> u32 {
            // SAFETY: `self` proves that the processor has AVX2.
            unsafe { lowest(numbers.as_chunks().0) }
        }

        #[inline(always)]
        fn find(self, words: &[u64; 8], mask: u64, key: u64) -> u64 {
            // SAFETY: as above.
            unsafe { find(words, mask, key) }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn lowest(eights: &[[u32; 8]]) -> u32 {
        let mut lowest = _mm256_set1_epi32(-1);
        for eight in eights {
            // SAFETY: eight numbers are 32 bytes, and the load needs no alignment.
            let eight = unsafe { _mm256_loadu_si256(eight.as_ptr().cast()) };
            lowest = _mm256_min_epu32(lowest, eight);
        }
        // The halves are compared until one number is left: eight, four, two, one. The shuffles
        // exchange the two halves of four numbers, then the two numbers of each half.
        let low = _mm256_castsi256_si128(lowest);
        let four = _mm_min_epu32(low, _mm256_extracti128_si256::<1>(lowest));
        let two = _mm_min_epu32(four, _mm_shuffle_epi32::<0b01_00_11_10>(four));
        let one = _mm_min_epu32(two, _mm_shuffle_epi32::<0b10_11_00_01>(two));
        _mm_cvtsi128_si32(one).cast_unsigned()
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn find(words: &[u64; 8], mask: u64, key: u64) -> u64 {
        let mask = _mm256_set1_epi64x(mask.cast_signed());
        let key = _mm256_set1_epi64x(key.cast_signed());
        let mut hit = _mm256_setzero_si256();
        for four in words.as_chunks::<4>().0 {
            // SAFETY: four words are 32 bytes, and the load needs no alignment.
            let words = unsafe { _mm256_loadu_si256(four.as_ptr().cast()) };
            // Words that differ become zero, so `or` collects the one that equals, without a
            // branch.
            let equal = _mm256_cmpeq_epi64(_mm256_and_si256(words, mask), key);
            hit = _mm256_or_si256(hit, _mm256_and_si256(words, equal));
        }
        let low = _mm256_castsi256_si128(hit);
        let two = _mm_or_si128(low, _mm256_extracti128_si256::<1>(hit));
        let one = _mm_or_si128(two, _mm_unpackhi_epi64(two, two));
        _mm_cvtsi128_si64(one).cast_unsigned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    struct Lowest<'a>(&'a [u32; 16]);

    impl LaneWork for Lowest<'_> {
        type Output = u32;

        #[inline(always)]
        fn run(self, lanes: impl Lanes) -> u32 {
            lanes.lowest(self.0)
        }
    }

    struct Find<'a>(&'a [u64; 8], u64, u64);

    impl LaneWork for Find<'_> {
        type Output = u64;

        #[inline(always)]
        fn run(self, lanes: impl Lanes) -> u64 {
            lanes.find(self.0, self.1, self.2)
        }
    }

    proptest! {
        #[test]
        fn vector_instructions_equal_portable_code(
            numbers in any::<[u32; 16]>(),
            words in any::<[u64; 8]>(),
            at in 0usize..8,
            bits in 8u32..60,
        ) {
            let mask = (1 << bits) - 1;
            let mut words = words;
            for (number, word) in (0..).zip(&mut words) {
                *word = *word & !7 | number;
            }
            for level in SimdLevel::all() {
                prop_assert_eq!(run_on(level, Lowest(&numbers)), Portable.lowest(&numbers));
                for key in [words[at] & mask, 1 << bits] {
                    let fast = run_on(level, Find(&words, mask, key));
                    prop_assert_eq!(fast, Portable.find(&words, mask, key));
                }
            }
        }
    }
}
