//! What ports and interfaces are called: by a number, and by which of those that had it is meant.
//!
//! Numbers are few and are given out again. A name that outlives what it was given for, in a packet on its way, in a table that
//! a worker reads, in what a client says, must not come to mean what has the number next: so it says the generation, too, and
//! whoever looks something up by a name compares all of it.

use std::fmt;

use dpdk::Buffer;

/// A port, by the number of its device (8 bits) and how often that number had been given out before (8 bits, beginning anew
/// after 256 times).
///
/// Packets carry it where DPDK puts the number of the device, so that of the first port with a number is that number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct PortId(u16);

impl PortId {
    /// Numbers of devices: more than DPDK has (`RTE_MAX_ETHPORTS`).
    pub const NUMBERS: usize = 1 << 8;

    /// No port: that of packets that came in by none.
    pub const NONE: Self = Self(u16::MAX);

    /// The first port with that number; [`Self::NONE`] where there is no such number.
    #[inline]
    #[must_use]
    pub const fn new(number: u16) -> Self {
        Self::with_generation(number, 0)
    }

    /// The port that had that number after so many others.
    #[inline]
    #[must_use]
    pub const fn with_generation(number: u16, generation: u8) -> Self {
        if number as usize >= Self::NUMBERS {
            return Self::NONE;
        }
        Self((generation as u16) << 8 | number)
    }

    /// The port that was written as this.
    #[inline(always)]
    #[must_use]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// All of it as a number.
    #[inline(always)]
    #[must_use]
    pub const fn to_bits(self) -> u16 {
        self.0
    }

    /// The port that a packet came in by, or counts as having come in by.
    #[inline(always)]
    #[must_use]
    pub fn of(buffer: &Buffer) -> Self {
        Self(buffer.port())
    }

    /// Lets a packet count as having come in by this port.
    #[inline(always)]
    pub fn mark(self, buffer: &mut Buffer) {
        buffer.set_port(self.0);
    }

    /// Its place in what is kept by port.
    #[inline(always)]
    #[must_use]
    pub const fn number(self) -> usize {
        (self.0 & 0xff) as usize
    }

    /// How often its number had been given out before.
    #[inline]
    #[must_use]
    pub const fn generation(self) -> u8 {
        (self.0 >> 8) as u8
    }

    /// Whether packets that its device has received say it as they are.
    #[inline(always)]
    pub(crate) const fn is_first(self) -> bool {
        self.generation() == 0
    }
}

impl Default for PortId {
    fn default() -> Self {
        Self::NONE
    }
}

impl fmt::Display for PortId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NONE => write!(f, "none"),
            id if id.is_first() => write!(f, "{}", id.number()),
            id => write!(f, "{} (generation {})", id.number(), id.generation()),
        }
    }
}

impl fmt::Debug for PortId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "port {self}")
    }
}

/// An interface (port, VLAN sub-interface or bridge), by its number (16 bits) and how many names had that number before
/// (16 bits, beginning anew after 65,536).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct InterfaceId(u32);

impl InterfaceId {
    /// No interface: that of packets that came in on none, as a stack's.
    pub const NONE: Self = Self(u32::MAX);

    /// The first interface with that number.
    #[inline]
    #[must_use]
    pub const fn new(number: u16) -> Self {
        Self::with_generation(number, 0)
    }

    /// The interface that has that number after so many others.
    #[inline(always)]
    #[must_use]
    pub const fn with_generation(number: u16, generation: u16) -> Self {
        Self((number as u32) << 16 | generation as u32)
    }

    /// The interface that was written as this.
    #[inline(always)]
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// All of it as a number.
    #[inline(always)]
    #[must_use]
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// Its place in what is kept by interface.
    #[inline(always)]
    #[must_use]
    pub const fn number(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// How many names had its number before.
    #[inline(always)]
    #[must_use]
    pub const fn generation(self) -> u16 {
        self.0 as u16
    }
}

impl Default for InterfaceId {
    fn default() -> Self {
        Self::NONE
    }
}

impl fmt::Display for InterfaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NONE => write!(f, "none"),
            id if id.generation() == 0 => write!(f, "{}", id.number()),
            id => write!(f, "{} (generation {})", id.number(), id.generation()),
        }
    }
}

impl fmt::Debug for InterfaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "interface {self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_with_one_number_differ_by_generation() {
        let (first, second) = (PortId::new(3), PortId::with_generation(3, 1));
        assert_eq!((first.number(), second.number()), (3, 3));
        assert_ne!(first, second);
        assert_eq!(first.to_bits(), 3, "as the device says it");
        assert_eq!(PortId::from_bits(second.to_bits()), second);
        assert!(first.is_first() && !second.is_first());
        assert_eq!(PortId::new(256), PortId::NONE);
        assert_eq!(format!("{first:?}, {second:?}"), "port 3, port 3 (generation 1)");
    }

    #[test]
    fn interfaces_are_in_the_order_of_their_numbers() {
        let id = InterfaceId::with_generation;
        let sorted = [id(0, 0), id(0, 9), id(1, 0), id(2, 3), id(0xffff, 1), InterfaceId::NONE];
        assert!(sorted.is_sorted());
        let (number, generation) = (sorted[3].number(), sorted[3].generation());
        assert_eq!((number, generation), (2, 3));
        assert_eq!(InterfaceId::from_bits(sorted[3].to_bits()), sorted[3]);
    }
}
