//! A packet, as the interface has it and as Rust likes it.

use std::marker::PhantomData;

/// A received packet: `struct millrace_function_packet`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct RawPacket {
    /// Its first byte.
    pub data: *mut u8,
    /// Bytes.
    pub length: u32,
    /// The port where it came in: its number, as `GET /v1/ports` has it.
    pub port: u16,
    /// Bytes that are free ahead of it.
    pub headroom: u16,
    /// Bytes that are free behind it.
    pub tailroom: u16,
    /// [`Verdict::code`].
    pub verdict: i32,
}

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on, to the next function and then into the graph.
    Pass,
    /// It is dropped, and counted as `function`.
    Drop,
    /// It leaves by the port of this number.
    Transmit(u16),
}

/// Codes from here on are ports.
const PORTS: i32 = 256;

impl Verdict {
    /// As the interface has it.
    #[must_use]
    pub fn code(self) -> i32 {
        match self {
            Self::Pass => 0,
            Self::Drop => 1,
            Self::Transmit(port) => PORTS + i32::from(port),
        }
    }

    /// Of its code. `None`: there is no such.
    #[must_use]
    pub fn of(code: i32) -> Option<Self> {
        match code {
            0 => Some(Self::Pass),
            1 => Some(Self::Drop),
            _ => u16::try_from(code.checked_sub(PORTS)?).ok().map(Self::Transmit),
        }
    }
}

/// A received packet, from its Ethernet header on.
#[derive(Debug)]
pub struct Packet<'a> {
    raw: &'a mut RawPacket,
    bytes: PhantomData<&'a mut [u8]>,
}

impl<'a> Packet<'a> {
    /// Of what the daemon gave.
    ///
    /// # Safety
    /// `raw.data` leads to `raw.length` bytes that nobody else uses for `'a`, with `headroom` and `tailroom`
    /// bytes around them, of which the same is true: all of one allocation.
    pub unsafe fn new(raw: &'a mut RawPacket) -> Self {
        Self { raw, bytes: PhantomData }
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `new` says so, and every change here keeps it so.
        unsafe { std::slice::from_raw_parts(self.raw.data, self.raw.length as usize) }
    }

    /// Its bytes, to change.
    #[must_use]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.raw.data, self.raw.length as usize) }
    }

    /// Number of the port where it came in.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.raw.port
    }

    /// Grows it by `count` bytes at its front, whose content is what was there. `false`, and no change: there
    /// is no room.
    #[must_use]
    pub fn prepend(&mut self, count: u16) -> bool {
        let fits = count <= self.raw.headroom;
        if fits {
            self.raw.headroom -= count;
            self.raw.length += u32::from(count);
            // SAFETY: the headroom lies ahead of the packet, in the same buffer.
            self.raw.data = unsafe { self.raw.data.sub(usize::from(count)) };
        }
        fits
    }

    /// Takes `count` bytes off its front. `false`, and no change: it has not so many.
    #[must_use]
    pub fn adjust(&mut self, count: u16) -> bool {
        let fits = u32::from(count) < self.raw.length;
        if fits {
            self.raw.headroom = self.raw.headroom.saturating_add(count);
            self.raw.length -= u32::from(count);
            // SAFETY: the packet has more bytes than that.
            self.raw.data = unsafe { self.raw.data.add(usize::from(count)) };
        }
        fits
    }

    /// Gives it `length` bytes: takes some off its end, or adds what was there. `false`, and no change: there
    /// is no room, or nothing would be left.
    #[must_use]
    pub fn resize(&mut self, length: u32) -> bool {
        let most = self.raw.length + u32::from(self.raw.tailroom);
        let fits = length > 0 && length <= most;
        if fits {
            self.raw.tailroom = u16::try_from(most - length).unwrap_or(u16::MAX);
            self.raw.length = length;
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_and_shrinks_within_its_buffer() {
        let mut buffer = *b"0123456789";
        let data = buffer.as_mut_ptr().wrapping_add(4);
        let mut raw = RawPacket { data, length: 3, port: 7, headroom: 4, tailroom: 3, verdict: 0 };
        // SAFETY: four bytes before and three behind are the buffer's.
        let mut packet = unsafe { Packet::new(&mut raw) };
        assert_eq!((packet.bytes(), packet.port()), (&b"456"[..], 7));
        assert!(!packet.prepend(5) && packet.prepend(4));
        assert_eq!(packet.bytes(), b"0123456");
        assert!(!packet.resize(11) && packet.resize(10));
        assert!(!packet.adjust(10) && packet.adjust(9) && packet.prepend(1));
        packet.bytes_mut().fill(b'x');
        assert!(packet.resize(1) && !packet.resize(0));
        assert_eq!(packet.bytes(), b"x");
        assert_eq!(&buffer, b"01234567xx");
    }

    #[test]
    fn codes_go_both_ways() {
        for verdict in
            [Verdict::Pass, Verdict::Drop, Verdict::Transmit(0), Verdict::Transmit(65_535)]
        {
            assert_eq!(Verdict::of(verdict.code()), Some(verdict));
        }
        for code in [-1, 2, 255, 65_792, i32::MIN, i32::MAX] {
            assert_eq!(Verdict::of(code), None);
        }
    }
}
