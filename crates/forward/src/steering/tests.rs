use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use graph::StackId;
use shm::Segment;
use shm::claims::{self, ClaimsReader, ClaimsWriter, tag};
use shm::session::TransportProtocol::{self, Tcp, Udp};
use tables::Epoch;

use super::*;

mod model;
mod moving;
mod shares;
mod time_wait;
mod vacant;

const KEY: [u64; 2] = [3, 4];

/// Each stack is another process's, unless a test says otherwise.
static NEXT_PROCESS: AtomicU32 = AtomicU32::new(1);

fn steering() -> Steering {
    Steering::new(SteeringLimits::default(), 99, &Epoch::new()).unwrap()
}

fn stack(steering: &mut Steering) -> (StackId, ClaimsWriter) {
    stack_of(steering, 1000)
}

fn stack_of(steering: &mut Steering, user: u32) -> (StackId, ClaimsWriter) {
    let process = NEXT_PROCESS.fetch_add(1, Ordering::Relaxed);
    stack_in(steering, user, process)
}

/// A stack of that process.
fn stack_in(steering: &mut Steering, user: u32, process: u32) -> (StackId, ClaimsWriter) {
    let length = claims::bytes(64).unwrap();
    let segment = Arc::new(Segment::create("claims", length).unwrap());
    let region = segment.region(0, length).unwrap();
    let reader = ClaimsReader::new(region.clone(), 64).unwrap();
    let id = steering.add_stack(Claims { user, process, reader, key: KEY }).unwrap();
    (id, ClaimsWriter::new(region, 64).unwrap())
}

fn bind(address: &str, port: u16) -> Bind {
    Bind { protocol: Tcp, address: address.parse().unwrap(), port, only_v6: false }
}

fn flow(protocol: TransportProtocol, local: &str, remote: &str) -> Flow {
    Flow { protocol, local: local.parse().unwrap(), remote: remote.parse().unwrap() }
}

/// Buckets of each member of the first listener.
fn buckets(steering: &Steering) -> Vec<usize> {
    let view = steering.listeners().next().unwrap();
    view.members.iter().map(|member| member.buckets).collect()
}

#[test]
fn the_most_particular_listener_gets_a_flow() {
    let mut steering = steering();
    let reader = steering.reader();
    let stacks: Vec<_> = (0..6).map(|_| stack(&mut steering).0).collect();
    let only_v6 = Bind { only_v6: true, ..bind("::", 80) };
    let binds = [
        bind("10.0.0.1", 80),
        bind("0.0.0.0", 80),
        bind("::", 80),
        only_v6,
        bind("2001:db8::1", 80),
        bind("::ffff:10.0.0.2", 80),
    ];
    let listeners: Vec<_> =
        stacks.iter().zip(binds).map(|(id, bind)| steering.listen(*id, bind, 1).unwrap()).collect();
    let find = |local: &str| {
        let remote = if local.starts_with('[') { "[2001:db8::7]:7" } else { "192.0.2.7:7" };
        let found = reader.find(&flow(Tcp, local, remote), true);
        found.map(|id| stacks.iter().position(|known| *known == id).unwrap())
    };
    assert_eq!(find("10.0.0.1:80"), Some(0));
    assert_eq!(find("10.0.0.2:80"), Some(5), "a mapped address is the IPv4 one");
    assert_eq!(find("10.0.0.3:80"), Some(1));
    assert_eq!(find("[2001:db8::1]:80"), Some(4));
    assert_eq!(find("[2001:db8::2]:80"), Some(3));
    assert_eq!(find("10.0.0.1:81"), None);
    assert_eq!(reader.find(&flow(Udp, "10.0.0.1:80", "192.0.2.7:7"), false), None);
    steering.unlisten(stacks[0], listeners[0]).unwrap();
    assert_eq!(find("10.0.0.1:80"), Some(1), "the next one");
    steering.remove_stack(stacks[1]).unwrap();
    assert_eq!(find("10.0.0.1:80"), Some(2), "both versions");
    steering.remove_stack(stacks[3]).unwrap();
    assert_eq!(find("[2001:db8::2]:80"), Some(2));
    steering.remove_stack(stacks[2]).unwrap();
    assert_eq!((find("10.0.0.1:80"), find("[2001:db8::2]:80")), (None, None));
    assert!(steering.serves(Tcp, "2001:db8::1".parse().unwrap(), 80));
    assert!(!steering.serves(Tcp, "10.0.0.1".parse().unwrap(), 80));
}

