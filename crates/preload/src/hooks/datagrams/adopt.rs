//! UDP sockets that the application receives from or waits for, in both worlds from then on.

use std::ffi::c_int;

use crate::address;
use crate::asking::change;
use crate::kinds::Kind;
use crate::process::{self, Held, Shared};
use crate::state::{adopt_datagrams, open_datagrams, serve_datagrams};

/// The state, if the stack has a socket beside the kernel's or can have one.
pub(in crate::hooks) fn served(fd: c_int) -> Option<(&'static Shared, Held<'static>)> {
    let known = process::current();
    let shared = match known {
        Some(shared) => shared,
        // An inherited one that is bound: others reach it by its port.
        None => {
            let is_bound = address::bound(fd).ok().flatten().is_some_and(|local| local.port() != 0);
            let ours = is_bound && !address::is_connected(fd);
            ours.then(process::attached).flatten()?
        }
    };
    let (state, is_served) = adopt(shared, shared.lock(), fd);
    is_served.then_some((shared, state))
}

/// The application receives, or waits for something. Gives whether the stack has a socket beside the kernel's.
pub(in crate::hooks) fn adopt<'a>(
    shared: &'a Shared,
    state: Held<'a>,
    fd: c_int,
) -> (Held<'a>, bool) {
    if state.is_served(fd) {
        return (state, true);
    }
    let (state, adopted) =
        change(shared, state, (fd, Kind::Datagrams), |state| adopt_datagrams(state, fd));
    (state, adopted == Some(true))
}

/// The application is about to watch it.
pub(in crate::hooks) fn watched<'a>(shared: &'a Shared, state: Held<'a>, fd: c_int) -> Held<'a> {
    let steps = |state| match open_datagrams(state, fd) {
        (state, Ok(())) => (serve_datagrams(state, fd), Ok(())),
        failed => failed,
    };
    let (mut state, _) = change(shared, state, (fd, Kind::Datagrams), steps);
    state.accompany(fd);
    state
}
