//! Options in use, shared among the connections that have the same: an application that sets the same
//! options on every connection costs no memory for each.

use std::sync::Arc;

use super::Options;

/// Sets remembered at most.
const MOST: usize = 32;

/// The sets that were used last.
#[derive(Debug, Default)]
pub(crate) struct Sets {
    recent: Vec<Arc<Options>>,
    /// The next to be replaced.
    oldest: usize,
}

impl Sets {
    /// A shared set of these options.
    pub(crate) fn share(&mut self, options: &Options) -> Arc<Options> {
        match self.recent.iter().find(|known| ***known == *options) {
            Some(known) => Arc::clone(known),
            None => {
                let fresh = Arc::new(options.clone());
                self.remember(Arc::clone(&fresh));
                fresh
            }
        }
    }

    /// Changes a connection's options. Allocates only when the new ones are new to the stack and the old
    /// ones are another's too.
    pub(crate) fn change(&mut self, current: &mut Arc<Options>, options: &Options) {
        if let Some(known) = self.recent.iter().find(|known| ***known == *options) {
            return *current = Arc::clone(known);
        }
        let place = self.recent.iter().position(|known| Arc::ptr_eq(known, current));
        // Nobody but this list and the connection has them: they are changed where they are.
        if let Some(place) = place.filter(|_| Arc::strong_count(current) == 2) {
            self.recent.swap_remove(place);
        }
        match Arc::get_mut(current) {
            Some(own) => own.clone_from(options),
            None => *current = Arc::new(options.clone()),
        }
        self.remember(Arc::clone(current));
    }

    fn remember(&mut self, set: Arc<Options>) {
        if self.recent.len() < MOST {
            return self.recent.push(set);
        }
        self.oldest = (self.oldest + 1) % MOST;
        if let Some(place) = self.recent.get_mut(self.oldest) {
            *place = set;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(ttl: u8) -> Options {
        Options { ttl, ..Options::default() }
    }

    #[test]
    fn equal_sets_are_one() {
        let mut sets = Sets::default();
        let listener = sets.share(&options(1));
        let mut connections = [(); 100].map(|()| Arc::clone(&listener));
        for connection in &mut connections {
            sets.change(connection, &options(2));
        }
        assert!(connections.iter().all(|set| Arc::ptr_eq(set, &connections[0])));
        assert_eq!((listener.ttl, connections[0].ttl), (1, 2));
    }

    #[test]
    fn who_changes_often_changes_the_same_memory() {
        let mut sets = Sets::default();
        let mut own = sets.share(&options(1));
        let other = Arc::clone(&own);
        sets.change(&mut own, &options(2));
        let place = Arc::as_ptr(&own);
        for ttl in 3..200 {
            sets.change(&mut own, &options(ttl));
            assert_eq!((Arc::as_ptr(&own), own.ttl), (place, ttl));
        }
        assert_eq!(other.ttl, 1);
    }

    #[test]
    fn is_bounded() {
        let mut sets = Sets::default();
        let all: Vec<_> = (0..200).map(|ttl| sets.share(&options(ttl))).collect();
        assert_eq!((sets.recent.len(), all.len()), (MOST, 200));
        assert!(all.iter().zip(0..).all(|(set, ttl)| set.ttl == ttl));
    }
}
