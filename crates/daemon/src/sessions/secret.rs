//! Numbers that a process may know of its own stacks, and nobody of others'.

use wire::siphash::Key;

/// What they are made of; it leaves the daemon never.
pub(super) struct Secret(Key);

impl Secret {
    pub(super) fn new(random: [u64; 2]) -> Self {
        Self(Key(random))
    }

    /// What all stacks of a user share, so that sequence numbers go on between the same ends (RFC 6528) whichever of them
    /// has the connection. Another user who knew it could guess them.
    pub(super) fn seed(&self, uid: u32) -> [u64; 2] {
        self.numbers(0, uid)
    }

    /// The key of a stack's claims.
    pub(super) fn claims_key(&self, stack: u32) -> [u64; 2] {
        self.numbers(1, stack)
    }

    fn numbers(&self, purpose: u64, of: u32) -> [u64; 2] {
        [0, 1].map(|half| self.0.hash(&[purpose, of.into(), half]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_user_and_each_stack_has_its_own() {
        let secret = Secret::new([1, 2]);
        assert_eq!(secret.seed(1000), secret.seed(1000));
        let [a, b] = secret.seed(1000);
        let others = [secret.seed(1001), secret.claims_key(1000), Secret::new([1, 3]).seed(1000)];
        assert!(a != b && others.iter().flatten().all(|other| *other != a && *other != b));
    }
}
