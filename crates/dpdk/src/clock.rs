//! The time-stamp counter.

use crate::ffi;

/// Cycles of the time-stamp counter (the virtual counter on aarch64).
#[inline(always)]
#[must_use]
pub fn tsc() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction, and user space may use it.
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
    #[cfg(target_arch = "aarch64")]
    {
        let ticks: u64;
        // SAFETY: reads a counter that Linux opens to user space.
        unsafe {
            std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack));
        }
        ticks
    }
}

/// Cycles per second of [`tsc`], as EAL measured it; 0 before [`Eal::init`](crate::Eal::init).
#[must_use]
pub fn tsc_hz() -> u64 {
    // SAFETY: reads a variable that EAL sets once.
    unsafe { ffi::rte_get_tsc_hz() }
}
