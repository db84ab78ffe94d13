//! Connections in TIME-WAIT that nobody holds any more: what is needed to answer late segments, and to let a
//! new connection take the place safely (RFC 6191). In the order in which they came, so many at most: one
//! more takes the place of the oldest.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::ends::{Ends, to_v6};
use crate::options::MILLISECOND;
use crate::sequence::Seq;
use crate::tcp::cold::Cold;
use crate::tcp::hot::{Hot, flag};

/// Values of the table of flows with this bit are numbers of [`TimeWaits`].
pub(crate) const TIME_WAIT: u32 = 1 << 31;
/// Numbers go round; the bit that is left keeps them apart from `NO_FLOW`.
const NUMBERS: u32 = (1 << 30) - 1;
/// Entries that are allocated together: a page.
const CHUNK: usize = 64;
/// Unit of [`Waiting::duration`] and [`Waiting::answered_at`]: ns.
const UNIT: u64 = 10 * MILLISECOND;
/// In [`Waiting::service`], beside the DSCP.
const TIMESTAMPS: u8 = 1;
const DONT_FRAGMENT: u8 = 2;

/// What is left of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiting {
    /// IPv4 as mapped: no packet has such an IPv6 address (`Ends::is_possible`).
    remote: Ipv6Addr,
    local: Ipv6Addr,
    /// When it is over: ns; 0: it is gone.
    deadline: u64,
    pub(crate) snd_nxt: Seq,
    pub(crate) rcv_nxt: Seq,
    pub(crate) ts_recent: u32,
    remote_port: u16,
    local_port: u16,
    /// How long it waits, and when a segment without data was answered last: 10 ms.
    duration: u16,
    answered_at: u16,
    /// As it is written in segments.
    pub(crate) window: u16,
    pub(crate) ttl: u8,
    service: u8,
}

const _: () = assert!(size_of::<Waiting>() == 64, "a cache line");

carried!(Waiting {
    remote,
    local,
    deadline @ time,
    snd_nxt,
    rcv_nxt,
    ts_recent,
    remote_port,
    local_port,
    duration in 1..=u16::MAX,
    answered_at @ local,
    window,
    ttl,
    service,
});

impl Waiting {
    pub(crate) fn of<F>(hot: &Hot, cold: &Cold<F>, now: u64) -> Self {
        let (ends, options) = (cold.ends(), &cold.options);
        let timestamps = if hot.has(flag::TIMESTAMPS) { TIMESTAMPS } else { 0 };
        let whole = if hot.has(flag::FRAGMENTS) { 0 } else { DONT_FRAGMENT };
        Self {
            remote: to_v6(ends.remote.ip()),
            local: to_v6(ends.local.ip()),
            deadline: hot.life_at.max(now).max(1),
            snd_nxt: hot.snd_nxt,
            rcv_nxt: hot.rcv_nxt,
            ts_recent: hot.ts_recent,
            remote_port: ends.remote.port(),
            local_port: ends.local.port(),
            duration: (options.time_wait / UNIT).clamp(1, u64::from(u16::MAX)) as u16,
            answered_at: 0,
            window: (hot.rcv_wnd() >> hot.rcv_scale).min(65_535) as u16,
            ttl: options.ttl,
            service: options.dscp << 2 | timestamps | whole,
        }
    }

    pub(crate) fn ends(&self) -> Ends {
        let of = |ip: Ipv6Addr, port| {
            let mapped = ip.to_ipv4_mapped();
            SocketAddr::new(mapped.map_or(IpAddr::V6(ip), IpAddr::V4), port)
        };
        Ends { local: of(self.local, self.local_port), remote: of(self.remote, self.remote_port) }
    }

    pub(crate) fn has_timestamps(&self) -> bool {
        self.service & TIMESTAMPS != 0
    }

    pub(crate) fn dont_fragment(&self) -> bool {
        self.service & DONT_FRAGMENT != 0
    }

    /// DSCP, at its place in the byte of the IP header.
    pub(crate) fn service(&self) -> u8 {
        self.service & !3
    }

    pub(crate) fn is_over(&self, now: u64) -> bool {
        self.deadline <= now
    }

    /// How long it still waits: ns.
    pub(crate) fn left(&self, now: u64) -> u64 {
        self.deadline.saturating_sub(now)
    }

