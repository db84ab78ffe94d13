//! What whoever closes a connection waits for (`SO_LINGER`), while others have the state.

use host::Lingering;

use crate::address::id;
use crate::call::ask;
use crate::clock::{Alarm, MILLISECOND};
use crate::process::{Held, Shared};
use crate::signals;
use crate::sleeping::wait_for;
use crate::state::{Awaited, State};

/// Between two looks at first, and at most: ns. Nobody is told what becomes of a connection that no session has.
const SOON: u64 = MILLISECOND / 10;
const SELDOM: u64 = 10 * MILLISECOND;

/// Waits for what a socket that was closed has left to send.
pub(super) fn linger<'a>(shared: &'a Shared, mut state: Held<'a>, awaited: Awaited) {
    let lingering = match awaited {
        Awaited::Peer(lingering) => Some(lingering),
        Awaited::Worker(own) => {
            let (after, closed) = ask(shared, state, |sessions| Ok(sessions.close(id(own))));
            state = after;
            state.release(own);
            closed.ok().flatten()
        }
    };
    if let Some(lingering) = lingering {
        wait_for_peer(shared, state, &lingering);
    }
}

/// A signal ends the wait, but the close is done (`sk_stream_wait_close`).
fn wait_for_peer<'a>(shared: &'a Shared, mut state: Held<'a>, lingering: &Lingering) {
    let (end, handlers) = (Alarm::after(lingering.timeout), signals::so_far());
    let waiter = state.waiters.take();
    // A stack worker is asked with the state in the hands of others.
    let over =
        |state: &mut State| !state.sessions.is_shared() && !state.sessions.is_lingering(lingering);
    let mut pause = SOON;
    loop {
        let (after, lingers) = ask(shared, state, |sessions| Ok(sessions.is_lingering(lingering)));
        state = after;
        if lingers != Ok(true) || end.is_over() || signals::came_since(handlers) {
            break;
        }
        let next = Alarm(Alarm::after(pause).0.min(end.0));
        let files = (&mut Vec::new(), std::ptr::null());
        let (after, waited) = wait_for(shared, state, waiter, files, next, over);
        state = after;
        if waited.is_err() {
            break;
        }
        pause = (2 * pause).min(SELDOM);
    }
    state.waiters.release(waiter);
}
