//! Arbitrary frames through the whole graph and the slow path behind it: nothing panics, no buffer
//! is lost, and every packet leaves, waits or is counted.
//!
//! Input: frames one after another, each with two bytes before it: its port, and its length (in
//! units of 8 bytes, the rest of the input for the last one).
#![no_main]

#[path = "../../crates/forward/tests/router/mod.rs"]
mod router;

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;
use millrace_forward::state::{Bridge, BridgeMember, Mode};

use router::Router;

fn build() -> Router {
    let mut all = router::interfaces();
    // Ports 0 and 1 route; port 2 is the only member of a bridge with an IP interface.
    let member = BridgeMember { interface: 2, vlans: vec![1, 5], untagged: Some(1) };
    all.bridges.push(Bridge {
        name: "br0".to_owned(),
        members: vec![member],
        ip: Some(3),
        ip_vlan: 1,
        ageing: 300,
        mac_limit: 8,
        vlan_filtering: true,
    });
    let mut ip = router::interface(9);
    (ip.port, ip.mode) = (None, Mode::BridgeIp(0));
    all.list.push(Some(ip));
    if let Some(interface) = &mut all.list[2] {
        interface.mode = Mode::Member { bridge: 0, member: 0 };
    }
    let mut router = Router::new(millrace_forward::rib::Miss::Unreachable, all);
    let _ = router.rib.apply(&router::routes());
    router
}

thread_local! {
    static ROUTER: RefCell<Router> = RefCell::new(build());
}

fuzz_target!(|input: &[u8]| {
    ROUTER.with_borrow_mut(|router| {
        let mut rest = input;
        while let [port, units, after @ ..] = rest {
            let length = (usize::from(*units) * 8).min(after.len()).min(2000);
            let (frame, next) = after.split_at(length);
            rest = next;
            if frame.is_empty() {
                break;
            }
            router.receive(u16::from(*port) % router::PORTS, &[frame]);
            router.learn();
            while router.punts.pop().is_ok() {}
        }
        assert_eq!(router.dropped(graph::Reason::Forgotten), 0, "a node forgot a packet");
        assert_eq!(router.dropped(graph::Reason::Loop), 0, "a packet went round");
        router.assert_no_buffer_is_out();
    });
});
