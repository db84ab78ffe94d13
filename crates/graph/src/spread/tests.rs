use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::testbed::{packet, pool};
use crate::{Doorbell, HandoffReceiver, ring};

const WORKERS: usize = 3;

/// A spread over three workers, the first being the poller.
fn spread(room: usize) -> (Spread, Vec<HandoffReceiver<Buffer>>) {
    let doorbell = Arc::new(Doorbell::new().unwrap());
    let (senders, receivers): (Vec<_>, Vec<_>) =
        (1..WORKERS).map(|_| ring(room, Arc::clone(&doorbell))).unzip();
    let workers = std::iter::once(None).chain(senders.into_iter().map(Some)).collect();
    (Spread::new(workers), receivers)
}

/// A UDP packet of a flow; `number` is in its identification field, `fragment` in its offset.
fn udp(flow: u8, number: u8, fragment: u8, tagged: bool) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    if tagged {
        bytes.extend([0x81, 0, 0, 7]);
    }
    bytes.extend([8, 0, 0x45, 0, 0, 28, 0, number, 0, fragment, 64, 17, 0, 0]);
    bytes.extend([10, 0, 0, 1, 10, 0, 0, 2, 16, flow, 0, 53, 0, 8, 0, 0]);
    bytes
}

fn number(buffer: &Buffer) -> (u8, u8) {
    let data = buffer.data();
    (data[14 + 21], data[14 + 5])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn flows_stay_together_and_in_order(flows in proptest::collection::vec(0..40_u8, 1..200)) {
        let (mut spread, mut rings) = spread(256);
        let mut burst: Vec<Option<Buffer>> = Vec::new();
        for (number, flow) in flows.iter().enumerate() {
            burst.push(Some(packet(&pool(), &udp(*flow, number as u8, 0, false))));
        }
        let (own, refused) = spread.sort(&mut burst);
        prop_assert_eq!(refused, 0);
        prop_assert!(burst[..own].iter().all(Option::is_some));
        prop_assert!(burst[own..].iter().all(Option::is_none));
        let mut seen = vec![burst.iter().flatten().map(number).collect::<Vec<_>>()];
        for ring in &mut rings {
            let packets = std::iter::from_fn(|| ring.pop().ok());
            seen.push(packets.map(|packet| number(&packet)).collect());
        }
        prop_assert_eq!(seen.iter().map(Vec::len).sum::<usize>(), flows.len());
        for flow in 0..40 {
            let of_flow = |list: &Vec<(u8, u8)>| -> Vec<u8> {
                list.iter().filter(|seen| seen.0 == flow).map(|seen| seen.1).collect()
            };
            let parts: Vec<_> = seen.iter().map(of_flow).filter(|part| !part.is_empty()).collect();
            prop_assert!(parts.len() <= 1, "flow {} went to {} workers", flow, parts.len());
            prop_assert!(parts.iter().all(|part| part.is_sorted()));
        }
    }
}

#[test]
fn many_flows_reach_all_workers() {
    let (mut spread, mut rings) = spread(256);
    let mut burst: Vec<_> =
        (0..240).map(|flow| Some(packet(&pool(), &udp(flow, 0, 0, false)))).collect();
    let (own, _) = spread.sort(&mut burst);
    let others = rings.iter_mut().map(|ring| std::iter::from_fn(|| ring.pop().ok()).count());
    let shares: Vec<usize> = std::iter::once(own).chain(others).collect();
    assert!(shares.iter().all(|share| (40..120).contains(share)), "{shares:?}");
}

#[test]
fn tags_and_fragments_do_not_tear_a_flow_apart() {
    let hash = |bytes: &[u8]| flow_hash(&packet(&pool(), bytes));
    assert_eq!(hash(&udp(1, 0, 0, false)), hash(&udp(1, 9, 0, true)));
    assert_ne!(hash(&udp(1, 0, 0, false)), hash(&udp(2, 0, 0, false)));
    // A later fragment has other bytes where the first one has its ports.
    assert_eq!(hash(&udp(1, 0, 8, false)), hash(&udp(2, 0, 16, false)));
    for length in 0..40 {
        hash(&udp(1, 0, 0, true)[..length]);
    }
}

#[test]
fn a_full_ring_gives_its_packets_back() {
    let (mut spread, _rings) = spread(1);
    let mut burst: Vec<_> =
        (0..100).map(|flow| Some(packet(&pool(), &udp(flow, 0, 0, false)))).collect();
    let (own, refused) = spread.sort(&mut burst);
    assert_eq!(own + refused, 98, "each of the two rings took one");
    assert!(burst[..98].iter().all(Option::is_some));
    assert!(burst[98..].iter().all(Option::is_none));
    let is_own = |buffer: &Option<Buffer>| {
        buffer.as_ref().is_some_and(|buffer| place(flow_hash(buffer), WORKERS) == 0)
    };
    assert!(burst[..own].iter().all(is_own) && !burst[own..].iter().any(is_own));
}
