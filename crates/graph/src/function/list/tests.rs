use std::cell::Cell;
use std::sync::{Arc, Mutex};

use super::*;
use crate::Filter;
use crate::function::{BUSY_LOOKS, BUSY_SPARE, SPARE};
use crate::testbed::{Outside, own_pool, packet};

/// Notes what it is shown and takes what it wants of it.
struct Noting {
    /// UDP port that it wants; none: it is shown everything.
    filter: Option<Filter>,
    takes: bool,
    seen: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Noting {
    fn note(&self, packets: &mut [Option<Buffer>], chosen: impl Iterator<Item = usize>) {
        let numbers = chosen.filter_map(|at| {
            let number = packets[at].as_ref().map(|buffer| buffer.data()[59])?;
            if self.takes {
                packets[at] = None;
            }
            Some(number)
        });
        self.seen.lock().unwrap().push(numbers.collect());
    }
}

impl Function for Noting {
    fn receive(&mut self, _: PortId, packets: &mut [Option<Buffer>], _: &mut Exits, _: u64) {
        assert!(packets.iter().all(Option::is_some), "no gaps for one that is shown everything");
        self.note(packets, 0..packets.len());
    }

    fn wants(&self) -> Wants<'_> {
        self.filter.as_ref().map_or(Wants::All, Wants::Matching)
    }

    fn receive_chosen(
        &mut self,
        _: PortId,
        packets: &mut [Option<Buffer>],
        chosen: &[u16],
        _: &mut Exits,
        _: u64,
    ) {
        self.note(packets, chosen.iter().map(|at| usize::from(*at)));
    }
}

/// A UDP packet to that port, with a number in its last byte.
fn udp(port: u16, number: u8) -> Vec<u8> {
    let mut bytes = vec![2; 12];
    bytes.extend([8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1, 0, 9]);
    bytes.extend(port.to_be_bytes());
    bytes.resize(59, 0);
    bytes.push(number);
    bytes
}

#[test]
fn each_is_shown_what_it_wants_and_those_before_it_have_left() {
    let pool = own_pool("functions", 63);
    let mut outside = Outside::new(1, 0, 64);
    let mut functions = Functions::new();
    let mut add = |number, port: Option<u16>, takes| {
        let seen = Arc::<Mutex<Vec<_>>>::default();
        let filter = port.map(|port| Filter { destination_port: Some(port), ..Filter::default() });
        functions.add(number, Box::new(Noting { filter, takes, seen: Arc::clone(&seen) }));
        seen
    };
    // Added out of order.
    let all = add(5, None, false);
    let takes = add(1, Some(53), true);
    let same = add(2, Some(53), false);
    let other = add(3, Some(80), true);
    let never = add(4, Some(9), true);
    let after = add(6, Some(443), false);
    let ports = [53, 80, 443, 53, 443, 80];
    let frames = ports.iter().zip(0..).map(|(port, number)| udp(*port, number));
    let mut packets: Vec<_> = frames.map(|frame| Some(packet(&pool, &frame))).collect();
    let left = functions.receive(PortId::new(0), &mut packets, &mut outside.exits, 0);
    let seen = |list: &Mutex<Vec<Vec<u8>>>| std::mem::take(&mut *list.lock().unwrap());
    assert_eq!((seen(&takes), seen(&other)), (vec![vec![0, 3]], vec![vec![1, 5]]));
    assert_eq!(seen(&same), vec![Vec::<u8>::new()], "they were taken");
    assert!(seen(&never).is_empty(), "not even called");
    assert_eq!((seen(&all), seen(&after)), (vec![vec![2, 4]], vec![vec![2, 4]]));
    assert_eq!((left, packets.iter().take(2).flatten().count()), (2, 2));
    drop(packets);
    functions.remove(1);
    let mut packets = [Some(packet(&pool, &udp(53, 7)))];
    functions.receive(PortId::new(0), &mut packets, &mut outside.exits, 0);
    assert_eq!((seen(&takes).len(), seen(&same)), (0, vec![vec![7]]));
    drop(packets);
    assert_eq!(pool.available(), 63);
}

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(1 << 40) };
}

/// Cycles a second of the clock of [`copying`]: 400 may be saved.
const HERTZ: u64 = 4_000_000;

fn pass(cycles: u64) {
    NOW.set(NOW.get() + cycles);
}

