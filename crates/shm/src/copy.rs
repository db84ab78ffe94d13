//! Copying out of memory that another process may be writing at this very moment.

/// Copies `to.len()` bytes from `from`. If the other process writes meanwhile, what arrives is a mixture
/// of old and new, and nothing else goes wrong: the compiler sees neither the loads nor a way to repeat
/// them.
///
/// # Safety
/// `from` is valid for reads of `to.len()` bytes, which do not overlap `to`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub unsafe fn read_shared(from: *const u8, to: &mut [u8]) {
    use core::arch::asm;
    let length = to.len();
    if length < 16 {
        // SAFETY: as for this function.
        return unsafe { read_bytes(from, to) };
    }
    // Sixteen bytes at a time; the last sixteen may overlap those before.
    // SAFETY: reads lie within `from..from+length`, writes within `to`: the loop ends when less than
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
            to = inout(reg) to.as_mut_ptr() => _,
            last = in(reg) from.add(length - 16),
            end = in(reg) to.as_mut_ptr().add(length - 16),
            word = out(xmm_reg) _,
            options(nostack),
        );
    }
}

/// As above, for architectures without a faster way of their own.
///
/// # Safety
/// As above.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub unsafe fn read_shared(from: *const u8, to: &mut [u8]) {
    // Packets begin four bytes into a cache line, so words of four are aligned.
    let words = if from.align_offset(4) == 0 { to.len() / 4 } else { 0 };
    for word in 0..words {
        // SAFETY: within the `to.len()` bytes, aligned as just checked.
        let value = unsafe { from.add(4 * word).cast::<u32>().read_volatile() };
        if let Some(target) = to.get_mut(4 * word..4 * word + 4) {
            target.copy_from_slice(&value.to_ne_bytes());
        }
    }
    if let Some(rest) = to.get_mut(4 * words..) {
        // SAFETY: the bytes behind the words, valid as for this function.
        unsafe { read_bytes(from.add(4 * words), rest) };
    }
}

/// # Safety
/// As above.
#[inline(always)]
unsafe fn read_bytes(from: *const u8, to: &mut [u8]) {
    for (offset, byte) in to.iter_mut().enumerate() {
        // SAFETY: `offset` is less than `to.len()`, for which `from` is valid.
        *byte = unsafe { from.add(offset).read_volatile() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_every_length_at_every_alignment() {
        let source: Vec<u8> = (0..=255).cycle().take(2000).collect();
        for begin in 0..20 {
            for length in (0..300).chain([1500, 1900]) {
                let mut target = vec![0xaa; length + 2];
                // SAFETY: `begin + length` is less than the source's length.
                unsafe { read_shared(source.as_ptr().add(begin), &mut target[1..=length]) };
                assert_eq!(target[1..=length], source[begin..begin + length]);
                assert_eq!((target[0], target[length + 1]), (0xaa, 0xaa));
            }
        }
    }
}
