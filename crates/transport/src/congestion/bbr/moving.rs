//! How it travels to another stack.

use super::{Bbr, Phase, State};

carried!(Bbr {
    mss in 1..=65_535,
    initial,
    state,
    window,
    saved,
    rate in 0.0..=1e18,
    rate_is_nominal,
    model,
    round,
    full,
    cycle,
    recovering,
    undo_long,
    restarted,
    probe_rtt_until @ moment,
    probe_rtt_round_over,
});

carried_as!(State {
    Self::Startup => 0 => Self::Startup,
    Self::Drain => 1 => Self::Drain,
    Self::ProbeBw(Phase::Down) => 2 => Self::ProbeBw(Phase::Down),
    Self::ProbeBw(Phase::Cruise) => 3 => Self::ProbeBw(Phase::Cruise),
    Self::ProbeBw(Phase::Refill) => 4 => Self::ProbeBw(Phase::Refill),
    Self::ProbeBw(Phase::Up) => 5 => Self::ProbeBw(Phase::Up),
    Self::ProbeRtt => 6 => Self::ProbeRtt,
});
