//! What stacks serve: what their processes have bound in the kernel.

use std::collections::BTreeSet;

use forward::steering::{Bind, ListenerId, SteeringError};
use graph::StackId;
use host::SOMAXCONN;
use shm::attach::{Refusal, RefusalKind};
use shm::session::{Bound, BoundError, Brought, Event, Listen, Listening, TransportProtocol};

use super::Sessions;
use super::bounds::Usage;
use crate::processes::{invalid, no_resources, unknown};

/// A stack's place in a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Membership {
    pub(super) bind: Bind,
    /// The user whose socket was shown.
    pub(super) owner: u32,
    /// The socket's number in the kernel.
    pub(super) inode: u64,
    /// How many connections may wait there. `None`: datagrams.
    pub(super) backlog: Option<u32>,
}

/// What a process may serve that has shown this. `namespace`: the daemon's.
///
/// Errors: what it is told.
pub(super) fn proven(shown: &Brought, namespace: u64) -> Result<Membership, Refusal> {
    let bound = match shown {
        Brought::Socket(bound) => *bound,
        Brought::Memory(_) => return Err(invalid(BoundError::NotASocket.to_string())),
        Brought::Other(why) => return Err(invalid(why)),
    };
    if bound.namespace != namespace {
        let problem = "the socket is of another network namespace than millraced: the kernel's rules \
                       there say nothing about who may serve here; run the server in millraced's \
                       namespace";
        return Err(Refusal::new(RefusalKind::Permission, problem));
    }
    if bound.protocol == TransportProtocol::Tcp && !bound.is_listening {
        return Err(invalid("the socket is bound and does not listen; call listen() first"));
    }
    let bind = Bind {
        protocol: bound.protocol,
        address: bound.address.ip(),
        port: bound.address.port(),
        only_v6: bound.only_v6,
    };
    let Bound { owner, inode, backlog, .. } = bound;
    Ok(Membership { bind, owner, inode, backlog: backlog.map(|most| most.min(SOMAXCONN)) })
}

/// Whether a packet can be for both.
fn overlap(one: &Bind, other: &Bind) -> bool {
    (one.protocol, one.port) == (other.protocol, other.port)
        && (one.serves(other.address).is_some() || other.serves(one.address).is_some())
}

impl Sessions {
    /// A stack serves what its process has shown.
    pub(super) fn listen(
        &mut self,
        id: u32,
        asked: Listen,
        proof: Membership,
    ) -> Result<Listening, Refusal> {
        let Listen { stack: number, weight, busy } = asked;
        let stack = self.stack(id, number)?;
        if stack.start.is_some() {
            return Err(invalid(format!("stack {number} has not been started")));
        }
        let (stack_id, known) =
            (stack.id, stack.listeners.values().any(|has| has.bind == proof.bind));
        if !known {
            self.admit(id, &Usage { listeners: 1, ..Usage::default() })?;
            self.admit_served(id, proof.bind.port)?;
            self.make_room(id)?;
        }
        let was_taken = self.steering.is_taken(&proof.bind);
        let listened = self.steering.listen(stack_id, proof.bind, weight);
        let listener = listened.map_err(|error| match error {
            SteeringError::Leased { port, by } => {
                let whose = self.whose(by);
                no_resources(format!(
                    "port {port} is leased to {whose} for its own connections; serve a port outside \
                     sessions.ports, or wait until it is given back"
                ))
            }
            error => no_resources(error.to_string()),
        })?;
        self.steering.set_busy(listener, stack_id, busy);
        self.stack(id, number)?.listeners.insert(listener, proof);
        self.vacancies.end(listener);
        self.evict(&proof);
        let taken = self.steering.is_taken(&proof.bind);
        if taken && !was_taken {
            self.tell_others(listener);
        }
        let Bind { protocol, address, port, only_v6 } = proof.bind;
        Ok(Listening { listener, protocol, address: (address, port).into(), only_v6, taken })
    }

    /// Tells processes that only keep a listener open, or are busy, that somebody takes its connections now. One that has no room for news
    /// asks, in time ([`Listening::taken`]).
    fn tell_others(&self, listener: ListenerId) {
        let others: BTreeSet<u32> = self
            .steering
            .others(listener)
            .filter_map(|stack| self.owner(stack))
            .map(|(process, _, _)| process)
            .collect();
        for process in others {
            self.tell(process, Event::Taken(listener));
        }
    }

    /// Makes room for one more listener of a process's user: those that the user's stacks have left, and may have flows of, take
    /// places that all users share. Each stack gives up those that it left longest ago first.
    fn make_room(&mut self, id: u32) -> Result<(), Refusal> {
        let uid = self.session(id)?.uid();
        let most = usize::try_from(self.config.load().listeners).unwrap_or(usize::MAX);
        let own = self.list.values().filter(|session| session.uid() == uid);
        let stacks: Vec<StackId> =
            own.flat_map(|session| session.stacks.values()).map(|stack| stack.id).collect();
        let mut has: usize = stacks.iter().map(|stack| self.steering.listeners_of(*stack)).sum();
        for stack in stacks {
            while has >= most && self.steering.forget_left(stack) {
                has -= 1;
            }
        }
        Ok(())
    }

