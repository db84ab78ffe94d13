//! The states of one neighbour and what moves it: RFC 4861 7.3 and appendix C, for ARP as well.

use wire::MacAddr;

/// How much is known of a neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is being asked for; nothing is known.
    Incomplete,
    /// It answered lately.
    Reachable,
    /// It was known; nobody has asked since it may have changed.
    Stale,
    /// It was used while stale: a sign of life may come by itself.
    Delay,
    /// It is being asked whether it is still there.
    Probe,
    /// It did not answer: packets to it are refused for a while.
    Failed,
    /// It was configured.
    Permanent,
}

/// What happens to a neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// A packet was sent to it, or waits to be.
    Used,
    /// The time that was waited for has come.
    Timeout,
    /// It said its address while asking for something else: no proof that it hears us.
    Heard(MacAddr),
    /// It answered, or announced itself. An ARP reply overrides.
    Answered {
        /// Its address, where it said it.
        mac: Option<MacAddr>,
        /// It answers what we asked.
        solicited: bool,
        /// What it says replaces what was known.
        overrides: bool,
    },
}

/// How long until the next [`Event::Timeout`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// The time between two questions.
    Retransmit,
    /// The time that an answer is believed.
    Reachable,
    /// The time that a sign of life may take.
    DelayFirst,
    /// The time that an unused neighbour is kept.
    Unused,
    /// The time that packets are refused.
    Negative,
    /// For ever.
    Never,
}

/// How it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Probe {
    /// All on the link are asked.
    Multicast,
    /// It alone is asked, at its known address.
    Unicast,
}

/// What follows from an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Outcome {
    /// A new time to wait; `None`: the running one stays.
    pub(super) wait: Option<Wait>,
    /// A question to send.
    pub(super) probe: Option<Probe>,
    /// The neighbour is to be forgotten.
    pub(super) forget: bool,
}

/// One neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Machine {
    pub(super) state: State,
    /// Meaningless while incomplete or failed.
    pub(super) mac: MacAddr,
    /// Questions sent since it last answered.
    pub(super) probes: u8,
}

impl Machine {
    /// A neighbour that somebody has a packet for: it is asked for at once.
    pub(super) fn asked() -> (Self, Outcome) {
        let machine = Self { state: State::Incomplete, mac: MacAddr::ZERO, probes: 1 };
        (
            machine,
            Outcome { wait: Some(Wait::Retransmit), probe: Some(Probe::Multicast), forget: false },
        )
    }

    /// A neighbour that made itself known.
    pub(super) fn heard(mac: MacAddr) -> (Self, Outcome) {
        let machine = Self { state: State::Stale, mac, probes: 0 };
        (machine, Outcome { wait: Some(Wait::Unused), ..Outcome::default() })
    }

    /// A configured neighbour.
    pub(super) fn permanent(mac: MacAddr) -> (Self, Outcome) {
        let machine = Self { state: State::Permanent, mac, probes: 0 };
        (machine, Outcome { wait: Some(Wait::Never), ..Outcome::default() })
    }

    /// Whether its address is known.
    pub(super) fn is_resolved(&self) -> bool {
        !matches!(self.state, State::Incomplete | State::Failed)
    }

    /// Takes an event in; at most `max_probes` questions are asked in a row.
    pub(super) fn step(&mut self, event: Event, max_probes: u8) -> Outcome {
        if self.state == State::Permanent {
            return Outcome::default();
        }
        match event {
            Event::Used if self.state == State::Stale => self.enter(State::Delay, Wait::DelayFirst),
            Event::Used => Outcome::default(),
            Event::Timeout => self.time_out(max_probes),
            Event::Heard(mac) if !self.is_resolved() || mac != self.mac => {
                self.mac = mac;
                self.enter(State::Stale, Wait::Unused)
            }
            Event::Heard(_) => Outcome::default(),
            Event::Answered { mac, solicited, overrides } if self.is_resolved() => {
                self.answered(mac, solicited, overrides)
            }
            // RFC 4861 7.2.5: while nothing is known, an answer without an address says nothing.
            Event::Answered { mac: None, .. } => Outcome::default(),
            Event::Answered { mac: Some(mac), solicited, .. } => {
                self.mac = mac;
                if solicited {
                    self.enter(State::Reachable, Wait::Reachable)
                } else {
                    self.enter(State::Stale, Wait::Unused)
                }
            }
        }
    }

