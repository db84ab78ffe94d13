//! How large packets may be on the path: what ICMP tells (RFC 1191, RFC 8201), what time-outs suggest,
//! and what probes find (RFC 4821; RFC 8899 names the parts).

use super::Tcb;
use super::flight::mark;
use super::hot::flag;
use super::state::State;
use crate::fifo::ByteFifo;
use crate::options::PathProbing;
use crate::packet::Sink;
use crate::paths::{self, Limit};
use crate::reason::Reason;
use crate::sequence::Seq;

/// What nearly every path takes: bytes, IPv4 and IPv6 (RFC 4821 7.2 search_low).
const BASE: (u16, u16) = (1024, 1280);
/// Below these a black hole is not suspected any more: bytes, IPv4 and IPv6.
const FLOOR: (u16, u16) = (512, 1280);
/// Time-outs in a row that make a black hole of the path (RFC 4821 7.7).
const TIMEOUTS: u8 = 3;
/// Probes of one size until it is taken for too large (RFC 8899 5.1.2 MAX_PROBES).
const TRIES: u8 = 3;
/// A gain smaller than this is not searched for: bytes.
const WORTH: u16 = 8;
/// Segments behind a probe that show its loss by themselves (RFC 4821 7.4).
const BEHIND: u32 = 3;

/// A search for the largest packet that the path takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Search {
    /// Too large, as far as is known: one byte more than what may be tried (search_high).
    above: u16,
    /// Size of the probe that is under way: bytes; 0: none is.
    probe: u16,
    /// Probes of this size that were lost alone.
    lost: u8,
    /// The largest size was tried: halves are next.
    halves: bool,
    /// Its first sequence number, and the one behind it; without a probe, what must be acknowledged
    /// before the next.
    start: Seq,
    end: Seq,
    /// When what was found is doubted again: ns.
    raise_at: u64,
}

carried!(Search {
    above in 1..=u16::MAX,
    probe,
    lost in 0..=TRIES,
    halves,
    start,
    end,
    raise_at @ time,
});

impl Search {
    /// Whether something in flight must be acknowledged before the next probe. A number of long ago says nothing, however
    /// often sequence numbers have gone round since.
    fn waits(&self, una: Seq, next: Seq) -> bool {
        self.end != una && self.end.within(una, next)
    }
}

