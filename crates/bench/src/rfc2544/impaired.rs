//! A device with known faults: it forwards between two ports and does to frames what it is told, so that what the tester
//! finds can be compared with what was done.

use std::collections::VecDeque;
use std::time::Duration;

use dpdk::{Buffer, BufferPool, EalOptions, Memory, RxQueue, TxQueue};

use super::args::{Faults, Impaired};
use super::bed;
use super::clock::Clock;
use crate::failure::Failure;
use crate::{machine, port};

const BURST: usize = 32;
/// Frames of a lapse.
const LAPSE: u64 = 5000;
/// How long a pause is.
const PAUSE: Duration = Duration::from_millis(400);
/// How long a frame may be held back that no other follows: ns.
const LONGEST_HELD: u64 = 10_000_000;
/// How often a frame is offered to a link that does not take it; then the peer is gone.
const TRIES: u32 = 1 << 20;

/// What happens to a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Fate {
    dropped: bool,
    doubled: bool,
    held_back: bool,
    corrupted: bool,
    pauses: bool,
}

/// The fates of one direction's frames.
#[derive(Debug, Clone)]
struct Fates {
    faults: Faults,
    frames: u64,
}

impl Fates {
    fn next(&mut self) -> Fate {
        self.frames += 1;
        let turn = |every: u64| every > 0 && self.frames % every == 0;
        let Faults { drop, duplicate, reorder, corrupt, delay: _, lapse, pause } = self.faults;
        let lapses = lapse > 0 && (lapse..lapse + LAPSE).contains(&self.frames);
        Fate {
            dropped: turn(drop) || lapses,
            doubled: turn(duplicate),
            held_back: turn(reorder),
            corrupted: turn(corrupt),
            pauses: self.frames == pause,
        }
    }
}

/// One direction.
struct Direction {
    rx: RxQueue,
    tx: TxQueue,
    fates: Fates,
    /// Waits for the frame that follows it, but not for ever: ns.
    held_back: Option<(u64, Buffer)>,
    /// Frames in the order in which they leave, and when: ns.
    waiting: VecDeque<(u64, Buffer)>,
}

impl Direction {
    /// Takes what has come, and sends what is due.
    fn turn(&mut self, pool: &BufferPool, clock: &Clock) {
        let mut slots = [const { None }; BURST];
        let count = self.rx.burst(&mut slots);
        let now = clock.now();
        let due = now + self.fates.faults.delay * 1000;
        for buffer in slots[..count].iter_mut().filter_map(Option::take) {
            self.take(buffer, due, pool);
        }
        if self.held_back.as_ref().is_some_and(|(until, _)| *until <= now) {
            self.waiting.extend(self.held_back.take());
        }
        let ready = self.waiting.iter().take(BURST).take_while(|(due, _)| *due <= now).count();
        let mut slots = [const { None }; BURST];
        for (slot, (_, buffer)) in slots.iter_mut().zip(self.waiting.drain(..ready)) {
            *slot = Some(buffer);
        }
        // What the link does not take at once is offered again: nothing is lost that is not to be.
        let mut sent = 0;
        for _ in 0..TRIES {
            sent += self.tx.burst(&mut slots[sent..ready]).packets;
            if sent == ready {
                break;
            }
        }
        dpdk::free_bulk(&mut slots[sent..ready]);
    }

    fn take(&mut self, mut buffer: Buffer, due: u64, pool: &BufferPool) {
        let fate = self.fates.next();
        if fate.pauses {
            std::thread::sleep(PAUSE);
        }
        if fate.dropped {
            return;
        }
        if let (true, Some(byte)) = (fate.corrupted, buffer.data_mut().last_mut()) {
            *byte ^= 1;
        }
        let copy = if fate.doubled { buffer.copy(pool) } else { None };
        if fate.held_back && self.held_back.is_none() {
            self.held_back = Some((due + LONGEST_HELD, buffer));
        } else {
            self.waiting.push_back((due, buffer));
            self.waiting.extend(self.held_back.take().map(|(_, late)| (due, late)));
        }
        self.waiting.extend(copy.map(|copy| (due, copy)));
    }
}

/// Forwards until it is ended.
pub(crate) fn run(args: &Impaired) -> Result<(), Failure> {
    machine::pin(args.core)?;
    dpdk::Eal::init(&EalOptions { memory: Memory::Plain, ..EalOptions::default() })?;
    let pool = bed::pool("impaired")?;
    let (mut ports, mut queues) = (Vec::new(), Vec::new());
    for name in &args.ports {
        let (port, rx, tx) = port::open(&name.parse()?, pool, None)?;
        ports.push(port);
        queues.push((rx, tx));
    }
    let (Some((rx_right, tx_right)), Some((rx_left, tx_left))) = (queues.pop(), queues.pop())
    else {
        return Err(Failure::NoQueue);
    };
    let direction = |rx, tx| {
        let fates = Fates { faults: args.faults, frames: 0 };
        Direction { rx, tx, fates, held_back: None, waiting: VecDeque::new() }
    };
    let mut directions = [direction(rx_left, tx_right), direction(rx_right, tx_left)];
    let clock = Clock::start();
    loop {
        directions.iter_mut().for_each(|direction| direction.turn(&pool, &clock));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fates_come_as_often_as_was_asked_for() {
        let faults = Faults { drop: 10, duplicate: 3, corrupt: 1, ..Faults::default() };
        let mut fates = Fates { faults, frames: 0 };
        let all: Vec<Fate> = (0..30).map(|_| fates.next()).collect();
        let count = |which: fn(&Fate) -> bool| all.iter().filter(|fate| which(fate)).count();
        assert_eq!(count(|fate| fate.dropped), 3);
        assert_eq!(count(|fate| fate.doubled), 10);
        assert_eq!(count(|fate| fate.held_back), 0);
        assert_eq!(count(|fate| fate.corrupted), 30);
        assert!(all[9].dropped && all[2].doubled);
        let mut once = Fates { faults: Faults { lapse: 7, ..Faults::default() }, frames: 0 };
        let dropped: Vec<u64> = (1..9000).filter(|_| once.next().dropped).collect();
        assert!(dropped.into_iter().eq(7..5007));
        let mut once = Fates { faults: Faults { pause: 7, ..Faults::default() }, frames: 0 };
        assert!((1..100).filter(|_| once.next().pauses).eq([7]));
    }
}
