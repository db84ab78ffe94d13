//! What bridges have learned.

use forward::bridge::{LearnReceiver, MacEntry, MacTable};
use forward::state::Interfaces;

/// Addresses that a bridge's worker has seen, taken in one step.
const LEARNED: usize = 4096;

/// The stations behind the members of all bridges.
pub(crate) struct Bridges {
    macs: MacTable,
    /// What bridges have seen, by worker.
    learned: Vec<LearnReceiver>,
    /// The second in which learned addresses were last aged.
    aged: u32,
}

impl Bridges {
    pub(crate) fn new(macs: MacTable, learned: Vec<LearnReceiver>) -> Self {
        Self { macs, learned, aged: 0 }
    }

    /// Addresses that are known.
    pub(crate) fn len(&self) -> usize {
        self.macs.entries(0).count()
    }

    /// What a bridge has learned.
    pub(crate) fn learned_by(&self, bridge: u16) -> Vec<MacEntry> {
        self.macs.entries(second()).filter(|entry| entry.key.bridge == bridge).collect()
    }

    /// Enters what bridges have seen, and forgets what they have not seen for long.
    pub(crate) fn learn(&mut self, interfaces: &Interfaces) {
        let second = second();
        for ring in &mut self.learned {
            for _ in 0..LEARNED {
                let Ok(news) = ring.pop() else { break };
                // Seen when that interface was a member still.
                if interfaces.member_of(news.key.bridge, news.interface).is_none() {
                    continue;
                }
                let bridge = interfaces.bridges.get(usize::from(news.key.bridge));
                let limit = bridge.map_or(0, |bridge| bridge.mac_limit);
                self.macs.learn(&news, limit, second);
            }
        }
        if second == self.aged {
            return;
        }
        self.aged = second;
        self.macs.forget(second, |entry| {
            let bridge = interfaces.bridges.get(usize::from(entry.key.bridge));
            bridge.is_none_or(|bridge| entry.age > bridge.ageing)
        });
    }

    /// Members came or went: forgets what was learned behind those that are gone, before their numbers or their
    /// bridge's are another's. [`Self::learn`] comes before, with the interfaces of before.
    pub(crate) fn show_interfaces(&mut self, interfaces: &Interfaces) {
        self.macs.forget(second(), |entry| {
            interfaces.member_of(entry.key.bridge, entry.interface).is_none()
        });
    }
}

/// The second by which learned addresses age: of the time-stamp counter, as on the workers.
fn second() -> u32 {
    (dpdk::tsc() / dpdk::tsc_hz().max(1)) as u32
}

#[cfg(test)]
mod tests;
