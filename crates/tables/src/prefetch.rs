//! Asking the cache for a line ahead of its use.

/// Bytes of a cache line.
const LINE: usize = 64;

/// Starts loading all cache lines of `value` into all levels; no effect where there is no such instruction. For a
/// batch: ask for what comes some steps later, then take this step.
#[inline(always)]
pub fn prefetch<T: ?Sized>(value: &T) {
    let start = std::ptr::from_ref(value).cast::<u8>();
    for offset in (0..size_of_val(value).max(1)).step_by(LINE) {
        prefetch_line(start.wrapping_add(offset));
    }
}

/// Starts loading the cache line at `word`, which may be any address.
#[inline(always)]
pub(crate) fn prefetch_line<T>(word: *const T) {
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
