//! Asking the cache for a line ahead of its use.

/// Starts loading the cache line at `word`, which may be any address, into all levels; no effect where
/// there is no such instruction.
#[inline(always)]
pub(crate) fn prefetch<T>(word: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults and changes no state of the program; SSE is part of x86-64.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(word.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a prefetch never faults and changes no state of the program.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{0}]", in(reg) word, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = word;
}