impl<F: ByteFifo, S: Sink + ?Sized> Tcb<'_, F, S> {
    fn by_version(&self, (v4, v6): (u16, u16)) -> u16 {
        if self.cold.is_v4() { v4 } else { v6 }
    }

    /// Bytes of a packet that port, peer and options allow.
    fn widest(&self) -> u16 {
        let headers = self.cold.ip_header() + 20;
        let limit = match self.cold.options.mss {
            0 => self.cold.peer_mss,
            limit => limit.min(self.cold.peer_mss),
        };
        self.path_limit().min(limit.saturating_add(headers))
    }

    /// Bytes of a packet that the path takes as it begins.
    pub(super) fn path_limit(&self) -> u16 {
        if self.hot.has(flag::ASIDE) { self.cold.path_mtu } else { self.shared.config.mtu }
    }

    fn search(&mut self) -> &mut Search {
        let above = self.widest().saturating_add(1);
        let (now, end) = (self.now, self.hot.snd_una);
        let fresh = || {
            let raise_at = now.saturating_add(paths::LIFE);
            Box::new(Search { above, probe: 0, lost: 0, halves: false, start: end, end, raise_at })
        };
        self.cold.search.get_or_insert_with(fresh)
    }

    /// The handshake is over. RFC 4821 7.2: begin with what is safe, and search from there.
    pub(super) fn begin_search(&mut self) {
        let always = self.cold.options.path_probing == PathProbing::Always;
        let known = self.cold.path_mtu;
        if !self.cold.options.mtu_discovery {
            return;
        }
        if known < self.widest() {
            // An earlier connection found it.
            self.search().above = known + 1;
        } else if always {
            self.search();
            self.cold.path_mtu = known.min(self.by_version(BASE));
            self.update_mss();
        }
    }

    /// Packets may be `mtu` bytes from now on. What ends a search is remembered.
    fn resize(&mut self, mtu: u16) {
        self.cold.path_mtu = mtu;
        self.update_mss();
        self.remember();
    }

    fn remember(&mut self) {
        let (mtu, widest) = (self.cold.path_mtu, self.widest());
        let Some(search) = &self.cold.search else { return };
        let peer = self.cold.ends().remote.ip();
        let limit = Limit { mtu, narrow: self.hot.has(flag::NARROW) };
        if limit.narrow || mtu < widest && search.above.saturating_sub(mtu) <= WORTH {
            self.shared.paths.learn(peer, limit, self.now);
        } else if mtu >= self.shared.config.mtu {
            self.shared.paths.forget(peer);
        }
    }

    /// ICMP says that the path takes only `mtu` bytes (0: less than now): what is in flight is cut
    /// smaller and sent again.
    pub(super) fn shrink(&mut self, mtu: u16) {
        let probe = self.cold.search.as_ref().map_or(0, |search| search.probe);
        // A router of old that does not say how much: RFC 1191 5 has plateaus.
        let current = self.cold.path_mtu;
        let told = if mtu == 0 { plateau(current.max(probe)) } else { mtu };
        let Limit { mtu, narrow } = Limit::told(self.cold.ends().remote.ip(), told);
        let narrows = narrow && !self.hot.has(flag::NARROW);
        if !self.cold.options.mtu_discovery || !narrows && mtu >= current.max(probe) {
            return self.drop(Reason::IcmpUnmatched);
        }
        if narrows {
            self.hot.set(flag::NARROW | flag::FRAGMENTS);
        }
        let (now, next) = (self.now, self.hot.snd_nxt);
        let search = self.search();
        search.above = mtu + 1;
        (search.probe, search.lost, search.end) = (0, 0, next);
        search.halves = false;
        search.raise_at = now.saturating_add(paths::LIFE);
        if mtu < current {
            self.resize(mtu);
        } else if narrows {
            self.remember();
        }
        // Not a sign of congestion (RFC 1191 6.4): the window stays. What was not to be cut is lost if the path takes less.
        let fits = self.hot.mss.saturating_sub(mtu.saturating_sub(told));
        self.cold.flight.lose_oversized(u32::from(fits));
        self.hot.cwnd = self.hot.cwnd.max(u32::from(self.hot.mss));
        if self.hot.state == State::SynSent && self.hot.snd_nxt != self.cold.iss.add(1) {
            // It was the data of the SYN that did not fit: it goes again without, at once, as in Linux.
            self.repeat_syn();
        }
        self.touch();
    }

    /// A time-out. Several in a row of a large segment: packets of that size may vanish without a word
    /// (RFC 4821 7.7).
    pub(super) fn suspect_black_hole(&mut self) {
        let next = self.hot.snd_nxt;
        if let Some(search) = &mut self.cold.search {
            // What became of a probe cannot be told (7.6.4).
            (search.probe, search.end) = (0, next);
        }
        let options = &self.cold.options;
        let watches = options.mtu_discovery && options.path_probing != PathProbing::Off;
        if !watches || self.cold.tries < TIMEOUTS {
            return;
        }
        let current = self.cold.path_mtu.min(self.widest());
        let (base, floor) = (self.by_version(BASE), self.by_version(FLOOR));
        let smaller = if current > base { base } else { (current / 2).max(floor) };
        let fits = u32::from(self.hot.mss.saturating_sub(current.saturating_sub(smaller)));
        let large = self.cold.flight.sent.front().is_some_and(|sent| sent.data() > fits);
        if smaller >= current || !large {
            return;
        }
        self.shared.counters.black_holes += 1;
        let above = self.widest().saturating_add(1);
        let search = self.search();
        (search.above, search.lost, search.halves) = (above, 0, false);
        self.resize(smaller);
    }

    /// Sends a probe when a search goes on, and nothing speaks against it.
    #[cold]
    pub(super) fn probe_path(&mut self, unsent: u32) {
        let Some(search) = self.cold.search.as_deref().copied() else { return };
        let barred = flag::RECOVERY | flag::LOSS | flag::PROBING;
        let flight = &self.cold.flight;
        let troubled = flight.lost > 0 || flight.sacked > 0 || self.hot.has(barred);
        if troubled || search.probe != 0 || search.waits(self.hot.snd_una, self.hot.snd_nxt) {
            return;
        }
        if search.raise_at <= self.now {
            self.raise();
        }
        let Some(size) = self.next_probe() else { return };
        let data = u32::from(self.hot.mss) + u32::from(size - self.cold.path_mtu);
        let needed = data + BEHIND * u32::from(self.hot.mss);
        let edge = self.hot.snd_una.add(self.hot.snd_wnd);
        let peer = if edge.after(self.hot.snd_nxt) { edge.since(self.hot.snd_nxt) } else { 0 };
        let own = self.hot.cwnd.saturating_sub(self.pipe());
        // More data than that, so that neither the last segment nor the FIN is in it.
        if unsent <= needed || peer < needed || own < data || self.hot.cwnd < needed {
            return;
        }
        let (start, end) = (self.hot.snd_nxt, self.hot.snd_nxt.add(data));
        if self.send_record(end, mark::PATH_PROBE) {
            let search = self.search();
            (search.probe, search.start, search.end) = (size, start, end);
            self.shared.counters.path_probes += 1;
        }
    }

    /// What was found may no longer hold (RFC 1191 6.3, RFC 8899 PMTU_RAISE_TIMER).
    fn raise(&mut self) {
        let widest = self.widest();
        let raise_at = self.now.saturating_add(paths::LIFE);
        let search = self.search();
        (search.above, search.lost, search.raise_at) = (widest.saturating_add(1), 0, raise_at);
        search.halves = false;
        if self.cold.options.mtu_discovery {
            self.hot.clear(flag::FRAGMENTS | flag::NARROW);
        }
        if self.cold.options.path_probing == PathProbing::Off || !self.hot.has(flag::SACK) {
            self.resize(self.cold.path_mtu.max(widest));
        }
    }

    /// Size of the next probe: bytes. `None`: the search is over.
    fn next_probe(&self) -> Option<u16> {
        let search = self.cold.search.as_ref()?;
        let wanted = self.cold.options.path_probing != PathProbing::Off;
        let low = self.cold.path_mtu;
        let room = search.above.saturating_sub(1).saturating_sub(low);
        // Without SACK the loss of a probe could not be told from others'.
        if !wanted || !self.hot.has(flag::SACK) || room < WORTH {
            return None;
        }
        // The largest first, which most paths take, or which ICMP told. Then halves (RFC 4821 7.3).
        Some(if search.halves { low + room.div_ceil(2) } else { search.above - 1 })
    }

    /// Something was acknowledged: a probe may have arrived (RFC 4821 7.6.1).
    pub(super) fn settle_path_probe(&mut self) {
        let una = self.hot.snd_una;
        let Some(search) = &mut self.cold.search else { return };
        if search.probe == 0 || una.before(search.end) {
            return;
        }
        let size = std::mem::take(&mut search.probe);
        search.lost = 0;
        search.raise_at = self.now.saturating_add(paths::LIFE);
        self.resize(size);
    }

    /// `lost` bytes were found lost. A probe that is all of it was too large, which says nothing about
    /// congestion (RFC 4821 7.6.2). Gives bytes that do.
    #[cold]
    pub(super) fn excuse_path_probe(&mut self, lost: u32, recovering: bool) -> u32 {
        let next = self.hot.snd_nxt;
        let Some(search) = &mut self.cold.search else { return lost };
        if search.probe == 0 {
            return lost;
        }
        let (start, end) = (search.start, search.end);
        if !self.cold.flight.is_lost(start) {
            return lost;
        }
        let size = std::mem::take(&mut search.probe);
        search.end = next;
        if recovering || lost != end.since(start) {
            // Others were lost too: nothing can be told (7.6.4).
            return lost;
        }
        self.shared.counters.path_probes_lost += 1;
        search.lost += 1;
        if search.lost >= TRIES {
            (search.above, search.lost, search.halves) = (size, 0, true);
            search.raise_at = self.now.saturating_add(paths::LIFE);
            self.remember();
        }
        0
    }
}

fn plateau(mtu: u16) -> u16 {
    [1492, 1006, 576, 552].into_iter().find(|plateau| *plateau < mtu).unwrap_or(68)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_acknowledged_two_gigabytes_ago_holds_up_no_probe() {
        let end = Seq(1000);
        let search =
            Search { above: 0, probe: 0, lost: 0, halves: false, start: end, end, raise_at: 0 };
        let waits = |una: u32| search.waits(Seq(una), Seq(una).add(5000));
        assert!(waits(999) && waits(u32::MAX - 3000));
        assert!(
            !waits(1000) && !waits(1001) && !waits(1000 + (1 << 31) + 1) && !waits(u32::MAX - 9000)
        );
    }
}
