//! What else the machine did while something was measured: time that the host of a virtual machine took, and other programs.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use doctor::machine::ProcessorTime;
use serde::Serialize;

use crate::process;

/// Share of the machine's time that its host may take: more disturbs what is measured.
const STOLEN: f64 = 0.01;
/// Cores that other programs may keep busy.
const OTHERS: f64 = 0.1;
/// How wrong the kernel's count may be: it looks every 10 ms or so who has a core.
const GRAIN: f64 = 0.04;

static TAKEN: AtomicU32 = AtomicU32::new(0);
static DISTURBED: AtomicU32 = AtomicU32::new(0);

/// A look at what the cores have done so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    at: Instant,
    processors: Option<ProcessorTime>,
    /// CPU time of this program, and of those that it has started: s.
    own: f64,
}

/// What others did between two looks.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub(crate) struct Disturbance {
    /// The share of all cores' time that the host took: 0 to 1.
    pub(crate) stolen: f64,
    /// Cores that other programs kept busy.
    pub(crate) others: f64,
}

/// Rounds of this run: all of them, and those that the machine disturbed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Rounds {
    taken: u32,
    disturbed: u32,
}

impl Look {
    pub(crate) fn now() -> Self {
        Self {
            at: Instant::now(),
            processors: ProcessorTime::read(Path::new("/")).ok(),
            own: process::cpu_of_all(),
        }
    }

    /// What happened since.
    pub(crate) fn since(&self) -> Disturbance {
        Self::now().after(self)
    }

    /// What happened between an earlier look and this one.
    pub(crate) fn after(&self, earlier: &Self) -> Disturbance {
        let both = self.processors.zip(earlier.processors);
        let Some(passed) = both.map(|(now, then)| now.since(then)) else {
            return Disturbance::default();
        };
        let seconds = (self.at - earlier.at).as_secs_f64();
        let busy = passed.busy as f64 / rustix::param::clock_ticks_per_second() as f64;
        let others = (busy - (self.own - earlier.own) - GRAIN).max(0.0);
        Disturbance {
            stolen: passed.stolen_share(),
            others: if seconds > 0.0 { others / seconds } else { 0.0 },
        }
    }
}

impl Disturbance {
    /// The larger of both of two.
    pub(crate) fn or(self, other: Self) -> Self {
        let (stolen, others) = (self.stolen.max(other.stolen), self.others.max(other.others));
        Self { stolen, others }
    }

    /// Whether it is enough to change what is measured.
    pub(crate) fn counts(&self) -> bool {
        self.stolen > STOLEN || self.others > OTHERS
    }

    /// What there was of it, in words.
    fn words(&self) -> impl Iterator<Item = String> {
        let Self { stolen, others } = *self;
        let host = || format!("the host took {:.1} % of the machine's time", stolen * 100.0);
        let programs = || format!("other programs kept {others:.2} cores busy");
        let host = (stolen > STOLEN).then(host);
        host.into_iter().chain((others > OTHERS).then(programs))
    }
}

impl Rounds {
    /// Counts a round.
    pub(crate) fn count(disturbed: bool) {
        TAKEN.fetch_add(1, Ordering::Relaxed);
        DISTURBED.fetch_add(u32::from(disturbed), Ordering::Relaxed);
    }

    /// Those of this run.
    pub(super) fn of_this_run() -> Self {
        Self { taken: TAKEN.load(Ordering::Relaxed), disturbed: DISTURBED.load(Ordering::Relaxed) }
    }
}

/// What disturbed a run, in words: in all of it, its rounds, and the way between the cores before and after.
pub(super) fn words(all: &Disturbance, rounds: Rounds, probes: [Option<f64>; 2]) -> Vec<String> {
    let Rounds { taken, disturbed } = rounds;
    let mut words: Vec<String> = all.words().collect();
    if disturbed > 0 {
        words.push(format!("{disturbed} of {taken} rounds were disturbed"));
    }
    if let [Some(before), Some(after)] = probes {
        if !super::same_phase(&[before, after]) {
            words.push(format!(
                "from core to core and back it took {before:.0} TSC cycles before and {after:.0} after"
            ));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const CALM: Disturbance = Disturbance { stolen: 0.01, others: 0.1 };

    #[test]
    fn what_is_not_this_programs_is_others() {
        let ticks = rustix::param::clock_ticks_per_second();
        let at = Instant::now();
        let look = |seconds: u64, busy: u64, stolen: u64, own: f64| Look {
            at: at + Duration::from_secs(seconds),
            processors: Some(ProcessorTime { all: 4 * seconds * ticks + 1, busy, stolen }),
            own,
        };
        let (then, now) = (look(0, 0, 0, 1.0), look(10, 15 * ticks, 0, 11.0));
        let found = now.after(&then);
        assert!((found.others - (0.5 - GRAIN / 10.0)).abs() < 1e-9 && found.counts(), "{found:?}");
        assert_eq!(look(10, 10 * ticks, 0, 11.0).after(&then), Disturbance::default());
        assert_eq!(look(10, 0, 4 * ticks, 1.0).after(&then).stolen, 0.1);
        let blind = Look { processors: None, ..now };
        assert_eq!(blind.after(&then), Disturbance::default());
        // This process is not one of the others, whatever it does.
        assert!(Look::now().since().others >= 0.0);
    }

    #[test]
    fn a_disturbed_run_says_by_what() {
        let none = Rounds { taken: 5, disturbed: 0 };
        assert!(words(&CALM, none, [Some(300.0), Some(400.0)]).is_empty());
        assert!(words(&CALM, none, [None, None]).is_empty());
        let all = Disturbance { stolen: 0.031, others: 0.87 };
        let said = words(&all, Rounds { taken: 8, disturbed: 3 }, [Some(300.0), Some(900.0)]);
        let [host, programs, rounds, phase] = &said[..] else { panic!("{said:?}") };
        assert!(host.contains("3.1 %") && programs.contains("0.87 cores"), "{said:?}");
        assert!(rounds.starts_with("3 of 8") && phase.contains("300"), "{said:?}");
        let said = words(&CALM, Rounds { taken: 2, disturbed: 2 }, [None, None]);
        assert_eq!(said, ["2 of 2 rounds were disturbed"]);
    }
}