#[test]
fn who_stands_by_gets_flows_only_while_all_do() {
    let mut steering = steering();
    let reader = steering.reader();
    let (master, worker) = (stack(&mut steering).0, stack(&mut steering).0);
    let listener = steering.listen(master, bind("0.0.0.0", 80), 0).unwrap();
    let open = || reader.find(&flow(Tcp, "10.0.0.1:80", "192.0.2.7:7"), true);
    assert_eq!((open(), buckets(&steering)), (Some(master), vec![256]));
    assert_eq!(steering.listen(worker, bind("0.0.0.0", 80), 3), Ok(listener));
    assert_eq!((open(), buckets(&steering)), (Some(worker), vec![0, 256]));
    steering.listen(master, bind("0.0.0.0", 80), 1).unwrap();
    assert_eq!(buckets(&steering), [64, 192]);
    steering.listen(master, bind("0.0.0.0", 80), 0).unwrap();
    steering.unlisten(worker, listener).unwrap();
    assert_eq!((open(), buckets(&steering)), (Some(master), vec![256]));
    steering.unlisten(master, listener).unwrap();
    assert_eq!(open(), None);
    let view = steering.listeners().next().unwrap();
    assert_eq!((view.members.len(), view.earlier), (0, vec![master, worker]));
}

#[test]
fn a_claimed_flow_stays_whoever_comes_and_goes() {
    let mut steering = steering();
    let reader = steering.reader();
    let (old, mut claims) = stack(&mut steering);
    let listener = steering.listen(old, bind("::", 80), 1).unwrap();
    let ours = flow(Tcp, "10.0.0.1:80", "192.0.2.7:7");
    let beside = flow(Tcp, "10.0.0.1:80", "192.0.2.7:8");
    assert!(claims.insert(tag(KEY, Tcp, ours.local, ours.remote)));
    let (new, _) = stack(&mut steering);
    steering.unlisten(old, listener).unwrap();
    assert_eq!(reader.find(&ours, false), Some(old));
    assert_eq!(reader.find(&beside, false), None, "nobody's");
    steering.listen(new, bind("::", 80), 1).unwrap();
    let found = |flow, opens| reader.find(flow, opens);
    assert_eq!((found(&ours, false), found(&ours, true)), (Some(old), Some(new)));
    assert_eq!(found(&beside, false), Some(new));
    // A more particular listener does not take it either.
    let (particular, _) = stack(&mut steering);
    steering.listen(particular, bind("10.0.0.1", 80), 1).unwrap();
    assert_eq!((found(&ours, false), found(&beside, false)), (Some(old), Some(particular)));
    // It may send as long as it lives.
    let may = |id| reader.lets_send(id, &flow(Tcp, "10.0.0.1:80", "192.0.2.7:7"));
    assert!(may(old) && may(new) && may(particular));
    assert!(!reader.lets_send(particular, &flow(Tcp, "10.0.0.2:80", "192.0.2.7:7")));
    steering.remove_stack(old).unwrap();
    assert_eq!((found(&ours, false), may(old)), (Some(particular), false));
}

#[test]
fn who_served_a_port_before_takes_nothing_from_another_user() {
    let ours = flow(Tcp, "10.0.0.1:80", "192.0.2.7:7");
    for (before, after, stays) in
        [(1000, 1001, false), (1000, 1000, true), (0, 1001, true), (1000, 0, false)]
    {
        let mut steering = steering();
        let reader = steering.reader();
        let (old, mut claims) = stack_of(&mut steering, before);
        assert!(claims.insert(tag(KEY, Tcp, ours.local, ours.remote)));
        let listener = steering.listen(old, bind("0.0.0.0", 80), 1).unwrap();
        steering.unlisten(old, listener).unwrap();
        let (new, _) = stack_of(&mut steering, after);
        // Another listener, of the same port.
        steering.listen(new, bind("10.0.0.1", 80), 1).unwrap();
        assert_eq!(reader.find(&ours, false), Some(if stays { old } else { new }));
        let may = reader.lets_send(old, &ours);
        assert_eq!((may, steering.listeners().count()), (stays, 1 + usize::from(stays)));
        steering.listen(new, bind("0.0.0.0", 80), 1).unwrap();
        assert_eq!(reader.find(&ours, false), Some(if stays { old } else { new }));
        steering.remove_stack(old).unwrap();
    }
    // Workers of root's servers serve in root's name.
    let mut steering = steering();
    let reader = steering.reader();
    let server = |steering: &mut Steering| {
        let (master, worker) = (stack_of(steering, 0).0, stack_of(steering, 33));
        steering.listen(master, bind("0.0.0.0", 80), 0).unwrap();
        let listener = steering.listen(worker.0, bind("0.0.0.0", 80), 1).unwrap();
        steering.unlisten(worker.0, listener).unwrap();
        steering.remove_stack(master).unwrap();
        worker
    };
    let (first, mut claims) = server(&mut steering);
    assert!(claims.insert(tag(KEY, Tcp, ours.local, ours.remote)));
    let (_, _next) = server(&mut steering);
    assert_eq!(reader.find(&ours, false), Some(first));
    let other = stack_of(&mut steering, 1000).0;
    steering.listen(other, bind("0.0.0.0", 80), 1).unwrap();
    assert_eq!(reader.find(&ours, false), Some(other));
}

