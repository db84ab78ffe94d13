//! Connections that wait for a server that has yet to come.

use graph::Reason;
use millrace_forward::state::Settings;
use millrace_forward::{Cause, nodes};
use shm::session::TransportProtocol::Tcp;
use wire::tcp::Flags;

use crate::frames::from;
use crate::router::Router;
use crate::stack::segment;
use crate::{ETHERNET, syn};

#[test]
fn a_syn_waits_for_a_server_that_has_yet_to_come() {
    let mut router = Router::with_hosts();
    let old = router.add_stack();
    let listener = router.listen(&old, Tcp, "[::]:80", 1).unwrap();
    router.steering.set_vacant(listener, true);
    router.end_stack(&old);
    let (four, six) =
        (from(0, "10.0.0.1").payload(&syn(7)), from(0, "2001:db8::1").payload(&syn(7)));
    assert_eq!(router.receive(0, &[&four, &six]), []);
    let waiting: Vec<_> = std::iter::from_fn(|| router.punts.pop().ok()).collect();
    assert_eq!(waiting.len(), 2, "{:?}", router.drops());
    assert!(waiting.iter().all(|punt| punt.cause == Cause::Early as u16));
    assert_eq!(router.drops(), []);
    // Of a connection that is over: the router answers.
    let late = from(0, "10.0.0.1").payload(&segment((7, 80), Flags::ACK, &[]));
    assert_eq!(router.receive(0, &[&late]).len(), 1);
    let mut new = router.add_stack();
    router.listen(&new, Tcp, "[::]:80", 1).unwrap();
    for (punt, frame) in waiting.into_iter().zip([four, six]) {
        assert_eq!(router.inject(punt.packet, nodes::RELEASED), []);
        assert_eq!(new.one(), frame[ETHERNET..]);
    }
    router.assert_no_buffer_is_out();
}

#[test]
fn no_more_syns_wait_than_would_be_reset() {
    let mut router = Router::with_hosts();
    let old = router.add_stack();
    let listener = router.listen(&old, Tcp, "[::]:80", 1).unwrap();
    router.steering.set_vacant(listener, true);
    router.end_stack(&old);
    let settings = Settings { icmp_rate: 3, ..**router.state.settings.load() };
    router.state.settings.store(std::sync::Arc::new(settings));
    let frame = from(0, "10.0.0.1").payload(&syn(7));
    let frames: Vec<&[u8]> = (0..100).map(|_| &frame[..]).collect();
    assert_eq!(router.receive(0, &frames), []);
    let waiting: Vec<_> = std::iter::from_fn(|| router.punts.pop().ok()).collect();
    assert_eq!(waiting.len() as u64 + router.dropped(Reason::LocalPort), 100);
    assert!((1..50).contains(&waiting.len()), "{}", waiting.len());
    drop(waiting);
    router.assert_no_buffer_is_out();
}
