//! Whose turn it is on a stack worker: a user's many processes take no more of a round than another's one.

/// How long processes of one user have turns in a round: ns. Those that are left then have theirs in later rounds.
const SHARE: u64 = 500_000;

/// Rounds that begin with the same process: a round takes microseconds, so each is the first soon. If each round began with the next
/// one, of two processes that talk to each other each would have two turns in a row, the second of which finds little.
const SAME: u32 = 256;

/// The rounds of a worker. A process's place is its index in the worker's list.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Where rounds begin, and how many have since this has changed.
    first: usize,
    rounds: u32,
    /// Somebody has had no turn in this round.
    waits: bool,
    /// How long the processes of each user have had turns in this round: ns.
    spent: Vec<(u32, u64)>,
}

impl Turns {
    /// Begins a round of so many processes: their places in order. Each is the first at some time, because what comes first finds
    /// the room that others have.
    pub(super) fn begin(&mut self, count: usize) -> impl Iterator<Item = usize> + use<> {
        self.rounds += 1;
        if self.rounds >= SAME {
            self.begin_at(self.first + 1);
        }
        if self.first >= count {
            self.first = 0;
        }
        let first = self.first;
        self.waits = false;
        self.spent.clear();
        (first..count).chain(0..first)
    }

    /// Whether a process of that user has its turn; if not, the next round begins with the first of those.
    pub(super) fn has(&mut self, place: usize, uid: u32) -> bool {
        let is_over = self.spent.iter().any(|(user, time)| *user == uid && *time >= SHARE);
        if is_over && !self.waits {
            self.waits = true;
            self.begin_at(place);
        }
        !is_over
    }

    fn begin_at(&mut self, place: usize) {
        (self.first, self.rounds) = (place, 0);
    }

    /// A process of that user has had its turn; `time`: ns.
    pub(super) fn spend(&mut self, uid: u32, time: u64) {
        match self.spent.iter_mut().find(|(user, _)| *user == uid) {
            Some((_, spent)) => *spent += time,
            None => self.spent.push((uid, time)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_processes_of_a_user_keep_another_users_from_no_round() {
        let users = [7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8];
        let (mut turns, mut had) = (Turns::default(), [0; 11]);
        for _ in 0..100 {
            for place in turns.begin(users.len()) {
                if turns.has(place, users[place]) {
                    had[place] += 1;
                    turns.spend(users[place], SHARE / 2);
                }
            }
        }
        assert_eq!(had, [20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 100]);
    }

    #[test]
    fn each_is_the_first_at_some_time() {
        let mut turns = Turns::default();
        let mut firsts: Vec<usize> = (0..6 * SAME).filter_map(|_| turns.begin(3).next()).collect();
        firsts.dedup();
        assert_eq!(firsts, [0, 1, 2, 0, 1, 2, 0]);
        while turns.begin(3).collect::<Vec<_>>() != [1, 2, 0] {}
        // Two have gone.
        let all: Vec<usize> = turns.begin(1).collect();
        assert_eq!(all, [0]);
        assert_eq!(turns.begin(0).count(), 0);
    }
}
