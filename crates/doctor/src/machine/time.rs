//! What the processor's time went to.

use std::path::Path;

use crate::root::{Fact, Root, Unread};

/// Time of all cores together since boot, in ticks of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessorTime {
    /// All of it.
    pub all: u64,
    /// Of which programs ran, or the kernel on their behalf; without interrupts.
    pub busy: u64,
    /// Of which the host of a virtual machine ran something else.
    pub stolen: u64,
}

impl ProcessorTime {
    /// Reads it from the `/proc` below a root.
    ///
    /// # Errors
    /// [`Unread`] where `/proc/stat` tells no times.
    pub fn read(root: &Path) -> Fact<Self> {
        Self::of(&Root::new(root))
    }

    /// proc_stat(5): user, nice, system, idle, iowait, irq, softirq, steal; guests' time is in the first two.
    pub(super) fn of(root: &Root) -> Fact<Self> {
        const STAT: &str = "/proc/stat";
        let text = root.text(STAT)?;
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "));
        let words = line.unwrap_or_default().split_whitespace().take(8);
        let times: Vec<u64> = words.map_while(|time| time.parse().ok()).collect();
        let all = times.iter().fold(0_u64, |sum, time| sum.saturating_add(*time));
        match times.get(7) {
            Some(stolen) if all > 0 => {
                let busy = times.iter().take(3).fold(0_u64, |sum, time| sum.saturating_add(*time));
                Ok(Self { all, busy, stolen: *stolen })
            }
            _ => Err(Unread::malformed(STAT)),
        }
    }

    /// What passed since an earlier time.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            all: self.all.saturating_sub(earlier.all),
            busy: self.busy.saturating_sub(earlier.busy),
            stolen: self.stolen.saturating_sub(earlier.stolen),
        }
    }

    /// The share that the host took: 0 to 1.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    pub fn stolen_share(self) -> f64 {
        if self.all == 0 { 0.0 } else { self.stolen as f64 / self.all as f64 }
    }
}
