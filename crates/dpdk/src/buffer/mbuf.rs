//! One segment: where its bytes lie, and the room behind them.

use crate::ffi::Mbuf;

impl Mbuf {
    /// Where the segment's bytes start.
    #[inline(always)]
    pub(crate) fn start(&self) -> *const u8 {
        self.buf_addr.wrapping_add(usize::from(self.data_off))
    }

    /// The segment's bytes.
    #[inline(always)]
    pub(crate) fn data(&self) -> &[u8] {
        // SAFETY: DPDK and the setters of `Buffer` keep data_off + data_len <= buf_len, and
        // buf_addr points at buf_len bytes of the pool's memory that belong to this segment. Where it
        // points at memory of others, `SharedBuffer` has the segment and never asks for this.
        unsafe { std::slice::from_raw_parts(self.start(), usize::from(self.data_len)) }
    }

    /// The segment's bytes, to change.
    #[inline(always)]
    pub(crate) fn data_mut(&mut self) -> &mut [u8] {
        let start = self.start().cast_mut();
        // SAFETY: as in `data`, and `&mut self` excludes other references to the segment.
        unsafe { std::slice::from_raw_parts_mut(start, usize::from(self.data_len)) }
    }

    /// Free bytes after the segment's data.
    pub(crate) fn room(&self) -> usize {
        usize::from(self.buf_len)
            .saturating_sub(usize::from(self.data_off) + usize::from(self.data_len))
    }
}