    /// An answer about a neighbour whose address is known.
    fn answered(&mut self, mac: Option<MacAddr>, solicited: bool, overrides: bool) -> Outcome {
        let differs = mac.is_some_and(|mac| mac != self.mac);
        if differs && !overrides {
            // Two stations claim the address: the known one is to be asked when it is used again.
            return match self.state {
                State::Reachable => self.enter(State::Stale, Wait::Unused),
                _ => Outcome::default(),
            };
        }
        self.mac = mac.unwrap_or(self.mac);
        match (solicited, differs) {
            (true, _) => self.enter(State::Reachable, Wait::Reachable),
            (false, true) => self.enter(State::Stale, Wait::Unused),
            (false, false) => Outcome::default(),
        }
    }

    fn time_out(&mut self, max_probes: u8) -> Outcome {
        match self.state {
            State::Incomplete | State::Probe if self.probes >= max_probes => {
                self.enter(State::Failed, Wait::Negative)
            }
            State::Incomplete => self.ask(Probe::Multicast),
            State::Probe => self.ask(Probe::Unicast),
            State::Delay => {
                self.state = State::Probe;
                self.ask(Probe::Unicast)
            }
            State::Reachable => self.enter(State::Stale, Wait::Unused),
            State::Stale | State::Failed => Outcome { forget: true, ..Outcome::default() },
            State::Permanent => Outcome::default(),
        }
    }

    fn ask(&mut self, probe: Probe) -> Outcome {
        self.probes = self.probes.saturating_add(1);
        Outcome { wait: Some(Wait::Retransmit), probe: Some(probe), forget: false }
    }

