//! What crossed the link, by direction and purpose.

use std::ops::{Add, AddAssign};

use super::pcie::{Kind, UNIT};

/// What crossed in one direction.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Crossed {
    /// TLPs that write.
    pub(super) writes: u64,
    /// TLPs that ask for data.
    pub(super) reads: u64,
    /// TLPs that bring what was asked for.
    pub(super) completions: u64,
    /// Bytes, overhead included.
    pub(super) bytes: u64,
    /// Units of 64 B, each TLP taking whole ones: how the document counts.
    pub(super) units: u64,
}

impl Crossed {
    /// `count` TLPs of `bytes` each, overhead included.
    pub(super) fn tlps(kind: Kind, count: u64, bytes: u64) -> Self {
        let of = |this: Kind| if this == kind { count } else { 0 };
        Self {
            writes: of(Kind::Write),
            reads: of(Kind::Read),
            completions: of(Kind::Completion),
            bytes: count * bytes,
            units: count * bytes.div_ceil(UNIT),
        }
    }
}

impl Add for Crossed {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            writes: self.writes + other.writes,
            reads: self.reads + other.reads,
            completions: self.completions + other.completions,
            bytes: self.bytes + other.bytes,
            units: self.units + other.units,
        }
    }
}

/// Both directions.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Traffic {
    /// From the device to the host.
    pub(super) up: Crossed,
    /// From the host to the device.
    pub(super) down: Crossed,
}

impl Add for Traffic {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { up: self.up + other.up, down: self.down + other.down }
    }
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// What a transfer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The driver says that there are descriptors.
    Doorbell,
    /// The device fetches them.
    Descriptors,
    /// The packet, and in the self-described way what is said about it.
    Packet,
    /// The driver learns that the device is done: a descriptor written back, or a register read.
    Report,
}

/// All that crossed for some packets.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ledger {
    pub(super) doorbell: Traffic,
    pub(super) descriptors: Traffic,
    pub(super) packet: Traffic,
    pub(super) report: Traffic,
}

impl Ledger {
    /// The entry of a purpose.
    pub(super) fn entry(&mut self, purpose: Purpose) -> &mut Traffic {
        match purpose {
            Purpose::Doorbell => &mut self.doorbell,
            Purpose::Descriptors => &mut self.descriptors,
            Purpose::Packet => &mut self.packet,
            Purpose::Report => &mut self.report,
        }
    }

    /// All purposes together.
    pub(super) fn total(&self) -> Traffic {
        self.doorbell + self.descriptors + self.packet + self.report
    }

    /// What the document counts: bytes in units of 64 B for the packet and what is reported of it.
    /// Doorbells and descriptors, which both ways fetch in bulk, are left out.
    pub(super) fn document(&self) -> u64 {
        let Traffic { up, down } = self.packet + self.report;
        (up.units + down.units) * UNIT
    }
}

impl AddAssign for Ledger {
    fn add_assign(&mut self, other: Self) {
        self.doorbell += other.doorbell;
        self.descriptors += other.descriptors;
        self.packet += other.packet;
        self.report += other.report;
    }
}
