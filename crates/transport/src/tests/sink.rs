//! A sink that is full now and then, which is no loss.

use super::pair::{ADDRESSES, pattern, random};
use crate::options::{MILLISECOND, SECOND};
use crate::*;

/// Takes some packets and refuses others.
struct Fickle<'a> {
    list: PacketList,
    refuses: &'a mut dyn FnMut() -> bool,
}

impl Sink for Fickle<'_> {
    fn buffer(&mut self, length: usize) -> Option<&mut [u8]> {
        if (self.refuses)() { None } else { self.list.buffer(length) }
    }

    fn send(&mut self, departure: Departure) {
        self.list.send(departure);
    }
}

/// Two stacks whose packets arrive at once, if they leave. Gives what the second has read, and whether it
/// has seen the end.
fn transfer(options: &Options, seed: u64, data: &[u8]) -> (Vec<u8>, bool, [Counters; 2]) {
    let stack = |seed| Stack::new(Config { seed: [seed, 1], ..Config::default() }, Rings).unwrap();
    let mut stacks = [stack(1), stack(2)];
    let mut number = random(seed * 2 + 1);
    let mut refuses = || number() % 3 == 0;
    let address = (ADDRESSES[1], 80).into();
    let mut now = SECOND;
    let listener = stacks[1].listen(address, 5, options).unwrap();
    let id = stacks[0].connect(now, ADDRESSES[0].into(), 0, address, options).unwrap();
    let (mut accepted, mut written, mut read) = (None, 0, Vec::new());
    let mut buffer = vec![0; 65_536];
    let mut finished = false;
    for _ in 0..20_000 {
        now += MILLISECOND / 10;
        written += stacks[0].send(id, &data[written..]).unwrap_or(0);
        if written == data.len() {
            let _ = stacks[0].shutdown(id);
        }
        accepted = accepted.or_else(|| stacks[1].accept(listener));
        for side in [0, 1] {
            let mut sink = Fickle { list: PacketList::default(), refuses: &mut refuses };
            stacks[side].expire(now, &mut sink);
            stacks[side].flush(now, &mut sink);
            for packet in std::mem::take(&mut sink.list.packets) {
                let mut sink = Fickle { list: PacketList::default(), refuses: &mut refuses };
                stacks[1 - side].input(now, &[Packet::new(&packet)], &mut sink);
                for answer in std::mem::take(&mut sink.list.packets) {
                    let mut sink = Fickle { list: PacketList::default(), refuses: &mut refuses };
                    stacks[side].input(now, &[Packet::new(&answer)], &mut sink);
                }
            }
        }
        if let Some(accepted) = accepted {
            let count = stacks[1].recv(accepted, &mut buffer).unwrap();
            read.extend(&buffer[..count]);
            finished |= stacks[1].is_finished(accepted);
        }
    }
    (read, finished, stacks.map(|stack| stack.counters().clone()))
}

#[test]
fn nothing_is_taken_for_lost() {
    let data = pattern(300_000);
    for seed in 0..8 {
        for (ecn, sack) in [(Ecn::Passive, true), (Ecn::Accurate, true), (Ecn::Off, false)] {
            let options = Options { ecn, sack, ..Options::default() };
            let (read, finished, counters) = transfer(&options, seed, &data);
            assert!(read == data && finished, "seed {seed}: {} bytes", read.len());
            for counters in counters {
                assert!(counters.dropped(Reason::SinkFull) > 10);
                assert_eq!((counters.retransmissions, counters.timeouts), (0, 0), "seed {seed}");
            }
        }
    }
}
