//! One timer per connection: the earliest of its deadlines, in a hierarchical wheel.
//!
//! A connection keeps its deadlines itself and arms its timer only when one comes before the time that
//! the timer is armed for; a deadline that moved away is noticed when the timer fires. In steady
//! traffic a timer is therefore not touched at all. A wheel has 4,096 slots of 2^16 ns (65.5 us), which is 268 ms: a
//! delayed acknowledgment and most time-outs are found in the slot that they were put into. The next level's slots are
//! a whole turn of the one below; three levels reach 52 days. Slots are doubly linked lists through one array, so
//! arming and disarming cost the same however many are armed. Time goes on when the
//! slots that its hand has reached are empty, which takes as many calls as their timers are worth.

/// Bits of nanoseconds below a tick.
const TICK: u32 = 16;
/// Bits of a level's slot number.
const BITS: u32 = 12;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = 3;
/// Timers that move to a lower level for what one that fires is charged: moving touches a few lines of the wheel, while
/// a time-out may send segments.
const MOVES: usize = 8;
/// Words of a level's bits.
const WORDS: usize = SLOTS / 64;
/// No timer, no slot.
const NONE: u32 = u32::MAX;
const UNARMED: u64 = u64::MAX;

/// Where a timer is linked in.
#[derive(Debug, Clone, Copy)]
struct Entry {
    deadline: u64,
    next: u32,
    previous: u32,
    /// Slot of all levels, counted through.
    slot: u32,
}

const VACANT: Entry = Entry { deadline: UNARMED, next: NONE, previous: NONE, slot: NONE };

/// Timers by index.
#[derive(Debug)]
pub struct Timers {
    entries: Vec<Entry>,
    heads: Vec<u32>,
    /// A bit for each slot that is not empty.
    used: [[u64; WORDS]; LEVELS],
    /// A bit for each of a level's words that is not zero.
    busy: [u64; LEVELS],
    /// Where the hand stands: the slots that it has reached are emptied before it goes on.
    tick: u64,
    /// Something may stand in them.
    at_hand: bool,
    /// No other slot is to be emptied before this tick.
    earliest: u64,
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            heads: vec![NONE; SLOTS * LEVELS],
            used: [[0; WORDS]; LEVELS],
            busy: [0; LEVELS],
            tick: 0,
            at_hand: false,
            earliest: u64::MAX,
        }
    }
}

/// The first tick that is not before `time`.
fn tick_after(time: u64) -> u64 {
    (time >> TICK) + u64::from(time & ((1 << TICK) - 1) != 0)
}

impl Timers {
    /// With addresses reserved for so many timers, so that they are never copied.
    #[must_use]
    pub fn with_room(count: usize) -> Self {
        let mut timers = Self::default();
        // An error leaves it as it was: it grows when it must.
        let _ = timers.entries.try_reserve_exact(count);
        timers
    }

    /// When the timer of `index` fires: ns; `None`: it is not armed.
    #[inline]
    #[must_use]
    pub fn armed(&self, index: u32) -> Option<u64> {
        let entry = self.entries.get(index as usize)?;
        (entry.deadline != UNARMED).then_some(entry.deadline)
    }

    /// Arms the timer of `index` for `deadline` (ns), wherever it stood before.
    pub fn arm(&mut self, index: u32, deadline: u64) {
        self.cancel(index);
        if deadline == UNARMED {
            return;
        }
        if self.entries.len() <= index as usize {
            self.entries.resize(index as usize + 1, VACANT);
        }
        if let Some(entry) = self.entries.get_mut(index as usize) {
            entry.deadline = deadline;
        }
        self.place(index, deadline);
    }

    /// Disarms the timer of `index`.
    pub fn cancel(&mut self, index: u32) {
        let Some(entry) = self.entries.get(index as usize).copied() else { return };
        if entry.deadline == UNARMED {
            return;
        }
        self.unlink(&entry);
        if let Some(entry) = self.entries.get_mut(index as usize) {
            *entry = VACANT;
        }
    }

    /// Whether no timer's time has come for sure.
    #[inline]
    #[must_use]
    pub fn is_quiet(&self, now: u64) -> bool {
        !self.at_hand && now >> TICK < self.earliest
    }

