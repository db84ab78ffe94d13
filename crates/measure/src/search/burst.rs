//! Back-to-back frames (RFC 2544 26.4, RFC 9004): the longest burst at full rate of which no frame is lost.

use serde::Serialize;

use super::throughput::{Strategy, Throughput};

/// A search for the longest burst, several times over.
#[derive(Debug, Clone)]
pub struct Burst {
    longest: u32,
    repeats: u32,
    search: Throughput,
    /// Whether the trial of the shortest burst that failed in this search was void.
    is_void: bool,
    lengths: Vec<u32>,
    void: u32,
}

/// What the repeated searches gave.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BurstSummary {
    /// How many searches have an answer.
    pub searches: u32,
    /// How many have none, as the trial above the longest burst was void: the sender could do no more, the device perhaps.
    pub void: u32,
    /// Frames: mean of the longest bursts. It is what RFC 9004 6 has reported.
    pub mean: f64,
    /// The shortest of them.
    pub least: u32,
    /// The longest of them.
    pub most: u32,
    /// Standard deviation.
    pub deviation: f64,
    /// Whether the longest burst that was tried passed in any of them: the buffer may be larger than this can tell.
    pub at_limit: bool,
    /// Time that the device's buffer holds, corrected for what left it meanwhile (RFC 9004 6): s. `None`: the device forwards at
    /// full rate, and a burst tells nothing of its buffer; or its throughput is not known.
    pub buffer: Option<f64>,
}

impl Burst {
    /// Bursts of up to `longest` frames; RFC 9004 5.3 wants 50 searches or more, and bursts of up to 2 s or more.
    #[must_use]
    pub fn new(longest: u32, repeats: u32) -> Self {
        let search = Throughput::new(Strategy::Bisection, longest);
        Self { longest, repeats, search, is_void: false, lengths: Vec::new(), void: 0 }
    }

    /// The length of the next burst: frames; `None`: all searches are over.
    #[must_use]
    pub fn next(&self) -> Option<u32> {
        if self.done() >= self.repeats { None } else { self.search.next() }
    }

    /// Tells whether a burst passed; `None`: its trial was void.
    pub fn tell(&mut self, length: u32, passed: Option<bool>) {
        if passed != Some(true) {
            // Each burst that fails is shorter than all before it.
            self.is_void = passed.is_none();
        }
        self.search.tell(length, passed == Some(true));
        if self.search.next().is_none() {
            if self.is_void {
                self.void += 1;
            } else {
                self.lengths.push(self.search.answer().unwrap_or(0));
            }
            self.is_void = false;
            self.search = Throughput::new(Strategy::Bisection, self.longest);
        }
    }

    /// Searches that are over.
    #[must_use]
    pub fn done(&self) -> u32 {
        self.lengths.len() as u32 + self.void
    }

    /// What the searches gave that are over; `None`: none is, or none has an answer. `throughput` and `line_rate`: frames/s.
    #[must_use]
    pub fn summary(&self, throughput: f64, line_rate: f64) -> Option<BurstSummary> {
        let (least, most) = (*self.lengths.iter().min()?, *self.lengths.iter().max()?);
        let count = self.lengths.len() as f64;
        let values = || self.lengths.iter().map(|length| f64::from(*length));
        let mean = values().sum::<f64>() / count;
        let deviation = (values().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt();
        // RFC 9004 6: while the burst comes, the device forwards at its throughput; only the rest is in its buffer.
        let buffer = mean / line_rate * (1.0 - throughput / line_rate);
        Some(BurstSummary {
            searches: self.lengths.len() as u32,
            void: self.void,
            mean,
            least,
            most,
            deviation,
            at_limit: most >= self.longest,
            buffer: (most < self.longest && throughput > 0.0 && throughput < line_rate)
                .then_some(buffer),
        })
    }
}
