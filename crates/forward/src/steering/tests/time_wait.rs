//! Who gets a FIN that comes again when its connection is over.

use wire::build::{Network, Payload, packet};
use wire::tcp::{Fields, Flags};

use super::*;

/// A segment that comes from the other end of a flow.
fn segment(flow: &Flow, flags: Flags) -> Vec<u8> {
    let fields = Fields {
        source_port: flow.remote.port(),
        destination_port: flow.local.port(),
        sequence: 1,
        acknowledgment: 1,
        flags,
        window: 1,
    };
    let network = Network::between(flow.remote.ip(), flow.local.ip(), 64).unwrap();
    let mut bytes = [0; 80];
    let payload = Payload::Tcp { fields, options: &[], data: &[] };
    let length = packet(&mut bytes, &network, &payload).unwrap();
    bytes[..length].to_vec()
}

fn fin(flow: &Flow) -> Vec<u8> {
    segment(flow, Flags::FIN | Flags::ACK)
}

#[test]
fn a_fin_finds_who_waits_and_everything_else_who_serves() {
    let mut steering = steering();
    let reader = steering.reader();
    let (server, mut claims) = stack(&mut steering);
    let (own, _) = stack(&mut steering);
    let ours = flow(Tcp, "10.0.0.1:80", "192.0.2.7:7");
    let beside = flow(Tcp, "10.0.0.1:80", "192.0.2.7:8");
    let find = |flags| reader.stack_of(&segment(&ours, flags));
    assert_eq!((find(Flags::FIN | Flags::ACK), reader.lets_send(own, &ours)), (None, false));
    steering.wait_out(own, &ours).unwrap();
    assert_eq!((find(Flags::FIN | Flags::ACK), reader.lets_send(own, &ours)), (Some(own), true));
    assert!(!reader.lets_send(own, &beside));
    let others = [Flags::SYN, Flags::ACK, Flags::RST | Flags::FIN, Flags::SYN | Flags::FIN];
    for flags in others {
        assert_eq!(find(flags), None, "{flags:?}");
    }
    // Another process serves by then.
    steering.listen(server, bind("0.0.0.0", 80), 1).unwrap();
    assert_eq!(find(Flags::FIN | Flags::ACK), Some(own));
    assert_eq!(reader.stack_of(&fin(&beside)), Some(server));
    for flags in others {
        assert_eq!(find(flags), Some(server), "{flags:?}");
    }
    // It has a connection between the same ends: accepted there, or moved to there.
    let claim = tag(KEY, Tcp, ours.local, ours.remote);
    assert!(claims.insert(claim));
    assert_eq!(find(Flags::FIN | Flags::ACK), Some(server));
    claims.remove(claim);
    assert_eq!(find(Flags::FIN | Flags::ACK), Some(own));
    steering.redirect(server, &ours).unwrap();
    assert_eq!(find(Flags::FIN | Flags::ACK), Some(server));
    steering.end_redirect(&ours).unwrap();
    assert_eq!(steering.end_wait(&ours), Some(own));
    assert_eq!(find(Flags::FIN | Flags::ACK), Some(server));
    assert!(!reader.lets_send(own, &ours));
}

#[test]
fn whoever_leases_the_port_goes_before() {
    let mut steering = steering();
    let reader = steering.reader();
    let [own, lessee] = std::array::from_fn(|_| stack(&mut steering).0);
    for (local, remote) in
        [("10.0.0.1:20001", "192.0.2.7:443"), ("[fd00::1]:20001", "[fd00::7]:443")]
    {
        let leased = flow(Tcp, local, remote);
        steering.wait_out(own, &leased).unwrap();
        assert!(steering.waits_within(20_001, 20_255) && !steering.waits_within(20_002, 20_255));
        assert_eq!(reader.stack_of(&fin(&leased)), Some(own));
        steering.lease(lessee, 20_000, 256).unwrap();
        assert_eq!(reader.stack_of(&fin(&leased)), Some(lessee));
        steering.release(lessee, 20_000).unwrap();
        assert_eq!(reader.stack_of(&fin(&leased)), Some(own));
    }
    // Nothing is left when its stack ends, and whoever has its place next has nothing of it.
    steering.remove_stack(own).unwrap();
    let next = stack(&mut steering).0;
    let leased = flow(Tcp, "10.0.0.1:20001", "192.0.2.7:443");
    assert_eq!((next.place(), reader.stack_of(&fin(&leased))), (own.place(), None));
    assert_eq!(steering.wait_out(own, &leased), Err(SteeringError::NoStack(own)));
}

#[test]
fn there_is_room_for_so_many_and_they_take_none_from_what_moves() {
    let limits = SteeringLimits { redirects: 4, time_waits: 4, ..SteeringLimits::default() };
    let mut steering = Steering::new(limits, 1, &Epoch::new()).unwrap();
    let (id, _) = stack(&mut steering);
    let nth = |port: u16| flow(Tcp, "10.0.0.1:80", &format!("192.0.2.7:{port}"));
    let full = (1..1000).find(|port| steering.wait_out(id, &nth(*port)).is_err()).unwrap();
    assert!(!steering.reader().lets_send(id, &nth(full)));
    assert_eq!(steering.wait_out(id, &nth(1)), Ok(()), "one that is there");
    for port in 1..4 {
        steering.redirect(id, &nth(port)).unwrap();
    }
    assert_eq!(steering.end_wait(&nth(1)), Some(id));
    assert_eq!(steering.wait_out(id, &nth(full)), Ok(()));
}
