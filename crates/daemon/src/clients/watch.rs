//! Clients that do not keep up or write nonsense: said in the log, once a minute at most of the same queues, and sparingly of those of
//! clients that come again and again.

use std::thread;

use control::api::ClientCounters;

use super::{Clients, Lent};

/// Seconds between two lines about the same queues.
const SILENCE: u64 = 60;

/// What was said of queues, and when.
#[derive(Debug, Default)]
pub(super) struct Told {
    counters: ClientCounters,
    /// Seconds since the client came.
    at: Option<u64>,
}

impl Told {
    /// What is to be said now.
    fn news(&mut self, now: &ClientCounters, age: u64) -> Option<String> {
        let before = self.counters;
        let full = now.full - before.full;
        let nonsense = now.malformed - before.malformed;
        let refused = now.refused - before.refused;
        if full + nonsense + refused == 0 || self.at.is_some_and(|at| age < at + SILENCE) {
            return None;
        }
        (self.counters, self.at) = (*now, Some(age));
        let mut words = Vec::new();
        if full > 0 {
            words.push(format!("does not keep up: {full} packets found its rings full"));
        }
        if nonsense > 0 {
            words.push(format!("wrote {nonsense} marks that make no sense into its rings"));
        }
        if refused > 0 {
            words.push(format!("sent {refused} packets that it must not send"));
        }
        Some(words.join("; "))
    }
}

impl Lent<'_> {
    /// Looks at all clients: once a second.
    pub(crate) fn look_after(&mut self) {
        let (free, _) = self.free_retired();
        if !free.is_empty() {
            // Unmapping takes long; a thread of its own does it, where the system has one.
            let unmapping = thread::Builder::new().name("unmapping".into());
            if let Err(error) = unmapping.spawn(move || drop(free)) {
                tracing::warn!("a thread to unmap memory of clients: {error}");
            }
        }
        let Clients { list, faults, .. } = &mut *self.clients;
        for (id, client) in list {
            let age = client.since.elapsed().as_secs();
            for (number, queues) in &mut client.queues {
                let counted = queues.counted();
                if let Some(news) = queues.told.news(&counted, age) {
                    faults.say("faults of clients", || {
                        tracing::warn!(client = id, queues = number, "{} {news}", client.name);
                    });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_is_new_and_not_too_often() {
        let mut told = Told::default();
        let none = ClientCounters::default();
        assert_eq!(told.news(&none, 0), None);
        let full = ClientCounters { full: 5, ..none };
        assert!(told.news(&full, 1).unwrap().contains("5 packets"));
        let more = ClientCounters { full: 9, malformed: 2, ..none };
        assert_eq!(told.news(&more, 60), None);
        let line = told.news(&more, 61).unwrap();
        assert!(line.contains("4 packets") && line.contains("2 marks"), "{line}");
        assert_eq!(told.news(&more, 1000), None);
    }
}
