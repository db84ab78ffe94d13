//! Proportional rate reduction (RFC 9937): how much to send during recovery.

/// State of a recovery.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reduction {
    /// Bytes that may be delivered during it (RecoverFS).
    flight: u64,
    /// Bytes delivered since.
    delivered: u64,
    /// Bytes sent since.
    sent: u64,
}

impl Reduction {
    /// Of no recovery.
    pub(crate) const NONE: Self = Self { flight: 0, delivered: 0, sent: 0 };

    /// A recovery begins, during which `flight` bytes may be delivered.
    pub(crate) fn begin(flight: u32) -> Self {
        Self { flight: u64::from(flight.max(1)), delivered: 0, sent: 0 }
    }

    /// Bytes were sent.
    pub(crate) fn on_sent(&mut self, bytes: u32) {
        self.sent += u64::from(bytes);
    }

    /// Bytes were delivered; gives the window (bytes) that lets out what may be sent now. `safe`: SND.UNA
    /// advances, and nothing more was found lost.
    pub(crate) fn window(
        &mut self,
        delivered: u32,
        pipe: u32,
        threshold: u32,
        mss: u32,
        safe: bool,
    ) -> u32 {
        self.delivered += u64::from(delivered);
        let share = if pipe > threshold {
            // Proportional part.
            (self.delivered * u64::from(threshold))
                .div_ceil(self.flight.max(1))
                .saturating_sub(self.sent)
        } else {
            // 6.2: conservative, with slow start's bound while recovery makes progress.
            let owed = self.delivered.saturating_sub(self.sent).max(u64::from(delivered));
            let more = if safe { u64::from(mss) } else { 0 };
            u64::from(threshold - pipe).min(owed + more)
        };
        // The first retransmission of a recovery always goes out.
        let least = if self.sent == 0 { u64::from(mss) } else { 0 };
        pipe.saturating_add(share.max(least).min(u64::from(u32::MAX)) as u32)
    }
}

/// So many bytes are never in flight.
const MOST: u64 = 1 << 31;

carried!(Reduction { flight in 0..=MOST, delivered in 0..=MOST, sent in 0..=1 << 60 });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sends_half_of_what_is_delivered() {
        let mut reduction = Reduction::begin(20_000);
        let (mut pipe, mut sent) = (19_000, 0);
        for _ in 0..10 {
            pipe -= 1000;
            let window = reduction.window(1000, pipe, 10_000, 1000, true);
            let now = (window - pipe) / 1000 * 1000;
            reduction.on_sent(now);
            pipe += now;
            sent += now;
        }
        assert_eq!(sent, 5000);
    }

    #[test]
    fn grows_back_to_the_threshold_when_much_was_lost() {
        let mut reduction = Reduction::begin(20_000);
        // RFC 9937 6.2: a segment for a segment, or two while recovery makes progress.
        let window = reduction.window(1000, 2000, 10_000, 1000, false);
        assert_eq!(window, 2000 + 1000);
        reduction.on_sent(1000);
        let window = reduction.window(1000, 2000, 10_000, 1000, true);
        assert_eq!(window, 2000 + 2000);
        reduction.on_sent(2000);
        // What was not sent before is caught up with, never beyond the threshold.
        let window = reduction.window(9000, 4000, 10_000, 1000, true);
        assert_eq!(window, 10_000);
    }
}