    /// The same, but it waits no longer than `longest` (ns), now and whenever it begins anew.
    pub(crate) fn bounded(mut self, now: u64, longest: u64) -> Self {
        self.duration = self.duration.min((longest / UNIT).min(u64::from(u16::MAX)) as u16);
        let end = now.saturating_add(u64::from(self.duration) * UNIT);
        self.deadline = self.deadline.clamp(1, end.max(1));
        self
    }

    /// When it began, or began anew: ns.
    pub(crate) fn began_at(&self) -> u64 {
        self.deadline.saturating_sub(u64::from(self.duration) * UNIT)
    }

    /// The same, to be put in anew.
    pub(crate) fn restarted(mut self, now: u64) -> Self {
        self.deadline = now.saturating_add(u64::from(self.duration) * UNIT);
        self
    }

    /// Whether another segment without data may be answered: two in a second at most, so that two ends
    /// that disagree do not answer each other for ever.
    pub(crate) fn may_answer(&mut self, now: u64) -> bool {
        let units = ((now / UNIT) as u16).max(1);
        let may = self.answered_at == 0 || units.wrapping_sub(self.answered_at) >= 50;
        if may {
            self.answered_at = units;
        }
        may
    }

    fn version(&self) -> usize {
        usize::from(self.remote.to_ipv4_mapped().is_none())
    }
}

/// All of them.
#[derive(Debug)]
pub(crate) struct TimeWaits {
    chunks: VecDeque<Vec<Waiting>>,
    /// A chunk to be used again.
    spare: Option<Vec<Waiting>>,
    /// Number of the first chunk's first place.
    first: u32,
    /// Places of the first chunk that are gone.
    gone: usize,
    /// Over IPv4 and IPv6.
    held: [usize; 2],
    most: usize,
    /// What the time stamps of those are ahead of the clock that come from a stack with another secret.
    stamps: HashMap<Ends, u32>,
}

impl TimeWaits {
    pub(crate) fn new(most: usize) -> Self {
        let most = most.min(NUMBERS as usize / 2);
        // Addresses for all chunks that there can be, so that their list is never copied; where they cannot be had, it
        // grows when it must.
        let mut chunks = VecDeque::new();
        let _ = chunks.try_reserve_exact(2 * most.max(CHUNK) / CHUNK + 2);
        let stamps = HashMap::new();
        Self { chunks, spare: None, first: 0, gone: 0, held: [0; 2], most, stamps }
    }

    pub(crate) fn len(&self) -> usize {
        self.held.iter().sum()
    }

    /// Over IPv4, or over IPv6.
    pub(crate) fn len_of(&self, v6: bool) -> usize {
        self.held[usize::from(v6)]
    }

    /// Whether one more is one too many.
    pub(crate) fn is_full(&self) -> bool {
        // Those that went before their time hold their places until the ones ahead of them are gone.
        let places = self.chunks.len() * CHUNK;
        self.len() >= self.most || places >= 2 * self.most.max(CHUNK)
    }

    /// Puts one behind the others. `stamp`: what its time stamps are ahead of the clock, if another secret says so. Gives
    /// its number.
    pub(crate) fn push(&mut self, waiting: Waiting, stamp: Option<u32>) -> u32 {
        if self.chunks.back().is_none_or(|chunk| chunk.len() == CHUNK) {
            let chunk = self.spare.take().unwrap_or_else(|| Vec::with_capacity(CHUNK));
            self.chunks.push_back(chunk);
        }
        let before = (self.chunks.len() - 1) * CHUNK;
        let Some(chunk) = self.chunks.back_mut() else { return 0 };
        let number = self.first.wrapping_add((before + chunk.len()) as u32) & NUMBERS;
        self.held[waiting.version()] += 1;
        chunk.push(waiting);
        if let Some(stamp) = stamp {
            self.stamps.insert(waiting.ends(), stamp);
        }
        number
    }

