//! Connections of processes that may not come, by user. One thread tells all of them why: no user takes the places of the others
//! there, nor much of its time.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::rhythm::Rhythm;
use super::user::Place;

/// Connections of one user that wait to be told, or are told, at the same time.
const OF_USER: usize = 8;
/// For each connection of one user beyond a burst.
const INTERVAL: Duration = Duration::from_millis(10);
/// Users that may have come lately.
const USERS: usize = 1024;

/// Who has come lately.
#[derive(Debug, Default)]
pub(super) struct Strangers(HashMap<u32, Stranger>);

#[derive(Debug)]
struct Stranger {
    taken: Arc<AtomicUsize>,
    rhythm: Rhythm,
}

impl Strangers {
    /// A place for one more connection of a user. `None`: the user has as many, or comes too often.
    pub(super) fn place(&mut self, uid: u32, now: Instant) -> Option<Place> {
        if self.0.len() >= USERS {
            let taken = |one: &Stranger| one.taken.load(Ordering::Relaxed) > 0;
            self.0.retain(|_, one| taken(one) || !one.rhythm.has_rested(now, INTERVAL));
            if self.0.len() >= USERS && !self.0.contains_key(&uid) {
                return None;
            }
        }
        let rhythm = Rhythm::rested(now, INTERVAL);
        let new = || Stranger { taken: Arc::default(), rhythm };
        let one = self.0.entry(uid).or_insert_with(new);
        let waits = !one.rhythm.wait(now, INTERVAL).is_zero();
        if waits || one.taken.load(Ordering::Relaxed) >= OF_USER {
            return None;
        }
        one.rhythm.count(now, INTERVAL);
        Some(Place::of(&one.taken))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_so_many_places_and_leaves_those_of_others() {
        let (mut strangers, now) = (Strangers::default(), Instant::now());
        let mut places: Vec<Place> =
            (0..OF_USER).map(|_| strangers.place(5, now).unwrap()).collect();
        assert!(strangers.place(5, now).is_none());
        assert!(strangers.place(6, now).is_some());
        places.pop();
        assert!(strangers.place(5, now).is_some());
    }

    #[test]
    fn a_user_comes_in_bursts_and_then_evenly() {
        let (mut strangers, begin) = (Strangers::default(), Instant::now());
        let mut comes = |uid, times: u32, after: u32| {
            let now = begin + Duration::from_secs(10) + INTERVAL * after;
            (0..times).filter(|_| strangers.place(uid, now).is_some()).count()
        };
        assert_eq!(comes(5, 1000, 0), 64);
        // What was refused does not count.
        assert_eq!((comes(5, 1000, 1), comes(5, 1000, 4), comes(6, 3, 4)), (1, 3, 3));
        assert_eq!(comes(5, 1000, 1000), 64);
    }

    #[test]
    fn so_many_users_are_remembered_and_those_who_rest_are_forgotten() {
        let (mut strangers, begin) = (Strangers::default(), Instant::now());
        let (now, later) = (begin + Duration::from_secs(10), begin + Duration::from_secs(20));
        let kept = strangers.place(0, now).unwrap();
        for uid in 1..USERS as u32 {
            assert!(strangers.place(uid, now).is_some());
        }
        assert!(strangers.place(5000, now).is_none());
        assert!(strangers.place(1, now).is_some(), "it is known");
        assert!(strangers.place(5000, later).is_some());
        assert_eq!(strangers.0.len(), 2, "and who has a place");
        drop(kept);
    }
}
