//! Listeners that nobody serves any more, and whose sockets in the kernel still listen: their process has gone, and another has
//! them too, as when a server puts itself into the background. That one serves as soon as it accepts; SYNs wait for it.

use std::collections::{BTreeMap, BTreeSet};

use forward::steering::ListenerId;
use shm::session::TransportProtocol;

use super::{Lent, Session, Sessions, check_permission};
use crate::processes::Process;

/// How many one user's processes may leave behind.
const MOST: usize = 64;

/// All of them.
#[derive(Default)]
pub(super) struct Vacancies(BTreeMap<ListenerId, Vacancy>);

/// One listener's.
struct Vacancy {
    /// The socket's number in the kernel.
    inode: u64,
    /// Who has served it.
    process: Process,
}

impl Vacancies {
    /// Somebody serves.
    pub(super) fn end(&mut self, listener: ListenerId) {
        self.0.remove(&listener);
    }

    fn of_user(&self, uid: u32) -> usize {
        self.0.values().filter(|vacancy| vacancy.process.credentials.uid == uid).count()
    }
}

impl Sessions {
    /// A process goes: what nobody but it serves is vacant until [`Lent::fill_vacancies`] says otherwise.
    pub(super) fn vacate(&mut self, id: u32, session: &Session) {
        if check_permission(&self.config.load(), &session.process).is_err() {
            return;
        }
        for (listener, known) in session.stacks.values().flat_map(|stack| &stack.listeners) {
            let is_tcp = known.bind.protocol == TransportProtocol::Tcp;
            let fits = self.vacancies.of_user(session.uid()) < MOST;
            if is_tcp && fits && self.steering.is_alone(*listener, id) {
                let vacancy = Vacancy { inode: known.inode, process: session.process.clone() };
                self.vacancies.0.insert(*listener, vacancy);
                self.steering.set_vacant(*listener, true);
            }
        }
    }

    /// Whether there are any.
    pub(crate) fn has_vacancies(&self) -> bool {
        !self.vacancies.0.is_empty()
    }

    /// Whether a SYN that waits need not wait any more.
    pub(crate) fn is_settled(&self, packet: &[u8]) -> bool {
        self.steering.is_settled(packet)
    }

    /// The configuration has changed: who may not serve leaves nothing to others.
    pub(super) fn dismiss_vacancies(&mut self) {
        let config = self.config.load_full();
        self.end_vacancies(|vacancy| check_permission(&config, &vacancy.process).is_ok());
    }

    fn end_vacancies(&mut self, keep: impl Fn(&Vacancy) -> bool) {
        let over: Vec<ListenerId> =
            self.vacancies.0.iter().filter(|(_, one)| !keep(one)).map(|(id, _)| *id).collect();
        for listener in over {
            self.vacancies.end(listener);
            self.steering.set_vacant(listener, false);
        }
    }
}

impl Lent<'_> {
    /// These sockets listen, and no others: nobody will serve the listeners of those that do not.
    pub(crate) fn fill_vacancies(&mut self, listening: &BTreeSet<u64>) {
        self.sessions.end_vacancies(|vacancy| listening.contains(&vacancy.inode));
        self.release_early();
    }

    /// Somebody serves from now on, or nobody will: what has waited for that goes on.
    pub(super) fn release_early(&mut self) {
        let Lent { sessions, routing, .. } = self;
        routing.release_early(|packet| sessions.is_settled(packet));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use shm::session::Listen;

    use super::super::listeners::Membership;
    use super::super::tests::{listener, proof, sessions};
    use crate::testing;

    /// A process of that user, which serves a port.
    fn server(sessions: &mut Sessions, uid: u32, port: u16) -> u32 {
        let ((id, stack), _) = listener(sessions, uid);
        serve(sessions, (id, stack), proof(&format!("0.0.0.0:{port}"), uid));
        id
    }

    fn serve(sessions: &mut Sessions, (id, stack): (u32, u32), proof: Membership) {
        sessions.listen(id, Listen { stack, weight: 1, busy: false }, proof).unwrap();
    }

    /// The process ends.
    fn end(sessions: &mut Sessions, id: u32) {
        let session = sessions.list.remove(&id).unwrap();
        sessions.vacate(id, &session);
        for stack in session.stacks.into_values() {
            sessions.steering.remove_stack(stack.id).unwrap();
        }
    }

    /// Ports of what is vacant: the sockets' numbers in these tests.
    fn vacant(sessions: &Sessions) -> Vec<u64> {
        let ports = sessions.steering.listeners().map(|view| u64::from(view.bind.port));
        let vacancies = sessions.vacancies.0.values().map(|vacancy| vacancy.inode);
        let vacancies: Vec<u64> = vacancies.collect();
        assert_eq!(vacancies, ports.filter(|port| vacancies.contains(port)).collect::<Vec<_>>());
        vacancies
    }

    #[test]
    fn what_a_process_alone_has_served_is_vacant_until_its_socket_is_gone() {
        let mut sessions = sessions("");
        let one = server(&mut sessions, 7, 80);
        serve(&mut sessions, (one, 1), proof("0.0.0.0:81", 7));
        let two = server(&mut sessions, 8, 81);
        end(&mut sessions, one);
        assert_eq!(vacant(&sessions), [80], "somebody serves 81");
        end(&mut sessions, two);
        assert_eq!(vacant(&sessions), [80, 81]);
        sessions.end_vacancies(|one| [80, 443].contains(&one.inode));
        assert_eq!(vacant(&sessions), [80]);
        // Whoever serves it has it.
        let child = server(&mut sessions, 7, 80);
        assert!(!sessions.has_vacancies());
        end(&mut sessions, child);
        assert_eq!(vacant(&sessions), [80]);
        sessions.end_vacancies(|_| false);
        assert_eq!((vacant(&sessions).len(), sessions.steering.listeners().count()), (0, 0));
    }

    #[test]
    fn datagrams_wait_for_nobody() {
        let mut sessions = sessions("");
        let ((id, stack), _) = listener(&mut sessions, 7);
        let mut proof = proof("0.0.0.0:53", 7);
        proof.bind.protocol = TransportProtocol::Udp;
        serve(&mut sessions, (id, stack), proof);
        end(&mut sessions, id);
        assert!(!sessions.has_vacancies());
    }

    #[test]
    fn a_user_leaves_only_so_many() {
        let mut sessions = sessions("listeners = 100\n");
        let ((id, stack), _) = listener(&mut sessions, 7);
        for port in 1..=MOST as u16 + 1 {
            serve(&mut sessions, (id, stack), proof(&format!("0.0.0.0:{port}"), 7));
        }
        let other = server(&mut sessions, 8, 2000);
        end(&mut sessions, id);
        assert_eq!(vacant(&sessions).len(), MOST);
        end(&mut sessions, other);
        assert_eq!(vacant(&sessions).len(), MOST + 1);
    }

    #[test]
    fn who_may_not_serve_leaves_nothing() {
        let mut sessions = sessions("");
        let ids = [7, 8].map(|uid| server(&mut sessions, uid, 80 + uid as u16));
        end(&mut sessions, ids[0]);
        assert_eq!(vacant(&sessions), [87]);
        sessions.apply(&testing::config("[sessions]\nusers = [9]\n").sessions);
        end(&mut sessions, ids[1]);
        assert_eq!((vacant(&sessions), sessions.steering.listeners().count()), (vec![], 0));
    }
}
