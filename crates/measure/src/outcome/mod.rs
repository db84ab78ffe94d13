//! What became of the frames of a trial: lost, duplicated, reordered, corrupted, late; and how long they took.

use serde::Serialize;

use crate::frame::{Arrival, Signature};

pub use latency::{Latency, LatencySummary};
pub use sequence::Sequence;
pub use variation::{Variation, VariationSummary};

mod latency;
mod sequence;
mod variation;

/// What became of the frames of one stream in one trial.
#[derive(Debug)]
pub struct Receiver {
    trial: u16,
    stream: u8,
    sequence: Sequence,
    latency: Latency,
    /// Only where it is asked for: it takes time for each frame.
    variation: Option<Variation>,
    /// Frames that arrived damaged, with a signature that could be read; how many of them arrived intact besides; and how many
    /// frames had none.
    damaged: Sequence,
    both: u64,
    unreadable: u64,
    corrupted: u64,
    stray: u64,
    foreign: u64,
}

/// Frames by what became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// Offered to the device under test.
    pub offered: u64,
    /// Of these, refused by the link to the device: its receive ring was full. They are among `lost`.
    pub refused: u64,
    /// Arrived intact, each counted once.
    pub delivered: u64,
    /// Neither arrived intact nor damaged.
    pub lost: u64,
    /// Arrived damaged; copies count as well, and those of frames that arrived intact besides.
    pub corrupted: u64,
    /// Arrived more than once: the further copies.
    pub duplicated: u64,
    /// Arrived after a later one (RFC 4737 3.3).
    pub reordered: u64,
    /// How far the worst of these lay behind the newest that had arrived: sequence numbers.
    pub reordering_extent: u64,
    /// Arrived so far behind that it cannot be told whether they had arrived before; counted nowhere else.
    pub untraceable: u64,
    /// Test frames of another trial or stream.
    pub stray: u64,
    /// No test frames.
    pub foreign: u64,
}

impl Counts {
    /// Of the frames offered, the share that was not delivered intact: 0 to 1.
    #[must_use]
    pub fn loss(&self) -> f64 {
        let missing = self.offered.saturating_sub(self.delivered);
        if self.offered == 0 { 0.0 } else { missing as f64 / self.offered as f64 }
    }

    /// The sum of two streams' counts.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            offered: self.offered + other.offered,
            refused: self.refused + other.refused,
            delivered: self.delivered + other.delivered,
            lost: self.lost + other.lost,
            corrupted: self.corrupted + other.corrupted,
            duplicated: self.duplicated + other.duplicated,
            reordered: self.reordered + other.reordered,
            reordering_extent: self.reordering_extent.max(other.reordering_extent),
            untraceable: self.untraceable + other.untraceable,
            stray: self.stray + other.stray,
            foreign: self.foreign + other.foreign,
        }
    }
}

impl Receiver {
    /// For one stream of one trial.
    #[must_use]
    pub fn new(trial: u16, stream: u8) -> Self {
        Self {
            trial,
            stream,
            sequence: Sequence::default(),
            latency: Latency::default(),
            variation: None,
            damaged: Sequence::default(),
            both: 0,
            unreadable: 0,
            corrupted: 0,
            stray: 0,
            foreign: 0,
        }
    }

    /// The same, which also looks how delays differ from one frame to the next.
    #[must_use]
    pub fn watching_variation(self) -> Self {
        Self { variation: Some(Variation::default()), ..self }
    }

    /// Counts a frame that came at `now`: ns since the trial began.
    #[inline]
    pub fn take(&mut self, arrival: Arrival, now: u64) {
        match arrival {
            Arrival::Intact(signature) if self.is_ours(&signature) => {
                let number = self.sequence.whole(signature.sequence);
                if self.sequence.take(number) {
                    let delay = now.saturating_sub(signature.sent);
                    self.latency.record(delay);
                    if let Some(variation) = &mut self.variation {
                        variation.take(number, delay);
                    }
                    self.both += u64::from(self.damaged.has(number));
                }
            }
            Arrival::Corrupt(Some(signature)) if self.is_ours(&signature) => {
                self.corrupted += 1;
                let number = self.sequence.whole(signature.sequence);
                if self.damaged.take(number) {
                    self.both += u64::from(self.sequence.has(number));
                }
            }
            Arrival::Corrupt(None) => {
                self.corrupted += 1;
                self.unreadable += 1;
            }
            Arrival::Intact(_) | Arrival::Corrupt(Some(_)) => self.stray += 1,
            Arrival::Foreign => self.foreign += 1,
        }
    }

    #[inline]
    fn is_ours(&self, signature: &Signature) -> bool {
        signature.trial == self.trial && signature.stream == self.stream
    }