    /// What was given with it as the offset of its time stamps.
    pub(crate) fn stamp(&self, ends: &Ends) -> Option<u32> {
        if self.stamps.is_empty() { None } else { self.stamps.get(ends).copied() }
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut Waiting> {
        let at = (number.wrapping_sub(self.first) & NUMBERS) as usize;
        let found = self.chunks.get_mut(at / CHUNK)?.get_mut(at % CHUNK)?;
        (found.deadline != 0).then_some(found)
    }

    pub(crate) fn remove(&mut self, number: u32) -> Option<Waiting> {
        let waiting = self.get_mut(number)?;
        let removed = *waiting;
        waiting.deadline = 0;
        self.held[removed.version()] -= 1;
        if !self.stamps.is_empty() {
            self.stamps.remove(&removed.ends());
        }
        self.tidy();
        Some(removed)
    }

    /// In no particular order.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Waiting> {
        self.chunks.iter().flatten().filter(|waiting| waiting.deadline != 0)
    }

    /// The one that came first.
    pub(crate) fn oldest(&self) -> Option<u32> {
        (self.len() > 0).then(|| self.first.wrapping_add(self.gone as u32) & NUMBERS)
    }

    /// When the oldest is over: ns.
    pub(crate) fn deadline(&self) -> Option<u64> {
        self.chunks.front()?.get(self.gone).map(|waiting| waiting.deadline)
    }

    /// The first place holds one that is there.
    fn tidy(&mut self) {
        while let Some(chunk) = self.chunks.front_mut() {
            while chunk.get(self.gone).is_some_and(|waiting| waiting.deadline == 0) {
                self.gone += 1;
            }
            if self.gone < CHUNK {
                return;
            }
            chunk.clear();
            self.spare = self.chunks.pop_front();
            self.first = self.first.wrapping_add(CHUNK as u32) & NUMBERS;
            self.gone = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::fifo::Ring;
    use proptest::prelude::*;

    fn waiting(number: u32, v6: bool) -> Waiting {
        let [a, b, c, d] = number.to_be_bytes();
        let remote: IpAddr = if v6 {
            Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 1, number as u16).into()
        } else {
            [10 | a, b, c, d].into()
        };
        let local: IpAddr = if v6 { Ipv6Addr::LOCALHOST.into() } else { [192, 0, 2, 1].into() };
        let ends = Ends { local: (local, 80).into(), remote: (remote, 4000).into() };
        let cold = Cold::<Ring>::new(ends, Arc::default(), 1500);
        let mut hot = Hot::vacant(0);
        hot.life_at = 60 * crate::options::SECOND + u64::from(number);
        hot.snd_nxt = Seq(number);
        let waiting = Waiting::of(&hot, &cold, 0);
        assert_eq!(waiting.ends(), ends);
        assert_eq!(waiting.began_at(), u64::from(number));
        waiting
    }

    proptest! {
        #[test]
        fn agrees_with_a_plain_list(steps in proptest::collection::vec((0..4u8, any::<u32>()), 1..600)) {
            let (mut all, mut model) = (TimeWaits::new(100), Vec::new());
            // Numbers go round.
            all.first = NUMBERS - 150;
            for (step, (kind, choice)) in steps.into_iter().enumerate() {
                match kind {
                    0 | 1 => {
                        if all.is_full() {
                            let oldest = all.oldest().unwrap();
                            prop_assert_eq!(oldest, model.remove(0));
                            all.remove(oldest);
                        }
                        let stamp = (choice % 2 == 0).then_some(choice);
                        let one = waiting(step as u32, kind == 1);
                        let number = all.push(one, stamp);
                        prop_assert_eq!(all.stamp(&one.ends()), stamp);
                        prop_assert!(number & !NUMBERS == 0 && !model.contains(&number));
                        model.push(number);
                    }
                    2 if !model.is_empty() => {
                        let number = model.remove(choice as usize % model.len());
                        prop_assert!(all.remove(number).is_some());
                        prop_assert!(all.remove(number).is_none());
                    }
                    _ => {}
                }
                prop_assert_eq!(all.len(), model.len());
                prop_assert_eq!(all.oldest(), model.first().copied());
                prop_assert!(model.iter().all(|number| all.get_mut(*number).is_some()));
                prop_assert!(all.chunks.len() <= 5 && all.stamps.len() <= all.len());
            }
        }
    }

    #[test]
    fn segments_without_data_are_answered_twice_a_second() {
        let mut one = waiting(1, false);
        let answered = (0..100).filter(|step| one.may_answer(step * 20 * MILLISECOND)).count();
        assert_eq!(answered, 4);
    }
}