    /// A timer whose time has come, disarmed; none fires before its deadline, and none later than one
    /// tick (65.5 us) behind it. `budget` pays for it, and for timers that move to a lower level on the way, of which
    /// any number may share a slot: one for eight. When it is used up there may be more.
    pub fn expired(&mut self, now: u64, budget: &mut usize) -> Option<u32> {
        let target = now >> TICK;
        while *budget > 0 {
            if self.at_hand {
                if let Some(index) = self.first_of(self.slot_at_hand(0)) {
                    *budget -= 1;
                    self.cancel(index);
                    return Some(index);
                }
                self.at_hand = self.move_down();
                *budget -= usize::from(self.at_hand);
                continue;
            }
            if target < self.earliest {
                return None;
            }
            // Empty stretches are jumped over.
            match self.next_tick() {
                Some(next) if next <= target => (self.tick, self.at_hand) = (next, true),
                next => {
                    self.tick = self.tick.max(target);
                    self.earliest = next.unwrap_or(u64::MAX);
                    return None;
                }
            }
        }
        None
    }

    /// The slot of a level that the hand has reached; of a higher one only at the beginning of its turn.
    fn slot_at_hand(&self, level: u32) -> u32 {
        let below = BITS * level;
        let reached = self.tick & ((1 << below) - 1) == 0;
        let slot = level * SLOTS as u32 + (self.tick >> below) as u32 % SLOTS as u32;
        if reached { slot } else { NONE }
    }

    fn first_of(&self, slot: u32) -> Option<u32> {
        self.heads.get(slot as usize).copied().filter(|index| *index != NONE)
    }

    /// When to look next: ns, at or before the earliest deadline's tick.
    #[must_use]
    pub fn next(&self) -> Option<u64> {
        let waits = |level| self.first_of(self.slot_at_hand(level)).is_some();
        if self.at_hand && (0..LEVELS as u32).any(waits) {
            return Some(self.tick << TICK);
        }
        self.next_tick().map(|tick| tick << TICK)
    }

    /// The next tick at which a slot is to be emptied, onto a lower level or as due.
    fn next_tick(&self) -> Option<u64> {
        (0..LEVELS as u32).filter_map(|level| self.next_of(level)).min()
    }

    #[inline(always)]
    fn next_of(&self, level: u32) -> Option<u64> {
        let busy = self.busy.get(level as usize).copied().filter(|busy| *busy != 0)?;
        let used = self.used.get(level as usize)?;
        let at = self.tick >> (BITS * level);
        let first = (at as usize + 1) % SLOTS;
        let ahead = used.get(first / 64)? & (u64::MAX << (first % 64));
        let slot = if ahead != 0 {
            first / 64 * 64 + ahead.trailing_zeros() as usize
        } else {
            // The words behind, once round, and at last what comes before `first` in its own.
            let others = busy.rotate_right((first / 64) as u32 + 1).trailing_zeros() as usize;
            let word = (first / 64 + 1 + others) % WORDS;
            word * 64 + used.get(word)?.trailing_zeros() as usize
        };
        let ahead = (slot + SLOTS - first) % SLOTS + 1;
        Some((at + ahead as u64) << (BITS * level))
    }

    /// Links a timer into the slot for its deadline.
    fn place(&mut self, index: u32, deadline: u64) {
        let tick = tick_after(deadline);
        let ahead = tick.saturating_sub(self.tick);
        if ahead == 0 {
            self.at_hand = true;
            return self.link(index, self.slot_at_hand(0));
        }
        // A level holds what differs from now by less than one of its turns.
        let level = (0..LEVELS as u32 - 1)
            .find(|level| (tick >> (BITS * level)) - (self.tick >> (BITS * level)) < SLOTS as u64)
            .unwrap_or(LEVELS as u32 - 1);
        let shifted =
            (tick >> (BITS * level)).min((self.tick >> (BITS * level)) + SLOTS as u64 - 1);
        self.earliest = self.earliest.min(shifted << (BITS * level));
        self.link(index, level * SLOTS as u32 + (shifted % SLOTS as u64) as u32);
    }

    /// Some of what stands in the higher levels' slots that the hand has reached moves down. Gives whether anything did.
    fn move_down(&mut self) -> bool {
        for moved in 0..MOVES {
            let mut slots = (1..LEVELS as u32).rev().map(|level| self.slot_at_hand(level));
            let Some(index) = slots.find_map(|slot| self.first_of(slot)) else { return moved > 0 };
            let Some(entry) = self.entries.get(index as usize).copied() else { return false };
            self.unlink(&entry);
            self.place(index, entry.deadline);
        }
        true
    }

    fn mark(&mut self, slot: u32, is_used: bool) {
        let (level, place) = (slot as usize / SLOTS, slot as usize % SLOTS);
        if let Some(word) = self.used.get_mut(level).and_then(|level| level.get_mut(place / 64)) {
            let bit = 1 << (place % 64);
            *word = if is_used { *word | bit } else { *word & !bit };
            let (is_zero, bit) = (*word == 0, 1 << (place / 64));
            if let Some(busy) = self.busy.get_mut(level) {
                *busy = if is_zero { *busy & !bit } else { *busy | bit };
            }
        }
    }