    /// Frames that arrived intact so far, each counted once.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.sequence.unique()
    }

    /// The counts, of which the sender knows `offered` and `refused`.
    #[must_use]
    pub fn counts(&self, offered: u64, refused: u64) -> Counts {
        let delivered = self.sequence.unique();
        let only_damaged = (self.damaged.unique() - self.both) + self.unreadable;
        Counts {
            offered,
            refused,
            delivered,
            lost: offered.saturating_sub(delivered + only_damaged),
            corrupted: self.corrupted,
            duplicated: self.sequence.duplicated(),
            reordered: self.sequence.reordered(),
            reordering_extent: self.sequence.extent(),
            untraceable: self.sequence.untraceable(),
            stray: self.stray,
            foreign: self.foreign,
        }
    }

    /// How delays differed from one frame to the next; `None`: nobody looked.
    #[must_use]
    pub fn variation(&self) -> Option<&Variation> {
        self.variation.as_ref()
    }

    /// How long the frames took.
    #[must_use]
    pub fn latency(&self) -> &Latency {
        &self.latency
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signature(sequence: u64) -> Signature {
        Signature { trial: 1, stream: 0, sequence, sent: 100 * sequence }
    }

    #[test]
    fn each_fate_is_counted_as_what_it_is() {
        let mut receiver = Receiver::new(1, 0).watching_variation();
        // Of frames 0 to 9, 3 is lost, 5 is damaged, 7 comes twice, 8 comes after 9.
        for (sequence, now) in [
            (0, 50),
            (1, 150),
            (2, 250),
            (4, 450),
            (6, 650),
            (7, 750),
            (7, 751),
            (9, 950),
            (8, 1850),
        ] {
            receiver.take(Arrival::Intact(signature(sequence)), now);
        }
        receiver.take(Arrival::Corrupt(Some(signature(5))), 560);
        receiver.take(Arrival::Foreign, 570);
        receiver.take(Arrival::Intact(Signature { trial: 2, ..signature(3) }), 580);
        receiver.take(Arrival::Intact(Signature { stream: 1, ..signature(3) }), 590);
        receiver.take(Arrival::Corrupt(Some(Signature { trial: 0, ..signature(3) })), 590);
        let counts = receiver.counts(10, 1);
        let expected = Counts {
            offered: 10,
            refused: 1,
            delivered: 8,
            lost: 1,
            corrupted: 1,
            duplicated: 1,
            reordered: 1,
            reordering_extent: 1,
            untraceable: 0,
            stray: 3,
            foreign: 1,
        };
        assert_eq!(counts, expected);
        assert_eq!(counts.loss(), 0.2);
        // Eight frames, of which one took 1050 ns and all others 50: copies are not measured.
        let latency = receiver.latency().summary().unwrap();
        assert_eq!((latency.frames, latency.least, latency.most), (8, 50, 1050));
        // 0, 1, 2; 6, 7 are pairs.
        let variation = receiver.variation().unwrap().summary().unwrap();
        assert_eq!((variation.pairs, variation.least, variation.most), (3, 0, 0));
        assert!(Receiver::new(1, 0).variation().is_none());
    }

    #[test]
    fn a_damaged_copy_hides_no_loss() {
        let mut receiver = Receiver::new(1, 0);
        // 0 arrives intact and damaged, 1 twice damaged, 2 damaged and then intact, 3 never.
        for (sequence, intact) in
            [(0, true), (0, false), (1, false), (1, false), (2, false), (2, true)]
        {
            let signature = signature(sequence);
            let arrival =
                if intact { Arrival::Intact(signature) } else { Arrival::Corrupt(Some(signature)) };
            receiver.take(arrival, 1000);
        }
        let counts = receiver.counts(4, 0);
        assert_eq!((counts.delivered, counts.corrupted, counts.lost), (2, 4, 1));
        assert_eq!(counts.loss(), 0.5);
    }

    #[test]
    fn frames_are_told_apart_when_their_numbers_begin_again() {
        let mut receiver = Receiver::new(1, 0).watching_variation();
        // As the wire has it: the low bits.
        let read = |number| {
            let whole = Signature { trial: 1, stream: 0, sequence: number, sent: 10 };
            Signature::read(&whole.bytes()).unwrap()
        };
        let all = Signature::SEQUENCES;
        // The last one of the first lap is late, and the second one of the next comes twice.
        for number in [all - 3, all - 2, all, all + 1, all - 1, all + 1] {
            receiver.take(Arrival::Intact(read(number)), 20);
        }
        // One that had arrived intact, and one that had not.
        for number in [all, all + 2] {
            receiver.take(Arrival::Corrupt(Some(read(number))), 20);
        }
        // From the third last of the first lap to the fourth of the next, of which the fourth is lost.
        let counts = receiver.counts(7, 0);
        let expected = Counts {
            offered: 7,
            delivered: 5,
            lost: 1,
            corrupted: 2,
            duplicated: 1,
            reordered: 1,
            reordering_extent: 2,
            ..Counts::default()
        };
        assert_eq!(counts, expected);
        assert_eq!(receiver.variation().unwrap().summary().unwrap().pairs, 2);
    }

    #[test]
    fn a_damaged_frame_without_a_signature_counts() {
        let mut receiver = Receiver::new(1, 0);
        receiver.take(Arrival::Corrupt(None), 1);
        assert_eq!((receiver.counts(1, 0).corrupted, receiver.counts(1, 0).lost), (1, 0));
        assert_eq!(Counts::default().loss(), 0.0);
    }

    #[test]
    fn streams_add_up() {
        let one = Counts { offered: 5, lost: 1, reordering_extent: 3, ..Counts::default() };
        let other = Counts { offered: 7, lost: 2, reordering_extent: 2, ..Counts::default() };
        let sum = one.plus(other);
        assert_eq!((sum.offered, sum.lost, sum.reordering_extent), (12, 3, 3));
    }
}
