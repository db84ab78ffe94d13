//! Copying out of memory that another process may be writing at this very moment, and into memory that it may be
//! reading or writing.
//!
//! To Rust such an access is a data race, which is undefined. So the compiler is not to see it as one: what copies is
//! assembly (elsewhere, volatile loads and stores), of which it knows nothing but which bytes of our own are changed. What
//! arrives may be a mixture of old and new; it is looked at only where it has arrived.

use core::mem::MaybeUninit;

/// Copies `to.len()` bytes from `from`. If the other process writes meanwhile, what arrives is a mixture
/// of old and new, and nothing else goes wrong: the compiler sees neither the loads nor a way to repeat
/// them.
///
/// # Safety
/// `from` is valid for reads of `to.len()` bytes, which do not overlap `to`.
#[inline(always)]
pub unsafe fn read_shared(from: *const u8, to: &mut [u8]) {
    // SAFETY: `to` is the caller's alone, `from` is valid as for this function.
    unsafe { copy_shared(from, to.as_mut_ptr(), to.len()) };
}

/// The same, to memory that need not be initialised before, and is so afterwards.
///
/// # Safety
/// As for [`read_shared`].
#[inline(always)]
pub(crate) unsafe fn read_shared_into(from: *const u8, to: &mut [MaybeUninit<u8>]) {
    // SAFETY: as above.
    unsafe { copy_shared(from, to.as_mut_ptr().cast(), to.len()) };
}

/// Copies `from` to `to`. If the other process looks meanwhile it sees a mixture, if it writes what stays is one; nothing is
/// read back here.
///
/// # Safety
/// `to` is valid for writes of `from.len()` bytes, which do not overlap `from`.
#[inline(always)]
pub(crate) unsafe fn write_shared(from: &[u8], to: *mut u8) {
    // SAFETY: `from` is this process's own, `to` is valid as for this function.
    unsafe { copy_shared(from.as_ptr(), to, from.len()) };
}

/// Longest copy that is made here; beyond, the C library's uses wider registers. On an AMD EPYC (Zen 3), TSC cycles for a
/// copy within the cache, here and there: 4 and 7 with 60 bytes, 7 and 6 with 128, 28 and 23 with 576, 71 and 45 with 1,514.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const SHORT: usize = 128;

/// # Safety
/// `from` is valid for reads and `to` for writes of `length` bytes, and they do not overlap.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn copy_shared(from: *const u8, to: *mut u8, length: usize) {
    use core::arch::asm;
    if length < 16 {
        // SAFETY: as for this function.
        return unsafe { copy_bytes(from, to, length) };
    }
    if length > SHORT {
        // SAFETY: as for this function; `memcpy` is called as the ABI says, all that it may change is named.
        return unsafe {
            asm!(
                "call {memcpy}",
                memcpy = sym libc::memcpy,
                inout("rdi") to => _,
                inout("rsi") from => _,
                inout("rdx") length => _,
                clobber_abi("C"),
            );
        };
    }
    // Sixteen bytes at a time; the last sixteen may overlap those before.
    // SAFETY: reads lie within `from..from+length`, writes within `to..to+length`: the loop ends when less than
    // sixteen bytes are left, and the last step begins sixteen before the end, which `length` allows.
    unsafe {
        asm!(
            "2:",
            "movups {word}, [{from}]",
            "movups [{to}], {word}",
            "add {from}, 16",
            "add {to}, 16",
            "cmp {from}, {last}",
            "jb 2b",
            "movups {word}, [{last}]",
            "movups [{end}], {word}",
            from = inout(reg) from => _,
            to = inout(reg) to => _,
            last = in(reg) from.add(length - 16),
            end = in(reg) to.add(length - 16),
            word = out(xmm_reg) _,
            options(nostack),
        );
    }
}

/// As above, for architectures without a faster way of their own, and for Miri.
///
/// # Safety
/// As above.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline(always)]
unsafe fn copy_shared(from: *const u8, to: *mut u8, length: usize) {
    // Packets begin four bytes into a cache line, so words of four are aligned where the other side is, too.
    let aligned = from.align_offset(4) == 0 && to.align_offset(4) == 0;
    let words = if aligned { length / 4 } else { 0 };
    for word in 0..words {
        // SAFETY: within the `length` bytes, aligned as just checked.
        unsafe {
            let value = from.cast::<u32>().add(word).read_volatile();
            to.cast::<u32>().add(word).write_volatile(value);
        }
    }
    // SAFETY: the bytes behind the words, valid as for this function.
    unsafe { copy_bytes(from.add(4 * words), to.add(4 * words), length - 4 * words) };
}

/// # Safety
/// As above.
#[inline(always)]
unsafe fn copy_bytes(from: *const u8, to: *mut u8, length: usize) {
    for offset in 0..length {
        // SAFETY: `offset` is less than `length`, for which both are valid.
        unsafe { to.add(offset).write_volatile(from.add(offset).read_volatile()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Miri takes a thousand times as long.
    const BEGINS: usize = if cfg!(miri) { 3 } else { 20 };
    const LENGTHS: usize = if cfg!(miri) { 40 } else { 300 };

    #[test]
    fn copies_every_length_at_every_alignment() {
        let source: Vec<u8> = (0..=255).cycle().take(2000).collect();
        for begin in 0..BEGINS {
            for length in (0..LENGTHS).chain([1500, 1900]) {
                let expected = &source[begin..begin + length];
                let frame = |inner: &[u8]| [&[0xaa], inner, &[0xaa]].concat();
                let mut target = vec![0xaa; length + 2];
                // SAFETY: `begin + length` is less than the source's length.
                unsafe { read_shared(source.as_ptr().add(begin), &mut target[1..=length]) };
                assert_eq!(target, frame(expected));
                let mut target = vec![0xaa; length + 2];
                // SAFETY: the target has room for `length` bytes behind its first.
                unsafe { write_shared(expected, target.as_mut_ptr().add(1)) };
                assert_eq!(target, frame(expected));
                let mut target = vec![MaybeUninit::uninit(); length];
                // SAFETY: as above; then all of the target is initialised.
                let read = unsafe {
                    read_shared_into(source.as_ptr().add(begin), &mut target);
                    target.iter().map(|byte| byte.assume_init()).collect::<Vec<u8>>()
                };
                assert_eq!(read, expected);
            }
        }
    }
}