#[test]
fn a_member_of_now_is_not_forgotten_whosever_it_is() {
    let ours = flow(Tcp, "10.0.0.1:80", "192.0.2.7:7");
    let mut steering = steering();
    let (one, two) = (stack_of(&mut steering, 1000).0, stack_of(&mut steering, 1001).0);
    steering.listen(one, bind("0.0.0.0", 80), 1).unwrap();
    steering.listen(two, bind("0.0.0.0", 80), 1).unwrap();
    assert_eq!(buckets(&steering), [128, 128]);
    let may = |id| steering.reader().lets_send(id, &ours);
    assert!(may(one) && may(two));
}

#[test]
fn leases_are_of_one_stack_and_of_no_listener() {
    let mut steering = steering();
    let reader = steering.reader();
    let (a, b) = (stack(&mut steering).0, stack(&mut steering).0);
    steering.lease(a, 20_000, 256).unwrap();
    let answer = |port: u16| {
        let local = format!("10.0.0.1:{port}");
        [Tcp, Udp].map(|protocol| reader.find(&flow(protocol, &local, "192.0.2.7:7"), false))
    };
    assert_eq!((answer(20_000), answer(20_255)), ([Some(a); 2], [Some(a); 2]));
    assert_eq!((answer(19_999), answer(20_256)), ([None; 2], [None; 2]));
    let leased = SteeringError::Leased { port: 20_255, by: a };
    assert_eq!(steering.lease(b, 20_255, 10), Err(leased));
    assert_eq!(answer(20_256), [None; 2], "all or nothing");
    assert_eq!(steering.listen(b, bind("0.0.0.0", 20_255), 1), Err(leased));
    assert_eq!(steering.listen(b, bind("0.0.0.0", 0), 1), Err(SteeringError::NoPort));
    steering.listen(b, bind("0.0.0.0", 30_000), 1).unwrap();
    assert_eq!(steering.lease(a, 29_990, 11), Err(SteeringError::Served(30_000)));
    for (first, count) in [(0, 10), (10, 0), (65_535, 2)] {
        assert_eq!(steering.lease(a, first, count), Err(SteeringError::NoPort));
    }
    steering.lease(b, 65_535, 1).unwrap();
    assert_eq!(answer(65_535), [Some(b); 2]);
    let none = SteeringError::NoLease { stack: b, first: 20_000 };
    assert_eq!(steering.release(b, 20_000), Err(none));
    steering.release(a, 20_000).unwrap();
    assert_eq!((steering.lessee(20_000), answer(20_000)), (None, [None; 2]));
    steering.lease(b, 20_000, 256).unwrap();
    steering.remove_stack(b).unwrap();
    assert_eq!((answer(20_000), answer(65_535), answer(30_000)), ([None; 2], [None; 2], [None; 2]));
    assert_eq!(steering.remove_stack(b), Err(SteeringError::NoStack(b)));
    assert_eq!(steering.lease(b, 20_000, 256), Err(SteeringError::NoStack(b)));
}