    fn enter(&mut self, state: State, wait: Wait) -> Outcome {
        self.state = state;
        self.probes = 0;
        Outcome { wait: Some(wait), ..Outcome::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: MacAddr = MacAddr::new([2, 0, 0, 0, 0, 0xa]);
    const B: MacAddr = MacAddr::new([2, 0, 0, 0, 0, 0xb]);

    fn answer(mac: Option<MacAddr>, solicited: bool, overrides: bool) -> Event {
        Event::Answered { mac, solicited, overrides }
    }

    /// RFC 4861 appendix C, row by row: state, probes sent, event, new state, new address, wait,
    /// probe. Known address before: A.
    #[test]
    fn appendix_c() {
        use State::{Delay, Failed, Incomplete, Permanent, Probe as Probing, Reachable, Stale};
        type Row = (State, u8, Event, State, MacAddr, Option<Wait>, Option<Probe>);
        let rows: [Row; 47] = [
            (Incomplete, 1, Event::Used, Incomplete, A, None, None),
            (
                Incomplete,
                1,
                Event::Timeout,
                Incomplete,
                A,
                Some(Wait::Retransmit),
                Some(Probe::Multicast),
            ),
            (Incomplete, 3, Event::Timeout, Failed, A, Some(Wait::Negative), None),
            (Incomplete, 1, answer(Some(B), false, false), Stale, B, Some(Wait::Unused), None),
            (Incomplete, 1, answer(Some(B), false, true), Stale, B, Some(Wait::Unused), None),
            (
                Incomplete,
                1,
                answer(Some(B), true, false),
                Reachable,
                B,
                Some(Wait::Reachable),
                None,
            ),
            (Incomplete, 1, answer(Some(B), true, true), Reachable, B, Some(Wait::Reachable), None),
            (Incomplete, 1, answer(None, true, true), Incomplete, A, None, None),
            (Incomplete, 1, Event::Heard(B), Stale, B, Some(Wait::Unused), None),
            (Failed, 0, answer(Some(B), true, true), Reachable, B, Some(Wait::Reachable), None),
            (Failed, 0, Event::Heard(B), Stale, B, Some(Wait::Unused), None),
            (Reachable, 0, Event::Used, Reachable, A, None, None),
            (Reachable, 0, Event::Timeout, Stale, A, Some(Wait::Unused), None),
            (Reachable, 0, answer(Some(A), true, false), Reachable, A, Some(Wait::Reachable), None),
            (Reachable, 0, answer(Some(B), true, false), Stale, A, Some(Wait::Unused), None),
            (Reachable, 0, answer(Some(B), true, true), Reachable, B, Some(Wait::Reachable), None),
            (Reachable, 0, answer(Some(A), false, false), Reachable, A, None, None),
            (Reachable, 0, answer(Some(B), false, false), Stale, A, Some(Wait::Unused), None),
            (Reachable, 0, answer(Some(A), false, true), Reachable, A, None, None),
            (Reachable, 0, answer(Some(B), false, true), Stale, B, Some(Wait::Unused), None),
            (Reachable, 0, Event::Heard(A), Reachable, A, None, None),
            (Reachable, 0, Event::Heard(B), Stale, B, Some(Wait::Unused), None),
            (Stale, 0, Event::Used, Delay, A, Some(Wait::DelayFirst), None),
            (Stale, 0, answer(Some(A), true, false), Reachable, A, Some(Wait::Reachable), None),
            (Stale, 0, answer(None, true, false), Reachable, A, Some(Wait::Reachable), None),
            (Stale, 0, answer(Some(B), true, false), Stale, A, None, None),
            (Stale, 0, answer(Some(B), true, true), Reachable, B, Some(Wait::Reachable), None),
            (Stale, 0, answer(Some(B), false, false), Stale, A, None, None),
            (Stale, 0, answer(Some(B), false, true), Stale, B, Some(Wait::Unused), None),
            (Stale, 0, Event::Heard(A), Stale, A, None, None),
            (Stale, 0, Event::Heard(B), Stale, B, Some(Wait::Unused), None),
            (Delay, 0, Event::Used, Delay, A, None, None),
            (Delay, 0, Event::Timeout, Probing, A, Some(Wait::Retransmit), Some(Probe::Unicast)),
            (Delay, 0, answer(Some(A), true, false), Reachable, A, Some(Wait::Reachable), None),
            (Delay, 0, answer(Some(B), false, false), Delay, A, None, None),
            (Delay, 0, Event::Heard(B), Stale, B, Some(Wait::Unused), None),
            (Probing, 1, Event::Used, Probing, A, None, None),
            (Probing, 1, Event::Timeout, Probing, A, Some(Wait::Retransmit), Some(Probe::Unicast)),
            (Probing, 3, Event::Timeout, Failed, A, Some(Wait::Negative), None),
            (Probing, 2, answer(Some(A), true, false), Reachable, A, Some(Wait::Reachable), None),
            (Probing, 2, answer(None, true, false), Reachable, A, Some(Wait::Reachable), None),
            (Probing, 2, answer(Some(B), true, false), Probing, A, None, None),
            (Probing, 2, answer(Some(A), false, true), Probing, A, None, None),
            (Probing, 2, answer(Some(B), false, true), Stale, B, Some(Wait::Unused), None),
            (Permanent, 0, answer(Some(B), true, true), Permanent, A, None, None),
            (Permanent, 0, Event::Heard(B), Permanent, A, None, None),
            (Permanent, 0, Event::Timeout, Permanent, A, None, None),
        ];
        for (state, probes, event, new, mac, wait, probe) in rows {
            let mut machine = Machine { state, mac: A, probes };
            let outcome = machine.step(event, 3);
            assert_eq!((machine.state, machine.mac), (new, mac), "{state:?} {event:?}");
            assert_eq!(outcome, Outcome { wait, probe, forget: false }, "{state:?} {event:?}");
        }
    }

    #[test]
    fn what_nobody_uses_or_answers_for_is_forgotten() {
        for state in [State::Stale, State::Failed] {
            let mut machine = Machine { state, mac: A, probes: 0 };
            assert!(machine.step(Event::Timeout, 3).forget);
        }
    }

    #[test]
    fn three_questions_then_failure() {
        let (mut machine, first) = Machine::asked();
        let mut questions = u8::from(first.probe.is_some());
        while machine.state == State::Incomplete {
            questions += u8::from(machine.step(Event::Timeout, 3).probe.is_some());
        }
        assert_eq!((questions, machine.state), (3, State::Failed));
    }
}
