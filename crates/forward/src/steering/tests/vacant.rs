//! Listeners that nobody serves at the moment, and somebody may.

use super::*;

/// A TCP segment to port 80 of 10.0.0.1, without data.
fn segment(flags: u8) -> Vec<u8> {
    let mut packet = vec![0; 40];
    (packet[0], packet[3], packet[8], packet[9]) = (0x45, 40, 64, 6);
    packet[12..16].copy_from_slice(&[192, 0, 2, 7]);
    packet[16..20].copy_from_slice(&[10, 0, 0, 1]);
    packet[20..24].copy_from_slice(&[0, 7, 0, 80]);
    (packet[32], packet[33]) = (5 << 4, flags);
    packet
}

const SYN: u8 = 2;
const ACK: u8 = 16;

/// A listener that was left, and the steering that has it.
fn left() -> (Steering, ListenerId) {
    let mut steering = steering();
    let server = stack_in(&mut steering, 1000, 7).0;
    let listener = steering.listen(server, bind("0.0.0.0", 80), 1).unwrap();
    assert!(steering.is_alone(listener, 7) && !steering.is_alone(listener, 8));
    steering.set_vacant(listener, true);
    assert!(!steering.reader().is_early(&segment(SYN)), "it is served still");
    assert!(steering.is_settled(&segment(SYN)));
    steering.remove_stack(server).unwrap();
    (steering, listener)
}

#[test]
fn what_opens_a_connection_waits_while_somebody_may_serve() {
    let (mut steering, listener) = left();
    let reader = steering.reader();
    assert!(reader.is_early(&segment(SYN)) && !steering.is_settled(&segment(SYN)));
    assert!(!reader.is_early(&segment(ACK)) && !reader.is_early(&segment(SYN | ACK)));
    assert_eq!(reader.stack_of(&segment(SYN)), None);
    let mut other = segment(SYN);
    other[23] = 81;
    assert!(!reader.is_early(&other) && steering.is_settled(&other));
    assert!(!steering.serves(Tcp, "10.0.0.1".parse().unwrap(), 80));
    let (another, _) = stack(&mut steering);
    assert_eq!(steering.lease(another, 80, 1), Err(SteeringError::Served(80)));
    // Nobody will.
    steering.set_vacant(listener, false);
    assert!(!reader.is_early(&segment(SYN)) && steering.is_settled(&segment(SYN)));
    assert_eq!(steering.listeners().count(), 0, "nothing is left of it");
}

#[test]
fn whoever_serves_ends_the_wait_but_who_stands_by_does_not() {
    let (mut steering, listener) = left();
    let (reader, child) = (steering.reader(), stack(&mut steering).0);
    assert_eq!(steering.listen(child, bind("0.0.0.0", 80), 0), Ok(listener));
    assert!(!reader.is_early(&segment(SYN)) && !steering.is_settled(&segment(SYN)));
    assert_eq!(reader.stack_of(&segment(SYN)), Some(child));
    steering.listen(child, bind("0.0.0.0", 80), 1).unwrap();
    assert!(steering.is_settled(&segment(SYN)));
    // It is not vacant again by itself.
    steering.remove_stack(child).unwrap();
    assert!(!reader.is_early(&segment(SYN)) && steering.is_settled(&segment(SYN)));
    assert_eq!(steering.listeners().count(), 0);
}

#[test]
fn another_process_that_serves_has_the_listener() {
    let mut steering = steering();
    let (one, two) = (stack_in(&mut steering, 1000, 1).0, stack_in(&mut steering, 1000, 2).0);
    let listener = steering.listen(one, bind("0.0.0.0", 80), 1).unwrap();
    steering.listen(two, bind("0.0.0.0", 80), 0).unwrap();
    assert!(!steering.is_alone(listener, 1) && !steering.is_alone(listener, 2));
    steering.unlisten(two, listener).unwrap();
    assert!(steering.is_alone(listener, 1));
    assert!(!steering.is_alone(listener + 1, 1), "there is none");
}
