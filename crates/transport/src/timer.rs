//! One timer per connection: the earliest of its deadlines.
//!
//! A connection keeps its deadlines itself and arms its timer only when one comes before the time that
//! the timer is armed for; a deadline that moved away is noticed when the timer fires. In steady
//! traffic a timer is therefore not touched at all.

use std::collections::BTreeSet;

/// Timers by index, ordered by time.
#[derive(Debug, Default)]
pub struct Timers {
    order: BTreeSet<(u64, u32)>,
    armed: Vec<u64>,
}

const UNARMED: u64 = u64::MAX;

impl Timers {
    /// When the timer of `index` fires: ns; `None`: it is not armed.
    #[must_use]
    pub fn armed(&self, index: u32) -> Option<u64> {
        self.armed.get(index as usize).copied().filter(|time| *time != UNARMED)
    }

    /// Arms the timer of `index` for `deadline` (ns), wherever it stood before.
    pub fn arm(&mut self, index: u32, deadline: u64) {
        self.cancel(index);
        if self.armed.len() <= index as usize {
            self.armed.resize(index as usize + 1, UNARMED);
        }
        if let Some(armed) = self.armed.get_mut(index as usize) {
            *armed = deadline.min(UNARMED - 1);
            self.order.insert((*armed, index));
        }
    }

    /// Disarms the timer of `index`.
    pub fn cancel(&mut self, index: u32) {
        if let Some(armed) = self.armed.get_mut(index as usize) {
            if *armed != UNARMED {
                self.order.remove(&(*armed, index));
                *armed = UNARMED;
            }
        }
    }

    /// A timer whose time has come, disarmed; none fires before its deadline.
    pub fn expired(&mut self, now: u64) -> Option<u32> {
        let (deadline, index) = *self.order.first()?;
        if deadline > now {
            return None;
        }
        self.cancel(index);
        Some(index)
    }

    /// When to look next: ns, at or before the earliest deadline.
    #[must_use]
    pub fn next(&self) -> Option<u64> {
        self.order.first().map(|(deadline, _)| *deadline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fires_in_order_and_never_early() {
        let mut timers = Timers::default();
        timers.arm(3, 30);
        timers.arm(1, 10);
        timers.arm(2, 20);
        timers.arm(1, 40);
        timers.cancel(2);
        assert_eq!((timers.next(), timers.armed(1), timers.armed(2)), (Some(30), Some(40), None));
        assert_eq!(timers.expired(29), None);
        assert_eq!(timers.expired(30), Some(3));
        assert_eq!(timers.expired(100), Some(1));
        assert_eq!(timers.expired(100), None);
    }
}
