//! Code compiled several times: for any processor, and for the wider instructions of newer ones.
//!
//! What is to be compiled is a [`Work`]. Which of its forms runs is decided when it runs.

/// Something to do that wider instructions make faster.
pub(crate) trait Work {
    /// What comes of it.
    type Output;

    /// Do it. Must be `#[inline(always)]`, and what it calls inside loops as well, so that it is
    /// compiled for the instructions of the caller.
    fn run(self) -> Self::Output;
}

/// Do the work with the widest instructions that this processor has.
#[inline]
pub(crate) fn run<W: Work>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512vl") && is_x86_feature_detected!("bmi2") {
            #[expect(unsafe_code, reason = "merging takes half the time with these instructions")]
            // SAFETY: the processor has these instructions; all that have `avx512vl` have `avx512f`.
            return unsafe { x86_64::avx512(work) };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") {
            #[expect(unsafe_code, reason = "as above")]
            // SAFETY: the processor has these instructions.
            return unsafe { x86_64::avx2(work) };
        }
    }
    work.run()
}

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use super::Work;

    #[target_feature(enable = "avx512f,avx512vl,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn avx512<W: Work>(work: W) -> W::Output {
        work.run()
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn avx2<W: Work>(work: W) -> W::Output {
        work.run()
    }
}
