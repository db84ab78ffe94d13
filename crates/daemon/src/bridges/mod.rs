//! What bridges have learned.

use forward::bridge::{Learn, MacEntry, MacTable};
use forward::state::Interfaces;

use crate::workers::Inbox;

/// Addresses taken in in one step, and of these from one worker.
const STEP: usize = 4096;
const SHARE: usize = 1024;

/// The stations behind the members of all bridges.
pub(crate) struct Bridges {
    macs: MacTable,
    /// What bridges have seen.
    learned: Inbox<Learn>,
    /// The second in which learned addresses were last aged.
    aged: u32,
}

impl Bridges {
    pub(crate) fn new(macs: MacTable, learned: Inbox<Learn>) -> Self {
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

    /// Enters some of what bridges have seen, and forgets what they have not seen for long. Returns whether there is more to
    /// enter.
    pub(crate) fn learn(&mut self, interfaces: &Interfaces) -> bool {
        let more = self.enter(interfaces, STEP);
        self.age(interfaces);
        more
    }

    /// Enters at most `step` of what bridges have seen.
    fn enter(&mut self, interfaces: &Interfaces, step: usize) -> bool {
        let second = second();
        let Self { macs, learned, .. } = self;
        learned.take(step, SHARE, |_, news| {
            // Seen when that interface was a member still.
            if interfaces.member_of(news.key.bridge, news.interface).is_some() {
                let bridge = interfaces.bridges.get(usize::from(news.key.bridge));
                let limit = bridge.map_or(0, |bridge| bridge.mac_limit);
                macs.learn(&news, limit, second);
            }
        })
    }

    fn age(&mut self, interfaces: &Interfaces) {
        let second = second();
        if second == self.aged {
            return;
        }
        self.aged = second;
        self.macs.forget(second, |entry| {
            let bridge = interfaces.bridges.get(usize::from(entry.key.bridge));
            bridge.is_none_or(|bridge| entry.age > bridge.ageing)
        });
    }

    /// Enters all that bridges have seen so far, before their members change.
    pub(crate) fn learn_all(&mut self, interfaces: &Interfaces) {
        self.enter(interfaces, usize::MAX);
        self.age(interfaces);
    }

    /// Members came or went: forgets what was learned behind those that are gone, before their numbers or their
    /// bridge's are another's. [`Self::learn_all`] comes before, with the interfaces of before.
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
