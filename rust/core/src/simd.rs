//! Which wide instructions are used: the widest that this processor has, unless others are asked for.
//!
//! Results are the same with all of them. To ask for others is for tests, and for finding out what
//! the wide ones bring.

use std::sync::OnceLock;

use crate::error::{Error, Result};
use crate::pretokenize::vectors;

/// What was asked for, if anything was.
static ASKED: OnceLock<&'static str> = OnceLock::new();

/// The names of the instructions that this processor has, the widest first: `"avx512"`, `"avx2"`,
/// `"neon"`, and always `"portable"`, which are none in particular.
pub fn available() -> Vec<&'static str> {
    vectors()
}

/// Use these instructions for all tokenizers that are made from now on in this process.
///
/// Fails with [`Error::Simd`] if this processor does not have them, and if others were asked for
/// before.
///
/// ```
/// bytepair::simd::only("portable")?;
/// let splitter = bytepair::Splitter::new(&bytepair::Pattern::new("gpt2"))?;
/// assert_eq!(splitter.tier(), "portable");
/// assert!(bytepair::simd::only("mmx").is_err());
/// # Ok::<(), bytepair::Error>(())
/// ```
pub fn only(name: &str) -> Result<()> {
    let available = available();
    let known = available.iter().find(|&&known| known == name);
    let asked = known.map(|known| *ASKED.get_or_init(|| known));
    if asked == Some(name) {
        return Ok(());
    }
    let available = asked.map_or(available, |asked| vec![asked]).join(", ");
    let reason = format!("the instructions {name:?} cannot be used; here these can: {available}");
    Err(Error::Simd { reason })
}

/// What was asked for, if anything was.
#[inline]
pub(crate) fn asked() -> Option<&'static str> {
    ASKED.get().copied()
}

/// That this processor moves bytes together and apart by one instruction (AVX-512 VBMI2) and multiplies eight words by
/// another (AVX-512 DQ), and nobody asked for others. Made only where that is so.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx512(());

#[cfg(target_arch = "x86_64")]
impl Avx512 {
    #[inline]
    pub(crate) fn detect() -> Option<Self> {
        let has = asked().is_none_or(|asked| asked == "avx512")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vbmi2")
            && is_x86_feature_detected!("popcnt");
        has.then_some(Self(()))
    }
}