#[test]
fn there_is_room_for_so_many_and_no_more() {
    let limits =
        SteeringLimits { stacks: 2, listeners: 3, of_stack: 2, ..SteeringLimits::default() };
    let mut steering = Steering::new(limits, 1, &Epoch::new()).unwrap();
    let (a, b) = (stack(&mut steering).0, stack(&mut steering).0);
    let length = claims::bytes(64).unwrap();
    let segment = Arc::new(Segment::create("claims", length).unwrap());
    let reader = ClaimsReader::new(segment.region(0, length).unwrap(), 64).unwrap();
    let third = steering.add_stack(Claims { user: 1, process: 1, reader, key: KEY });
    assert_eq!(third, Err(SteeringError::TooManyStacks(2)));
    let first = steering.listen(a, bind("0.0.0.0", 1), 1).unwrap();
    steering.listen(a, bind("0.0.0.0", 2), 1).unwrap();
    let full = SteeringError::TooManyOfStack(2);
    assert_eq!(steering.listen(a, bind("0.0.0.0", 3), 1), Err(full));
    assert_eq!(steering.listen(a, bind("0.0.0.0", 1), 5), Ok(first), "it has that already");
    steering.listen(b, bind("0.0.0.0", 4), 1).unwrap();
    let full = SteeringError::TooManyListeners(3);
    assert_eq!(steering.listen(b, bind("0.0.0.0", 5), 1), Err(full));
    // What it has left longest ago is forgotten first.
    steering.unlisten(a, first).unwrap();
    let none = SteeringError::NoMember { stack: a, listener: first };
    assert_eq!(steering.unlisten(a, first), Err(none));
    steering.listen(a, bind("0.0.0.0", 3), 1).unwrap();
    let ports: Vec<u16> = steering.listeners().map(|view| view.bind.port).collect();
    assert_eq!(ports, [2, 4, 3]);
    assert_eq!((steering.listeners_of(a), steering.forget_left(a)), (2, false), "it has left none");
    // A place is free again at once, under another name.
    steering.remove_stack(a).unwrap();
    let number = steering.next_number();
    let next = stack_in(&mut steering, 1000, 5).0;
    assert_eq!((steering.process_of(a), steering.process_of(next)), (None, Some(5)));
    assert_eq!((next.place(), next == a), (a.place(), false));
    assert_eq!((next.number(), next.to_string()), (number, number.to_string()));
    assert!(number > b.number(), "no other has had the number");
    assert_eq!(steering.listen(a, bind("0.0.0.0", 9), 1), Err(SteeringError::NoStack(a)));
}

#[test]
fn others_leave_room_for_root() {
    let limits = SteeringLimits { stacks: 16, listeners: 8, ..SteeringLimits::default() };
    let mut steering = Steering::new(limits, 1, &Epoch::new()).unwrap();
    let others: Vec<StackId> = (0..14).map(|user| stack_of(&mut steering, 1 + user).0).collect();
    let add = |steering: &mut Steering, user| {
        let segment = Arc::new(Segment::create("claims", 4096).unwrap());
        let region = segment.region(0, claims::bytes(64).unwrap()).unwrap();
        let reader = ClaimsReader::new(region, 64).unwrap();
        steering.add_stack(Claims { user, process: 1, reader, key: KEY })
    };
    assert_eq!(add(&mut steering, 1), Err(SteeringError::TooManyStacks(14)));
    let root = add(&mut steering, 0).unwrap();
    steering.remove_stack(others[0]).unwrap();
    // Root's takes a place that was another's: there are as many as before.
    add(&mut steering, 0).unwrap();
    assert_eq!(add(&mut steering, 1), Err(SteeringError::TooManyStacks(14)));
    add(&mut steering, 0).unwrap();
    assert_eq!(add(&mut steering, 0), Err(SteeringError::TooManyStacks(16)));
    for port in 1..8 {
        steering.listen(others[1], bind("0.0.0.0", port), 1).unwrap();
    }
    let full = SteeringError::TooManyListeners(7);
    assert_eq!(steering.listen(others[2], bind("0.0.0.0", 8), 1), Err(full));
    steering.listen(others[2], bind("0.0.0.0", 7), 1).unwrap();
    steering.listen(root, bind("0.0.0.0", 8), 1).unwrap();
    let full = SteeringError::TooManyListeners(8);
    assert_eq!(steering.listen(root, bind("0.0.0.0", 9), 1), Err(full));
}

#[test]
fn what_workers_may_look_at_stays_until_they_have_looked_again() {
    let epoch = Epoch::new();
    let mut steering = Steering::new(SteeringLimits::default(), 1, &epoch).unwrap();
    let (id, _) = stack(&mut steering);
    let worker = epoch.register().unwrap();
    worker.quiescent();
    let listener = steering.listen(id, bind("0.0.0.0", 80), 1).unwrap();
    steering.unlisten(id, listener).unwrap();
    steering.listen(id, bind("0.0.0.0", 80), 1).unwrap();
    assert_eq!(steering.waiting(), 2);
    worker.quiescent();
    steering.reclaim();
    assert_eq!(steering.waiting(), 0);
}
