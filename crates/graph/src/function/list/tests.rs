use std::sync::{Arc, Mutex};

use super::*;
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
    let mut functions = Functions::new(64);
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
    let left = functions.receive(0, &mut packets, &mut outside.exits, 0);
    let seen = |list: &Mutex<Vec<Vec<u8>>>| std::mem::take(&mut *list.lock().unwrap());
    assert_eq!((seen(&takes), seen(&other)), (vec![vec![0, 3]], vec![vec![1, 5]]));
    assert_eq!(seen(&same), vec![Vec::<u8>::new()], "they were taken");
    assert!(seen(&never).is_empty(), "not even called");
    assert_eq!((seen(&all), seen(&after)), (vec![vec![2, 4]], vec![vec![2, 4]]));
    assert_eq!((left, packets.iter().take(2).flatten().count()), (2, 2));
    drop(packets);
    functions.remove(1);
    let mut packets = [Some(packet(&pool, &udp(53, 7)))];
    functions.receive(0, &mut packets, &mut outside.exits, 0);
    assert_eq!((seen(&takes).len(), seen(&same)), (0, vec![vec![7]]));
    drop(packets);
    assert_eq!(pool.available(), 63);
}

#[test]
fn copies_are_few_while_the_worker_has_no_time() {
    let mut outside = Outside::new(1, 0, 64);
    let mut functions = Functions::new(4);
    let mut burst = |functions: &mut Functions, packets: usize, used: i32| {
        let mut none: Vec<Option<Buffer>> = (0..packets).map(|_| None).collect();
        functions.receive(0, &mut none, &mut outside.exits, 0);
        let had = functions.copies;
        functions.copies -= used;
        had
    };
    assert_eq!(burst(&mut functions, 4, SAVED_COPIES), SAVED_COPIES);
    let had: Vec<_> = (0..3).map(|_| burst(&mut functions, 4, 8)).collect();
    assert_eq!(had, [COPIES; 3]);
    assert_eq!(burst(&mut functions, 4, 0), COPIES);
    assert_eq!(burst(&mut functions, 4, 0), 2 * COPIES, "saved");
    assert_eq!(burst(&mut functions, 3, 0), SAVED_COPIES, "there is time");
}
