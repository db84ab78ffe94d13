//! Readiness beside a plain model: what `poll` says is what calls then do, and whoever waits for a bit that
//! comes is woken for it.

use millrace_host::{Errno, How, Id, Incoming, Mask, Sessions};
use proptest::prelude::*;

use crate::pair::{CLIENT, OVER, Pair, SERVER, poll, recv, recv_with, send};

#[derive(Debug, Clone, Copy)]
enum Step {
    Send(usize, usize),
    Recv(usize, usize),
    Shutdown(usize, How),
    LowWater(usize, i32),
    Abort(usize),
    Exchange,
    Settle,
}

fn step() -> impl Strategy<Value = Step> {
    let side = || 0..2usize;
    prop_oneof![
        6 => (side(), 0..6000usize).prop_map(|(side, count)| Step::Send(side, count)),
        6 => (side(), 0..9000usize).prop_map(|(side, count)| Step::Recv(side, count)),
        1 => (side(), prop_oneof![Just(How::Read), Just(How::Write), Just(How::Both)])
            .prop_map(|(side, how)| Step::Shutdown(side, how)),
        1 => (side(), 1..3000i32).prop_map(|(side, bytes)| Step::LowWater(side, bytes)),
        1 => side().prop_map(Step::Abort),
        5 => Just(Step::Exchange),
        5 => Just(Step::Settle),
    ]
}

const IDS: [Id; 2] = [CLIENT, SERVER];

/// What is known of one end without looking at it.
#[derive(Debug, Default, Clone)]
struct End {
    sent: usize,
    got: usize,
    shut: (bool, bool),
    low_water: usize,
    seen: Mask,
    woken: Mask,
}

struct World {
    pair: Pair,
    ends: [End; 2],
    /// A reset was sent, or may have been.
    broken: bool,
}

impl World {
    fn new() -> Self {
        let mut pair = Pair::connected();
        for (side, id) in IDS.into_iter().enumerate() {
            let sessions = &mut pair.hosts[side].sessions;
            sessions.set_option(id, 1, 7, &8000i32.to_ne_bytes()).unwrap();
            sessions.set_option(id, 1, 8, &6000i32.to_ne_bytes()).unwrap();
        }
        let seen = Mask::OUT;
        let ends = [(); 2].map(|()| End { seen, low_water: 1, ..End::default() });
        Self { pair, ends, broken: false }
    }

    fn sessions(&mut self, side: usize) -> &mut Sessions {
        &mut self.pair.hosts[side].sessions
    }

    /// The byte at this place of the stream that `side` sends.
    fn byte(side: usize, at: usize) -> u8 {
        (at % 251) as u8 ^ (side as u8) << 7
    }

    fn take(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Send(side, count) => {
                let from = self.ends[side].sent;
                let bytes: Vec<u8> = (from..from + count).map(|at| Self::byte(side, at)).collect();
                let writable = poll(self.sessions(side), IDS[side]).has(Mask::OUT);
                let result = send(self.sessions(side), IDS[side], &bytes);
                if writable && count > 0 {
                    prop_assert_ne!(result, Err(Errno::AGAIN));
                }
                if self.ends[side].shut.1 && !self.broken {
                    prop_assert_eq!(result, Err(Errno::PIPE));
                }
                self.ends[side].sent += result.unwrap_or(0);
            }
            Step::Recv(side, count) => {
                let from = self.ends[side].got;
                if let Ok(bytes) = recv(self.sessions(side), IDS[side], count) {
                    let right = bytes.iter().enumerate();
                    let mut right = right.map(|(i, byte)| *byte == Self::byte(1 - side, from + i));
                    prop_assert!(right.all(|right| right), "what is read is what was written");
                    self.ends[side].got += bytes.len();
                }
            }
            Step::Shutdown(side, how) => {
                if self.sessions(side).shutdown(IDS[side], how).is_ok() {
                    let shut = &mut self.ends[side].shut;
                    *shut = (shut.0 || how != How::Write, shut.1 || how != How::Read);
                    // What comes then may be answered with a reset.
                    self.broken |= *shut == (true, true);
                }
            }
            Step::LowWater(side, bytes) => {
                let value = bytes.to_ne_bytes();
                self.sessions(side).set_option(IDS[side], 1, 18, &value).unwrap();
                let told = self.sessions(side).option(IDS[side], 1, 18, 4).unwrap();
                let told = i32::from_ne_bytes(told[..].try_into().unwrap());
                self.ends[side].low_water = told as usize;
            }
            Step::Abort(side) => {
                if !self.broken {
                    self.sessions(side).disconnect(IDS[side]).unwrap();
                    self.broken = true;
                }
            }
            Step::Exchange => self.pair.exchange(),
            Step::Settle => {
                // Acknowledgments that wait leave too.
                self.pair.run_for(3_000_000_000);
                if !self.broken {
                    self.compare()?;
                }
            }
        }
        Ok(())
    }

    /// With nothing on the way, levels follow from what both sides have done.
    fn compare(&mut self) -> Result<(), TestCaseError> {
        for side in 0..2 {
            let (own, other) = (self.ends[side].clone(), self.ends[1 - side].clone());
            let mask = poll(self.sessions(side), IDS[side]);
            let pending = self.sessions(side).pending(IDS[side]).unwrap();
            let (unacked, _) = self.pair.hosts[1 - side].sessions.unsent(IDS[1 - side]).unwrap();
            // What came at the very end may wait for its acknowledgment.
            let known = own.got + pending + unacked;
            prop_assert!(known == other.sent || unacked > 0 && known > other.sent);
            let ended = own.shut.0 || other.shut.1 && unacked == 0;
            prop_assert_eq!(mask.has(Mask::RDHUP), ended);
            prop_assert_eq!(mask.has(Mask::HUP), ended && own.shut.1);
            prop_assert_eq!(mask.has(Mask::IN), ended || pending >= own.low_water);
            prop_assert!(!mask.has(Mask::ERR));
            let (unacked, _) = self.sessions(side).unsent(IDS[side]).unwrap();
            if unacked == 0 || own.shut.1 {
                prop_assert!(mask.has(Mask::OUT));
            }
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), TestCaseError> {
        for (side, id) in IDS.into_iter().enumerate() {
            while let Some(ready) = self.sessions(side).next_ready() {
                if ready.id == id {
                    self.ends[side].woken |= ready.woken;
                }
            }
            if self.ends[side].woken.has(Mask::ERR) {
                // Whoever waits, for whatever, waits for this too, and looks at all.
                self.ends[side].woken = Mask::ALL;
            }
            let mask = poll(self.sessions(side), id);
            let end = &mut self.ends[side];
            let gained = mask & !end.seen;
            // What the application itself changes by its calls it knows; here all is to be told.
            prop_assert!(end.woken.has(gained), "{:?} came, woken for {:?}", gained, end.woken);
            (end.seen, end.woken) = (mask, Mask::NONE);
            let low_water = end.low_water;
            let peek = Incoming { peek: true, ..Incoming::default() };
            if !mask.has(Mask::ERR) {
                let found = recv_with(self.sessions(side), id, 1, peek);
                let waits = found == Err(Errno::AGAIN);
                prop_assert!(!(mask.has(Mask::IN) && waits), "readable, and nothing to read");
                if low_water == 1 && mask & OVER == Mask::OUT {
                    prop_assert!(waits, "not readable, and {:?} to read", found);
                }
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn readiness_is_what_the_model_says(steps in proptest::collection::vec(step(), 1..120)) {
        let mut world = World::new();
        for step in steps {
            world.take(step)?;
            world.check()?;
        }
    }
}
