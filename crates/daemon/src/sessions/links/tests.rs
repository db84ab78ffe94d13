use super::*;

use shm::attach::RefusalKind;
use shm::session::Listen;
use tokio::sync::mpsc;

use super::super::tests::{listener, proof, sessions};

/// Daemon, a server of port 80 and a process that connects to it, and what both are told.
struct Bed {
    sessions: Sessions,
    server: End,
    told: mpsc::Receiver<News>,
    client: End,
}

fn end((process, stack): (u32, u32)) -> End {
    End { process, stack }
}

impl Bed {
    fn new(section: &str) -> Self {
        let mut sessions = sessions(section);
        let (server, told) = listener(&mut sessions, 7);
        let client = end(listener(&mut sessions, 8).0);
        let mut bed = Self { sessions, server: end(server), told, client };
        bed.serve(bed.server, 80);
        bed
    }

    fn serve(&mut self, End { process, stack }: End, port: u16) {
        let proof = proof(&format!("0.0.0.0:{port}"), 0);
        self.sessions.listen(process, Listen { stack, weight: 1, busy: false }, proof).unwrap();
    }

    fn plan(&mut self, from: End, port: u16) -> Result<bool, Refusal> {
        let destination = ([192, 0, 2, 1], port).into();
        let asked = Introduce { stack: from.stack, destination };
        Ok(self.sessions.plan(from.process, &asked)?.make.is_some())
    }

    /// What a link that is planned takes.
    fn memory(&mut self, from: End, port: u16) -> Option<Debit> {
        let destination = ([192, 0, 2, 1], port).into();
        let asked = Introduce { stack: from.stack, destination };
        let make = self.sessions.plan(from.process, &asked).unwrap().make;
        make.map(|(_, _, debit)| debit)
    }

    fn link(&mut self, ends: [End; 2]) -> u32 {
        self.try_link(ends).unwrap()
    }

    fn try_link(&mut self, ends: [End; 2]) -> Result<u32, Refusal> {
        let segment = Arc::new(Segment::create("link", LinkPlace::bytes().unwrap()).unwrap());
        let bell = segment.as_fd().try_clone_to_owned().unwrap();
        self.sessions.link(ends, &segment, bell).map(|(place, _)| place.link)
    }

    fn newcomer(&mut self, uid: u32) -> End {
        end(listener(&mut self.sessions, uid).0)
    }
}

#[test]
fn links_are_made_where_they_may() {
    let mut bed = Bed::new("");
    let (client, server) = (bed.client, bed.server);
    assert_eq!(bed.plan(client, 80), Ok(true));
    assert_eq!(bed.plan(server, 80), Ok(false), "to itself");
    assert_eq!(bed.plan(client, 81).unwrap_err().kind, RefusalKind::Unknown);
    bed.sessions.stack(server.process, server.stack).unwrap().more = 1;
    assert_eq!(bed.plan(client, 80), Ok(false), "the server is on a stack worker");
    bed.sessions.stack(client.process, client.stack).unwrap().more = 1;
    assert!(bed.plan(client, 80).unwrap_err().message.contains("on a stack worker"));
    let mut none = Bed::new("links = 0\n");
    let client = none.client;
    assert!(none.plan(client, 80).unwrap_err().message.contains("sessions.links is 0"));
}

#[test]
fn either_end_has_its_bound() {
    let mut bed = Bed::new("links = 1\n");
    let (client, server) = (bed.client, bed.server);
    let (third, fourth) = (bed.newcomer(9), bed.newcomer(9));
    bed.serve(fourth, 81);
    assert_eq!((bed.plan(third, 80), bed.plan(client, 81)), (Ok(true), Ok(true)));
    let number = bed.link([client, server]);
    assert_eq!(bed.plan(third, 80), Ok(false), "the server has one");
    assert_eq!(bed.plan(client, 81), Ok(false), "so has the client");
    assert_eq!(bed.plan(third, 81), Ok(true));
    // It was planned before the server had its link.
    let refusal = bed.try_link([third, server]).unwrap_err();
    assert!(refusal.message.contains("sessions.links allows one process 1"), "{refusal}");
    // Room is free again with the link, whoever of both has ended it.
    bed.sessions.unlink(server.process, number).unwrap();
    assert_eq!((bed.plan(third, 80), bed.plan(client, 81)), (Ok(true), Ok(true)));
    bed.link([third, server]);
    assert_eq!(bed.plan(client, 80), Ok(false), "another has it");
    bed.sessions.unlink_all(|end| *end == third);
    assert_eq!(bed.plan(client, 80), Ok(true));
}

#[test]
fn the_memory_of_links_counts_for_both_users_together() {
    let each = LinkPlace::bytes().unwrap();
    let mebibytes = (2 * each).div_ceil(1 << 20);
    let mut bed = Bed::new(&format!("memory = {mebibytes}\n"));
    let client = bed.client;
    let others = [bed.newcomer(9), bed.newcomer(9)];
    for (other, port) in others.into_iter().zip(81..) {
        bed.serve(other, port);
    }
    let first = bed.memory(client, 80).unwrap();
    let _second = bed.memory(client, 80).unwrap();
    assert_eq!(bed.plan(client, 80), Ok(false), "two of {each} bytes, {mebibytes} MiB");
    assert_eq!((bed.plan(client, 81), bed.plan(others[0], 80)), (Ok(true), Ok(true)), "others'");
    assert!(bed.sessions.charge(client.process, each).is_ok(), "what its stacks have is its own");
    drop(first);
    assert_eq!(bed.plan(client, 80), Ok(true));
    // Between two processes of one user they count as its stacks do.
    let _all = [(); 2].map(|()| bed.memory(others[0], 82).unwrap());
    let refusal = bed.sessions.charge(others[1].process, each).unwrap_err();
    assert!(refusal.message.contains("sessions.memory"), "{refusal}");
}

#[test]
fn links_end_with_either_end_and_only_the_other_is_told() {
    let mut bed = Bed::new("");
    let (client, server) = (bed.client, bed.server);
    let third = bed.newcomer(9);
    let (first, second) = (bed.link([client, server]), bed.link([third, server]));
    while bed.told.try_recv().is_ok() {}
    bed.sessions.unlink_all(|end| *end == client);
    assert_eq!(bed.told.try_recv().unwrap().reply, Reply::Event(Event::Unlinked(first)));
    assert!(bed.told.try_recv().is_err(), "the other link is there");
    bed.sessions.unlink_all(|end| *end == server);
    assert!(bed.told.try_recv().is_err(), "it has ended itself");
    assert!(bed.sessions.unlink(third.process, second).is_err());
}

#[test]
fn a_link_is_closed_by_its_ends_alone_and_the_other_is_told() {
    let mut bed = Bed::new("");
    let (client, server) = (bed.client, bed.server);
    let number = bed.link([client, server]);
    let stranger = bed.newcomer(9);
    let refusal = bed.sessions.unlink(stranger.process, number).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::Unknown);
    let linked = bed.told.try_recv().unwrap().reply;
    assert!(matches!(linked, Reply::Event(Event::Linked(_))), "{linked:?}");
    bed.sessions.unlink(client.process, number).unwrap();
    assert_eq!(bed.told.try_recv().unwrap().reply, Reply::Event(Event::Unlinked(number)));
    assert!(bed.sessions.unlink(server.process, number).is_err());
}
