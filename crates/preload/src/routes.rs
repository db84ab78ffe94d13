//! What the daemon is asked in the middle of calls, while others have the state: which way packets go, which addresses are the router's,
//! and who serves there. Whoever goes on with an answer looks again what has become of its descriptor.

use std::ffi::c_int;
use std::net::{IpAddr, SocketAddr};

use shm::session::{Routed, TransportProtocol};

use crate::address::bound;
use crate::call::ask_daemon;
use crate::kinds::{self, Kind};
use crate::process::{Held, Shared};
use crate::state::is_alone;
use crate::{clock, report};

/// Links that are made for one destination without a pause.
const AT_ONCE: usize = 16;

/// The address from which a TCP socket reaches a destination by Millrace. `None`: the kernel may, unless the socket is a session.
pub(crate) fn source<'a>(
    shared: &'a Shared,
    state: Held<'a>,
    (fd, kind): (c_int, Kind),
    to: SocketAddr,
) -> (Held<'a>, Option<IpAddr>) {
    let to = SocketAddr::new(to.ip().to_canonical(), to.port());
    match route(shared, state, TransportProtocol::Tcp, to) {
        (state, Routed::Kernel) => (state, None),
        (state, Routed::Millrace { source, .. }) if kind == Kind::Session => (state, Some(source)),
        (state, Routed::Millrace { source, .. }) => {
            let (state, leaves) = can_leave_from(shared, state, fd);
            (state, leaves.then_some(source))
        }
    }
}

/// Which way datagrams to a destination go.
pub(crate) fn of_datagrams<'a>(
    shared: &'a Shared,
    state: Held<'a>,
    to: SocketAddr,
) -> (Held<'a>, Routed) {
    let end = state.host_of(to);
    let (state, routed) = route(shared, state, TransportProtocol::Udp, end);
    match routed {
        // An address that the router has got since.
        Routed::Millrace { source, .. } if source == end.ip() && end.port() == 0 => {
            let end = state.host_of(to);
            route(shared, state, TransportProtocol::Udp, end)
        }
        routed => (state, routed),
    }
}

/// Whether the router has an address, which a reload of its configuration may have changed. Yes may be a second old; before no, the
/// daemon is asked. While it is gone, its addresses stay.
pub(crate) fn has_address<'a>(shared: &'a Shared, state: Held<'a>, ip: IpAddr) -> (Held<'a>, bool) {
    let (protocol, end) = (TransportProtocol::Udp, SocketAddr::new(ip, 0));
    let is_own = |routed: Routed| matches!(routed, Routed::Millrace { source, .. } if source == ip);
    let state = if state.known_route(protocol, end).is_some_and(is_own) {
        state
    } else {
        ask_route(shared, state, protocol, end).0
    };
    let has = state.has_known_address(ip);
    (state, has)
}

/// Meets those who serve at one of the router's own addresses, before a connection there begins: gets links to them.
pub(crate) fn meet<'a>(shared: &'a Shared, mut state: Held<'a>, to: SocketAddr) -> Held<'a> {
    let end = SocketAddr::new(to.ip().to_canonical(), to.port());
    let mut introduced = None;
    for _ in 0..AT_ONCE {
        let (after, answer) = ask_daemon(shared, state, |link, stack| link.introduce(stack, end));
        state = after;
        let (answer, files) = match answer {
            Ok(answer) => answer,
            Err(error) => {
                report::say(&error.to_string());
                break;
            }
        };
        let is_made = answer.made.is_some();
        if let Some(place) = answer.made {
            state.adopt_link(place, true, files);
        }
        let is_pending = answer.neighbours.iter().any(|neighbour| neighbour.pending);
        introduced = Some(answer);
        if !is_made || !is_pending {
            break;
        }
    }
    state.meet(to, introduced);
    state
}

/// Whether a socket of the kernel's can connect from here: not one that is the kernel's alone, nor from an address that the router
/// has not.
fn can_leave_from<'a>(shared: &'a Shared, state: Held<'a>, fd: c_int) -> (Held<'a>, bool) {
    if kinds::untouched(fd).is_some() {
        return (state, true);
    }
    if is_alone(fd) {
        return (state, false);
    }
    let local = bound(fd).ok().flatten().map(|local| local.ip().to_canonical());
    match local.filter(|ip| !ip.is_unspecified()) {
        Some(ip) => has_address(shared, state, ip),
        None => (state, true),
    }
}

/// A daemon that does not answer leaves it to the kernel.
fn route<'a>(
    shared: &'a Shared,
    state: Held<'a>,
    protocol: TransportProtocol,
    to: SocketAddr,
) -> (Held<'a>, Routed) {
    match state.known_route(protocol, to) {
        Some(routed) => (state, routed),
        None => ask_route(shared, state, protocol, to),
    }
}

/// Has an answer anew.
fn ask_route<'a>(
    shared: &'a Shared,
    state: Held<'a>,
    protocol: TransportProtocol,
    to: SocketAddr,
) -> (Held<'a>, Routed) {
    let at = clock::now();
    let (mut state, asked) = ask_daemon(shared, state, |link, _| link.route(protocol, to));
    let routed = state.learn_route((protocol, to), at, asked.ok());
    (state, routed)
}