/// Packets that one was shown, and those that went by.
type Seen = Arc<Mutex<(usize, usize)>>;

/// Gets copies of UDP packets to a port, in 100 cycles for each; notes what it was shown, and what not.
struct Copier {
    filter: Filter,
    seen: Seen,
}

impl Function for Copier {
    fn receive(&mut self, _: PortId, _: &mut [Option<Buffer>], _: &mut Exits, _: u64) {
        panic!("it wants some");
    }

    fn wants(&self) -> Wants<'_> {
        Wants::Copies(&self.filter)
    }

    fn receive_chosen(
        &mut self,
        _: PortId,
        _: &mut [Option<Buffer>],
        chosen: &[u16],
        _: &mut Exits,
        _: u64,
    ) {
        pass(100 * chosen.len() as u64);
        self.seen.lock().unwrap().0 += chosen.len();
    }

    fn skip(&mut self, _: PortId, packets: usize) {
        self.seen.lock().unwrap().1 += packets;
    }
}

fn copying(ports: &[u16]) -> (Functions, Vec<Seen>) {
    let mut functions = Functions::timed_by(|| NOW.get(), HERTZ);
    let seen = ports.iter().zip(1..).map(|(port, number)| {
        let seen = Seen::default();
        let filter = Filter { destination_port: Some(*port), ..Filter::default() };
        functions.add(number, Box::new(Copier { filter, seen: Arc::clone(&seen) }));
        seen
    });
    let seen = seen.collect();
    (functions, seen)
}

#[test]
fn copies_take_a_part_of_a_busy_workers_time_and_take_turns() {
    let pool = own_pool("functions-copies", 63);
    let mut outside = Outside::new(1, 0, 64);
    // The third wants nothing that comes.
    let (mut functions, seen) = copying(&[53, 53, 9, 53]);
    let mut packets: Vec<_> = (0..8).map(|n| Some(packet(&pool, &udp(53, n)))).collect();
    let mut burst = |functions: &mut Functions| {
        functions.receive(PortId::new(0), &mut packets, &mut outside.exits, 0);
        assert!(packets.iter().all(Option::is_some), "they are copies");
        functions.tell();
        seen.iter().map(|one| std::mem::take(&mut *one.lock().unwrap())).collect::<Vec<_>>()
    };
    // 400 cycles are saved, and the first takes 800: nothing is left for the others, and half of it is owed.
    assert_eq!(burst(&mut functions), [(8, 0), (0, 8), (0, 8), (0, 8)]);
    // With the 800 themselves these are 6,400: what was owed is paid, and nothing earned.
    pass(5600);
    assert_eq!(burst(&mut functions), [(0, 8); 4]);
    pass(16);
    let turns: Vec<_> = (0..3)
        .map(|_| {
            let seen = burst(&mut functions);
            pass(16 * 1000);
            seen
        })
        .collect();
    assert_eq!(turns[0], [(0, 8), (8, 0), (0, 8), (0, 8)], "the second's turn");
    // From the third to the end, and then from the beginning.
    assert_eq!(turns[1], [(0, 8), (0, 8), (0, 0), (8, 0)]);
    assert_eq!(turns[2], [(8, 0), (0, 8), (0, 8), (0, 8)]);
    // A worker that has time gives all that is saved, the first first.
    functions.send(true, 0);
    assert_eq!(burst(&mut functions), [(0, 8), (8, 0), (0, 8), (0, 8)], "busy");
    functions.send(false, 0);
    assert_eq!(burst(&mut functions), [(8, 0), (0, 8), (0, 8), (0, 8)], "not busy");
    // In the long run.
    let (began, mut copied) = (NOW.get(), 0);
    for _ in 0..6000 {
        // Too little for another burst of copies, so that nothing earned is lost.
        pass(300);
        copied += burst(&mut functions).iter().map(|seen| seen.0).sum::<usize>();
    }
    let share = 100.0 * copied as f64 / (NOW.get() - began) as f64;
    assert!((0.0615..0.0635).contains(&share), "{share}");
}

