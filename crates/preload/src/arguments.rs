//! What `va_start` makes of the arguments of a function that is defined with as many as programs give (see `hooks::lists`).

use std::ffi::c_void;

/// Registers for numbers that are passed to a variadic function, as `va_arg` finds them.
#[cfg(target_arch = "x86_64")]
pub(crate) const INTEGERS: usize = 6;
#[cfg(target_arch = "aarch64")]
pub(crate) const INTEGERS: usize = 8;

/// Where they are kept: what the first 8 registers for floating-point numbers hold lies behind.
#[repr(C, align(16))]
pub(crate) struct Saved {
    pub(crate) integers: [usize; INTEGERS],
    pub(crate) floats: [[f64; 2]; 8],
}

/// `__va_list_tag` (System V AMD64 ABI 3.5.7).
#[cfg(target_arch = "x86_64")]
#[repr(C)]
pub(crate) struct List {
    integers_at: u32,
    floats_at: u32,
    overflow: *const c_void,
    saved: *const Saved,
}

/// `struct __va_list` (AAPCS64, appendix A).
#[cfg(target_arch = "aarch64")]
#[repr(C)]
pub(crate) struct List {
    overflow: *const c_void,
    integers_end: *const c_void,
    floats_end: *const c_void,
    integers_at: i32,
    floats_at: i32,
}

/// Arguments that the caller has passed on the stack.
#[repr(C, align(16))]
pub(crate) struct Overflow<const COUNT: usize>(pub(crate) [usize; COUNT]);

impl List {
    /// Of a function that has `named` arguments ahead of them.
    pub(crate) fn new<const N: usize>(saved: &Saved, stack: &Overflow<N>, named: usize) -> Self {
        let overflow = stack.0.as_ptr().cast();
        #[cfg(target_arch = "x86_64")]
        return Self {
            integers_at: (named * 8) as u32,
            floats_at: (INTEGERS * 8) as u32,
            overflow,
            saved,
        };
        #[cfg(target_arch = "aarch64")]
        return Self {
            overflow,
            integers_end: saved.integers.as_ptr_range().end.cast(),
            floats_end: saved.floats.as_ptr_range().end.cast(),
            integers_at: -(((INTEGERS - named) * 8) as i32),
            floats_at: -128,
        };
    }
}
