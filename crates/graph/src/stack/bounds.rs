//! How much of a worker stacks may take: whoever wants them to have more or less changes it here.
//!
//! A busy worker forwards 64 packets of others in a round, which take some 60 cycles each; a slot that another core has just
//! written takes 110 and more, and as much again when its packet is copied, judged and dropped.

/// Slots that stacks may send in a round besides what they were given: what they send is what the machine is there for.
pub(super) const SPARE: i32 = 32;
/// Stacks that are looked at in one round: each look may wait for a line from another core.
pub(super) const LOOKS: usize = 16;
/// What a user owes for a packet that is refused: slots, of which it pays [`SPARE`] in each round. 32 refused packets in every
/// round made those of others take 2.1 to 2.8 times the cycles (`millrace-bench clients`); so there are two, a sixteenth.
pub(super) const FINE: i32 = 16;
/// Bytes for which it owes as much once more: a copy takes a line from another core for each 64 of them.
pub(super) const PIECE: usize = 256;
/// What is owed at most: slots. A stack that sends what it may again must not wait for longer than 4,096 rounds.
pub(super) const MOST: i32 = 1 << 17;

/// What a user owes for a packet of so many bytes that is refused: slots.
pub(super) fn fine(bytes: usize) -> i32 {
    FINE.saturating_mul((1 + bytes / PIECE) as i32)
}