#[test]
fn what_was_missed_is_told_port_by_port_and_before_anybody_comes_or_goes() {
    let pool = own_pool("functions-missed", 63);
    let mut outside = Outside::new(1, 0, 64);
    let (mut functions, seen) = copying(&[53]);
    let mut packets = [Some(packet(&pool, &udp(53, 0)))];
    let mut miss = |functions: &mut Functions, port| {
        functions.account.earn(NOW.get());
        functions.account.spend(1000);
        functions.receive(port, &mut packets, &mut outside.exits, 0);
        seen[0].lock().unwrap().1
    };
    assert_eq!(
        [miss(&mut functions, PortId::new(0)), miss(&mut functions, PortId::new(0))],
        [0, 0]
    );
    assert_eq!(miss(&mut functions, PortId::new(1)), 2, "another port");
    assert_eq!(miss(&mut functions, PortId::new(0)), 3);
    functions.remove(1);
    assert_eq!(seen[0].lock().unwrap().1, 4);
}

#[test]
fn in_a_busy_round_functions_send_in_turns() {
    /// Takes half of a busy round's looks.
    struct Looks(Arc<Mutex<Vec<u8>>>, u8);
    impl Function for Looks {
        fn receive(&mut self, _: PortId, _: &mut [Option<Buffer>], _: &mut Exits, _: u64) {}

        fn send(&mut self, outgoing: &mut Outgoing, _: u64) -> usize {
            outgoing.looks = outgoing.looks.saturating_sub(BUSY_LOOKS / 2);
            assert_eq!(outgoing.spare, if outgoing.busy { BUSY_SPARE } else { SPARE });
            self.0.lock().unwrap().push(self.1);
            1
        }
    }
    let mut functions = Functions::timed_by(|| NOW.get(), HERTZ);
    let asked = Arc::<Mutex<Vec<u8>>>::default();
    (0..3).for_each(|n| functions.add(n.into(), Box::new(Looks(Arc::clone(&asked), n))));
    let round = |functions: &mut Functions, busy| {
        (functions.send(busy, 0), std::mem::take(&mut *asked.lock().unwrap()))
    };
    assert_eq!(round(&mut functions, true), (2, vec![0, 1]));
    assert_eq!(round(&mut functions, true), (2, vec![2, 0]));
    assert_eq!(round(&mut functions, true), (2, vec![1, 2]));
    assert_eq!(round(&mut functions, false), (3, vec![0, 1, 2]));
    assert_eq!(round(&mut functions, false), (3, vec![1, 2, 0]));
}

/// Takes long.
struct Slow;

impl Function for Slow {
    fn receive(&mut self, _: PortId, _: &mut [Option<Buffer>], _: &mut Exits, _: u64) {
        pass(1 << 30);
    }
}

#[test]
fn nobody_elses_work_is_charged_and_diverted_packets_are_not_rationed() {
    let pool = own_pool("functions-charged", 63);
    let mut outside = Outside::new(1, 0, 64);
    let (mut functions, seen) = copying(&[53, 53]);
    let diverted = Arc::<Mutex<Vec<_>>>::default();
    let filter = Some(Filter { destination_port: Some(80), ..Filter::default() });
    let divert = Noting { filter, takes: true, seen: Arc::clone(&diverted) };
    functions.add(0, Box::new(divert));
    // Between the two.
    functions.remove(2).unwrap();
    functions.add(2, Box::new(Slow));
    let last = Seen::default();
    let filter = Filter { destination_port: Some(53), ..Filter::default() };
    functions.add(3, Box::new(Copier { filter, seen: Arc::clone(&last) }));
    let mut burst = |functions: &mut Functions| {
        let frames = [80, 53, 80].iter().zip(0..).map(|(port, number)| udp(*port, number));
        let mut packets: Vec<_> = frames.map(|frame| Some(packet(&pool, &frame))).collect();
        let left = functions.receive(PortId::new(0), &mut packets, &mut outside.exits, 0);
        functions.tell();
        assert_eq!((left, packets[0].is_some(), packets[1].is_some()), (1, true, false));
        let took = |one: &Mutex<(usize, usize)>| std::mem::take(&mut *one.lock().unwrap());
        (diverted.lock().unwrap().pop().unwrap(), took(&seen[0]), took(&last))
    };
    assert_eq!(burst(&mut functions), (vec![0, 2], (1, 0), (1, 0)), "both have time");
    // Without time, what is to be diverted is, and the rest goes by unseen.
    functions.account.earn(NOW.get());
    functions.account.spend(1000);
    assert_eq!(burst(&mut functions), (vec![0, 2], (0, 1), (0, 1)));
    assert_eq!(pool.available(), 63);
}
