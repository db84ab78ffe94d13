//! Backpressure between stacks of one machine: one that sends more than another reads waits for it, so that its process is told by
//! its own full ring, and nothing is lost on the way.
//!
//! A ring is nearly full when a quarter of it is left: the packets of several rounds. Waiting ends when half of it is free, and never
//! lasts long, since what else the stack has to send waits as well: who does not read is not waited for again soon, and other users'
//! stacks together are not waited for more than a part of the time.

use crate::StackId;

/// A ring is nearly full with one part in so many free, and has room again with one part in so many.
pub(super) const NEARLY_FULL: u32 = 4;
pub(super) const ROOMY: u32 = 2;

/// How long a stack is waited for at most: us. A process that shares its core with a worker has to wait for a time slice of it,
/// 2.8 ms of Linux's scheduler with two cores.
const LONGEST: u64 = 4_000;
/// So long nobody waits for one that was waited for in vain: us.
const IN_VAIN: u64 = 100_000;
/// One part in so many of its time, a stack waits for stacks of other users at most: for a quarter of the longest at least, or not.
const PART: u64 = 8;

/// Cycles of so many microseconds. `hertz`: TSC cycles per second.
fn cycles(micros: u64, hertz: u64) -> u64 {
    micros.saturating_mul(hertz / 1_000_000)
}

/// What a stack that sends waits for. Times are TSC cycles.
#[derive(Debug, Default)]
pub(super) struct Backpressure {
    waits: Option<Wait>,
    /// Since when it has earned time to wait for other users' stacks: a part of what has passed since.
    earns_since: u64,
    longest: u64,
}

#[derive(Debug, Clone, Copy)]
struct Wait {
    to: StackId,
    /// It is another user's.
    foreign: bool,
    since: u64,
    until: u64,
}

/// What a look finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// It goes on waiting.
    Waits,
    /// There is room, or it may not wait for longer.
    Over,
    /// It has waited as long as anybody does, and there is no room.
    InVain,
}

impl Backpressure {
    /// `hertz`: TSC cycles per second.
    pub(super) fn new(hertz: u64) -> Self {
        Self { longest: cycles(LONGEST, hertz), ..Self::default() }
    }

    /// The ring of the stack `to`, of another user or not, is nearly full of what this one has sent.
    pub(super) fn begin(&mut self, to: StackId, foreign: bool, now: u64) {
        if self.waits.is_some() {
            return;
        }
        let mut longest = self.longest;
        if foreign {
            self.earns_since = self.earns_since.max(now.saturating_sub(longest * PART));
            longest = now.saturating_sub(self.earns_since) / PART;
        }
        if longest >= self.longest / 4 {
            self.waits = Some(Wait { to, foreign, since: now, until: now.saturating_add(longest) });
        }
    }

    /// Whom it waits for.
    #[inline(always)]
    pub(super) fn whom(&self) -> Option<StackId> {
        self.waits.map(|wait| wait.to)
    }

    /// Looks at the one that it waits for, which has `room` again or not.
    pub(super) fn look(&mut self, room: bool, now: u64) -> Look {
        let Some(Wait { foreign, since, until, .. }) = self.waits else { return Look::Over };
        if !room && now < until {
            return Look::Waits;
        }
        self.waits = None;
        let waited = now.saturating_sub(since);
        if foreign {
            self.earns_since = self.earns_since.saturating_add(waited.saturating_mul(PART));
        }
        if !room && waited >= self.longest { Look::InVain } else { Look::Over }
    }
}

/// When a stack is to be waited for again that was waited for in vain at `now`.
pub(super) fn after_vain(now: u64, hertz: u64) -> u64 {
    now.saturating_add(cycles(IN_VAIN, hertz))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERTZ: u64 = 1_000_000;

    fn to() -> StackId {
        StackId::new(3, 1).unwrap()
    }

    #[test]
    fn nobody_waits_for_longer_than_the_longest() {
        let mut pressure = Backpressure::new(HERTZ);
        assert_eq!((pressure.whom(), pressure.look(false, 0)), (None, Look::Over));
        pressure.begin(to(), false, 1_000);
        pressure.begin(StackId::new(4, 1).unwrap(), false, 2_000);
        assert_eq!(pressure.whom(), Some(to()), "the first");
        assert_eq!(pressure.look(false, 4_999), Look::Waits);
        assert_eq!((pressure.look(false, 5_000), pressure.whom()), (Look::InVain, None));
        pressure.begin(to(), false, 5_000);
        assert_eq!((pressure.look(true, 5_001), pressure.whom()), (Look::Over, None));
    }

    #[test]
    fn other_users_are_waited_for_a_part_of_the_time() {
        const TIME: u64 = 1_000_000;
        let (mut pressure, mut waited) = (Backpressure::new(HERTZ), 0);
        for now in 0..TIME {
            pressure.begin(to(), true, now);
            waited += u64::from(pressure.look(false, now) == Look::Waits);
        }
        assert!((TIME / 10..=TIME / PART + LONGEST).contains(&waited), "{waited}");
    }
}