    /// Takes their places from those who have shown a socket of another user: the kernel would not have let this one bind
    /// beside theirs, so theirs are closed, and prove nothing any more.
    fn evict(&mut self, proof: &Membership) {
        for session in self.list.values_mut() {
            for (number, stack) in &mut session.stacks {
                let over =
                    |has: &Membership| has.owner != proof.owner && overlap(&has.bind, &proof.bind);
                let lost: Vec<ListenerId> = stack
                    .listeners
                    .iter()
                    .filter(|(_, has)| over(has))
                    .map(|(listener, _)| *listener)
                    .collect();
                for listener in lost {
                    stack.listeners.remove(&listener);
                    let left = self.steering.unlisten(stack.id, listener);
                    self.losses.say("servers that lost their port", || {
                        tracing::warn!(
                            stack = number,
                            listener,
                            "{} no longer serves port {}: user {} has bound it; {left:?}",
                            session.name,
                            proof.bind.port,
                            proof.owner
                        );
                    });
                }
            }
        }
    }

    /// A stack gets no new flows of a listener any more.
    pub(super) fn unlisten(
        &mut self,
        id: u32,
        number: u32,
        listener: ListenerId,
    ) -> Result<(), Refusal> {
        let stack = self.stack(id, number)?;
        if stack.listeners.remove(&listener).is_none() {
            let problem = format!("stack {number} is no member of listener {listener}");
            return Err(unknown(problem));
        }
        let stack = stack.id;
        self.steering.unlisten(stack, listener).map_err(|error| unknown(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    fn bound(address: &str) -> Bound {
        Bound {
            protocol: TransportProtocol::Tcp,
            address: address.parse().unwrap(),
            is_listening: true,
            backlog: Some(128),
            only_v6: false,
            namespace: 5,
            reuse_port: false,
            owner: 33,
            inode: 6,
        }
    }

    #[test]
    fn a_socket_proves_what_the_kernel_says_of_it() {
        let good = bound("0.0.0.0:80");
        let proof = proven(&Brought::Socket(good), 5).unwrap();
        assert_eq!((proof.owner, proof.bind.port, proof.inode), (33, 80, 6));
        assert_eq!(proof.backlog, Some(128));
        let much = Bound { backlog: Some(1 << 20), ..good };
        let much = proven(&Brought::Socket(much), 5).unwrap();
        assert_eq!(much.backlog, Some(4096), "as its stack has it");
        let refused = |shown: Brought| proven(&shown, 5).unwrap_err();
        let other = refused(Brought::Socket(Bound { namespace: 6, ..good }));
        assert_eq!(other.kind, RefusalKind::Permission);
        assert!(other.message.contains("another network namespace"), "{other}");
        let deaf = Bound { is_listening: false, ..good };
        assert!(refused(Brought::Socket(deaf)).message.contains("call listen()"));
        let udp = Bound { protocol: TransportProtocol::Udp, ..deaf };
        assert!(proven(&Brought::Socket(udp), 5).is_ok(), "UDP has no listen()");
        let other = refused(Brought::Other(BoundError::NotBound.to_string()));
        assert_eq!(other.kind, RefusalKind::Invalid);
        assert!(other.message.contains("bind it first"), "{other}");
    }

    #[test]
    fn binds_overlap_where_a_packet_can_be_for_both() {
        let bind = |address: &str, only_v6| {
            let address: SocketAddr = address.parse().unwrap();
            let (protocol, port) = (TransportProtocol::Tcp, address.port());
            Bind { protocol, address: address.ip(), port, only_v6 }
        };
        let both = |a: (&str, bool), b: (&str, bool)| {
            let (a, b) = (bind(a.0, a.1), bind(b.0, b.1));
            assert_eq!(overlap(&a, &b), overlap(&b, &a));
            overlap(&a, &b)
        };
        assert!(both(("192.0.2.1:80", false), ("192.0.2.1:80", false)));
        assert!(both(("192.0.2.1:80", false), ("0.0.0.0:80", false)));
        assert!(both(("192.0.2.1:80", false), ("[::]:80", false)));
        assert!(both(("0.0.0.0:80", false), ("[::]:80", false)));
        assert!(both(("[::]:80", true), ("[::]:80", false)));
        assert!(both(("[2001:db8::1]:80", false), ("[::]:80", true)));
        assert!(!both(("192.0.2.1:80", false), ("192.0.2.2:80", false)));
        assert!(!both(("192.0.2.1:80", false), ("0.0.0.0:81", false)));
        assert!(!both(("192.0.2.1:80", false), ("[::]:80", true)));
        assert!(!both(("0.0.0.0:80", false), ("[::]:80", true)));
        assert!(!both(("0.0.0.0:80", false), ("[2001:db8::1]:80", false)));
    }
}