    fn link(&mut self, index: u32, slot: u32) {
        let Some(head) = self.heads.get_mut(slot as usize) else { return };
        let next = std::mem::replace(head, index);
        if let Some(entry) = self.entries.get_mut(next as usize) {
            entry.previous = index;
        }
        if let Some(entry) = self.entries.get_mut(index as usize) {
            (entry.next, entry.previous, entry.slot) = (next, NONE, slot);
        }
        self.mark(slot, true);
    }

    fn unlink(&mut self, entry: &Entry) {
        if let Some(next) = self.entries.get_mut(entry.next as usize) {
            next.previous = entry.previous;
        }
        if let Some(previous) = self.entries.get_mut(entry.previous as usize) {
            previous.next = entry.next;
            return;
        }
        let next = entry.next;
        if let Some(head) = self.heads.get_mut(entry.slot as usize) {
            *head = next;
        }
        if next == NONE {
            self.mark(entry.slot, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const MS: u64 = 1_000_000;

    #[test]
    fn fires_in_order_and_never_early() {
        let mut timers = Timers::default();
        timers.arm(3, 30 * MS);
        timers.arm(1, 10 * MS);
        timers.arm(2, 20 * MS);
        timers.arm(1, 40 * MS);
        timers.cancel(2);
        assert_eq!((timers.armed(1), timers.armed(2)), (Some(40 * MS), None));
        assert_eq!(timers.expired(30 * MS - 1, &mut 9), None);
        assert_eq!(timers.expired(31 * MS, &mut 9), Some(3));
        assert_eq!(timers.expired(100 * MS, &mut 9), Some(1));
        assert_eq!((timers.expired(100 * MS, &mut 9), timers.next()), (None, None));
    }

    /// On whatever level they share a slot.
    #[test]
    fn a_crowded_slot_is_emptied_within_the_budget() {
        const COUNT: u32 = 10_000;
        for deadline in [100 * MS, 10_000 * MS, 7_200_000 * MS] {
            let mut timers = Timers::default();
            (0..COUNT).for_each(|index| timers.arm(index, deadline));
            let (mut fired, mut turns) = (0, 0);
            while timers.next().is_some() {
                let before: Vec<u32> = timers.entries.iter().map(|entry| entry.slot).collect();
                let (mut budget, mut fires) = (20, 0);
                while timers.expired(deadline + MS, &mut budget).is_some() {
                    fires += 1;
                }
                let after = timers.entries.iter().map(|entry| entry.slot);
                let touched = before.iter().zip(after).filter(|(old, new)| *old != new).count();
                assert!(touched <= 160 && fires <= 20, "{touched} of {deadline}");
                (fired, turns) = (fired + fires, turns + 1);
            }
            // Each fires, having moved down two levels at most.
            assert_eq!(fired, COUNT);
            assert!(turns <= COUNT / 20 + 2 * COUNT / 160 + 4, "{turns} turns");
        }
    }

    proptest! {
        #[test]
        fn agrees_with_a_plain_map(steps in proptest::collection::vec((0..4u8, 0..20u32, any::<u64>(), 0..50u32), 1..200)) {
            let (mut timers, mut model, mut now) = (Timers::default(), BTreeMap::new(), 0u64);
            for (kind, index, random, shift) in steps {
                let span = random % (1 << shift);
                match kind {
                    0 => {
                        timers.arm(index, now + span);
                        model.insert(index, now + span);
                    }
                    1 => {
                        timers.cancel(index);
                        model.remove(&index);
                    }
                    _ => {
                        now += span;
                        let mut budget = if kind == 3 { index as usize } else { usize::MAX };
                        while let Some(fired) = timers.expired(now, &mut budget) {
                            let deadline = model.remove(&fired);
                            prop_assert!(deadline.is_some_and(|deadline| deadline <= now), "{:?} at {}", deadline, now);
                        }
                        let late = model.values().find(|deadline| tick_after(**deadline) <= now >> TICK);
                        prop_assert!(late.is_none() || budget == 0, "{:?}", late);
                    }
                }
                let earliest = model.values().min().copied();
                prop_assert_eq!(timers.next().is_some(), earliest.is_some());
                if let (Some(next), Some(earliest)) = (timers.next(), earliest) {
                    prop_assert!(next <= tick_after(earliest).max(now >> TICK) << TICK);
                }
            }
        }
    }
}
