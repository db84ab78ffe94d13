//! What a client asks for.

use shm::attach::{Open, PortQueue, Spread, Take};

use crate::Filter;

/// Which packets a client wants, and how. The default: all packets of all ports, taken for itself, flow by flow,
/// one channel, rings of 1,024 slots of 2,048 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Names of ports; none: all that it may use.
    pub ports: Vec<String>,
    /// Whether it gets the packets themselves, copies, or nothing.
    pub take: Take,
    /// How they are spread over channels.
    pub spread: Spread,
    /// Only packets that match.
    pub filter: Filter,
    /// Channels: one for each thread, 1 to 64.
    pub channels: u16,
    /// Slots of each ring: a power of two, from 2 to 1,048,576.
    pub slots: u32,
    /// Bytes of packet that a slot holds: 60 to 16,383. Longer packets take several slots.
    pub capacity: u32,
    /// A receive queue for this client alone, one that its port keeps for clients (`client-queues`). Its packets are
    /// not copied: they stay where the device has put them. It comes whole: `take` must be [`Take::Divert`], `channels`
    /// 1, `ports` and `filter` empty.
    pub queue: Option<PortQueue>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ports: Vec::new(),
            take: Take::Divert,
            spread: Spread::Flow,
            filter: Filter::default(),
            channels: 1,
            slots: 1024,
            capacity: 2048,
            queue: None,
        }
    }
}

impl Options {
    pub(crate) fn request(&self) -> Open {
        Open {
            ports: self.ports.clone(),
            take: self.take,
            spread: self.spread,
            filter: self.filter.clone(),
            channels: self.channels,
            slots: self.slots,
            capacity: self.capacity,
            queue: self.queue.clone(),
        }
    }
}
