//! Lines in the log about what processes do as often as they like.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lines in a second.
const LINES: u32 = 20;
const SECOND: Duration = Duration::from_secs(1);

/// Lets so many lines a second into the log, and says how many were left out: the router's own must not drown in them.
#[derive(Debug, Default)]
pub(crate) struct Sparing {
    since: Option<Instant>,
    said: u32,
    unsaid: u64,
}

impl Sparing {
    /// Says it, if there is room; `what` are the lines about, in the plural.
    pub(crate) fn say(&mut self, what: &str, line: impl FnOnce()) {
        write(self.count(Instant::now()), what, line);
    }

    /// Counts a line: how many were left out in the seconds before this one, to be said now, and whether this one has room.
    fn count(&mut self, now: Instant) -> (u64, bool) {
        let mut left_out = 0;
        if self.since.is_none_or(|since| now.duration_since(since) >= SECOND) {
            left_out = std::mem::take(&mut self.unsaid);
            (self.since, self.said) = (Some(now), 0);
        }
        let room = self.said < LINES;
        self.said += u32::from(room);
        self.unsaid += u64::from(!room);
        (left_out, room)
    }
}

/// What the system lacks when connections come: a descriptor, a thread. All threads have these lines together, because whoever
/// may connect meets the lack as often as it likes.
static LACKS: Mutex<Sparing> = Mutex::new(Sparing { since: None, said: 0, unsaid: 0 });

/// Says what a connection lacks, if there is room.
pub(crate) fn complain(line: impl FnOnce()) {
    let counted = LACKS.lock().unwrap_or_else(PoisonError::into_inner).count(Instant::now());
    write(counted, "connections that could not be served", line);
}

fn write((left_out, room): (u64, bool), what: &str, line: impl FnOnce()) {
    if left_out > 0 {
        tracing::warn!("{left_out} more {what} were not written here");
    }
    if room {
        line();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_so_many_lines_and_the_next_says_what_was_left_out() {
        let (mut sparing, begin) = (Sparing::default(), Instant::now());
        let told = (0..1000).filter(|n| sparing.count(begin + SECOND * *n / 1000).1).count();
        assert_eq!(told, 20);
        assert_eq!(sparing.count(begin + SECOND), (980, true));
        assert_eq!(sparing.count(begin + 2 * SECOND), (0, true));
    }
}
