use super::*;

use std::net::SocketAddr;

use forward::steering::{Bind, Claims, Flow, SteeringLimits};
use shm::attach::PeerCredentials;
use shm::claims::{self, ClaimsReader};
use shm::connections::{ConnectionsWriter, Count};
use shm::session::{Event, Lease, Listen, TransportProtocol};
use tables::Epoch;

use crate::testing;

const PLACES: u32 = 16;

pub(super) fn sessions(section: &str) -> Sessions {
    let config = testing::config(&format!("[sessions]\n{section}")).sessions;
    let steering = Steering::new(SteeringLimits::default(), 7, &Epoch::new()).unwrap();
    Sessions::new(&config, steering, [1, 2])
}

/// A process of that user with a stack that was started.
fn process(sessions: &mut Sessions, uid: u32) -> (u32, u32) {
    listener(sessions, uid).0
}

/// The same, and what it is told.
pub(super) fn listener(sessions: &mut Sessions, uid: u32) -> ((u32, u32), mpsc::Receiver<News>) {
    let credentials = PeerCredentials { pid: 1, uid, gid: uid };
    let process = Process { credentials, groups: vec![uid] };
    let hello = Hello { protocol: PROTOCOL, library: "test".into(), name: "test".into() };
    let (dismissal, (news, told)) = (Dismissal::default(), mpsc::channel(8));
    let attached = (process, dismissal, news);
    let welcome = sessions.attach(hello, attached, &Interfaces::default()).unwrap();
    let segment = Arc::new(Segment::create("test", 4096).unwrap());
    let region = segment.region(0, claims::bytes(PLACES).unwrap()).unwrap();
    let reader = ClaimsReader::new(region, PLACES).unwrap();
    let table = segment.region(1024, shm::connections::bytes(4).unwrap()).unwrap();
    let number = sessions.steering.next_number();
    let id = sessions
        .steering
        .add_stack(Claims { user: 0, process: welcome.client, reader, key: [0, 0] })
        .unwrap();
    let stack = Stack {
        id,
        asked: OpenStack { slots: 64, capacity: 64, claims: PLACES, connections: 4 },
        more: 0,
        worker: None,
        since: Instant::now(),
        segment,
        connections: Arc::new(ConnectionsReader::new(table, 4).unwrap()),
        counters: Vec::new(),
        start: None,
        listeners: BTreeMap::new(),
        leases: BTreeSet::new(),
    };
    sessions.list.get_mut(&welcome.client).unwrap().stacks.insert(number, stack);
    ((welcome.client, number), told)
}

pub(super) fn proof(address: &str, owner: u32) -> Membership {
    let address: SocketAddr = address.parse().unwrap();
    let (protocol, port) = (TransportProtocol::Tcp, address.port());
    let bind = Bind { protocol, address: address.ip(), port, only_v6: false };
    Membership { bind, owner, inode: port.into(), backlog: Some(511) }
}

/// Users and shares of all listeners' members.
fn members(sessions: &Sessions) -> Vec<(u32, u16)> {
    let listeners = sessions.show_listeners().into_iter();
    let members = listeners.flat_map(|one| one.members);
    let mut members: Vec<_> = members.map(|member| (member.uid, member.share)).collect();
    members.sort_unstable();
    members
}

fn listen(sessions: &mut Sessions, (id, stack): (u32, u32), proof: Membership) -> ListenerId {
    sessions.listen(id, Listen { stack, weight: 1, busy: false }, proof).unwrap().listener
}

#[test]
fn processes_that_show_the_same_owners_socket_share_its_flows() {
    let mut sessions = sessions("");
    // As workers of a server that root has started.
    let (one, two) = (process(&mut sessions, 33), process(&mut sessions, 34));
    let first = listen(&mut sessions, one, proof("0.0.0.0:80", 0));
    assert_eq!(listen(&mut sessions, two, proof("0.0.0.0:80", 0)), first);
    assert_eq!(members(&sessions), [(33, 128), (34, 128)]);
}

#[test]
fn whoever_binds_the_port_next_ends_the_places_of_earlier_owners() {
    for later in ["0.0.0.0:8080", "192.0.2.1:8080", "[::]:8080"] {
        let mut sessions = sessions("");
        let (squatter, server) = (process(&mut sessions, 66), process(&mut sessions, 1000));
        listen(&mut sessions, squatter, proof("192.0.2.1:8080", 66));
        listen(&mut sessions, squatter, proof("0.0.0.0:8081", 66));
        listen(&mut sessions, server, proof(later, 1000));
        assert_eq!(members(&sessions), [(66, 256), (1000, 256)], "{later}: 8081 stays");
        let shown = sessions.show_stacks();
        assert_eq!((shown[0].listeners.len(), shown[1].listeners.len()), (1, 1));
    }
    let mut sessions = sessions("");
    let (one, two) = (process(&mut sessions, 66), process(&mut sessions, 1000));
    listen(&mut sessions, one, proof("192.0.2.1:80", 66));
    listen(&mut sessions, two, proof("192.0.2.2:80", 1000));
    assert_eq!(members(&sessions), [(66, 256), (1000, 256)], "no packet is for both");
}

#[test]
fn listeners_that_were_left_take_places_of_their_user() {
    let mut sessions = sessions("listeners = 3\n");
    let (one, two) = (process(&mut sessions, 7), process(&mut sessions, 7));
    let other = process(&mut sessions, 8);
    let stays = listen(&mut sessions, other, proof("0.0.0.0:80", 8));
    let left = listen(&mut sessions, other, proof("0.0.0.0:81", 8));
    sessions.unlisten(other.0, other.1, left).unwrap();
    let kept = listen(&mut sessions, one, proof("0.0.0.0:1000", 7));
    for port in 2000..2010 {
        for (id, number) in [one, two] {
            let address = format!("127.0.0.{id}:{port}");
            let listener = listen(&mut sessions, (id, number), proof(&address, 7));
            sessions.unlisten(id, number, listener).unwrap();
        }
    }
    let all: Vec<ListenerId> = sessions.steering.listeners().map(|view| view.id).collect();
    // Two of those that were left, one of which is the latest.
    assert_eq!(all.len(), 2 + 3, "{all:?}");
    assert!([stays, left, kept].iter().all(|listener| all.contains(listener)), "{all:?}");
    let last = sessions.steering.listeners().last().unwrap();
    assert_eq!(last.bind.port, 2009);
}

#[test]
fn memory_that_pages_can_be_taken_out_of_is_not_looked_at() {
    let mut sessions = sessions("");
    let (id, number) = process(&mut sessions, 7);
    let segment = Arc::clone(&sessions.stack(id, number).unwrap().segment);
    let table = segment.region(1024, shm::connections::bytes(4).unwrap()).unwrap();
    ConnectionsWriter::new(table, 4).unwrap().count(Count::Connections, 5);
    let seen = |sessions: &Sessions| {
        (sessions.look().states().len(), sessions.show_stacks()[0].tcp.connections)
    };
    assert_eq!(seen(&sessions), (1, 5));
    sessions.stack(id, number).unwrap().start = Some(Vec::new());
    assert_eq!(seen(&sessions), (0, 0));
}

#[test]
fn ranges_are_gone_round() {
    let mut sessions = sessions("ports = \"1000-1191\"\nleases = 3\n");
    let (one, two) = (process(&mut sessions, 7), process(&mut sessions, 8));
    let first = |sessions: &mut Sessions, (id, stack): (u32, u32)| {
        sessions.lease(id, Lease { stack, first: None }).map(|range| range.first)
    };
    assert_eq!(first(&mut sessions, one), Ok(1000));
    let known = sessions.stack(one.0, one.1).unwrap();
    let stack = known.id;
    known.leases.clear();
    sessions.steering.release(stack, 1000).unwrap();
    // One that was just given back waits for its turn.
    for wanted in [1064, 1128, 1000] {
        assert_eq!(first(&mut sessions, one), Ok(wanted));
    }
    assert!(first(&mut sessions, one).is_err(), "its user has three");
    assert!(first(&mut sessions, two).is_err(), "there are three");
    sessions.steering.release(stack, 1128).unwrap();
    // A listener's port is passed over.
    listen(&mut sessions, two, proof("0.0.0.0:1150", 8));
    assert!(first(&mut sessions, two).is_err());
}

#[test]
fn ranges_of_an_earlier_daemon_come_back_unless_another_has_them() {
    let mut sessions = sessions("ports = \"1000-1191\"\nleases = 2\n");
    let (one, two) = (process(&mut sessions, 7), process(&mut sessions, 8));
    let mut again = |(id, stack): (u32, u32), first| {
        let asked = Lease { stack, first: Some(first) };
        sessions.lease(id, asked).map(|range| range.first)
    };
    assert_eq!(again(one, 1064), Ok(1064));
    let refusal = again(two, 1064).unwrap_err();
    assert!(refusal.message.contains("is leased to stack"), "{refusal}");
    assert_eq!(again(two, 1128), Ok(1128));
    assert_eq!(again(one, 1064), Ok(1064), "it has it");
    for foreign in [1001, 80, 1192, 65_535] {
        let refusal = again(one, foreign).unwrap_err();
        assert!(refusal.message.contains("no range of ports"), "{foreign}: {refusal}");
    }
    assert_eq!(again(one, 1000), Ok(1000));
    assert!(again(one, 1128).is_err(), "its user has two");
}

#[test]
fn a_range_with_a_connection_that_moved_is_not_leased() {
    let mut sessions = sessions("ports = \"1000-1191\"\n");
    let (one, two) = (process(&mut sessions, 7), process(&mut sessions, 8));
    let id = sessions.stack(two.0, two.1).unwrap().id;
    let (local, remote) = ("192.0.2.1:1063".parse().unwrap(), "192.0.2.77:80".parse().unwrap());
    let flow = Flow { protocol: TransportProtocol::Tcp, local, remote };
    sessions.steering.redirect(id, &flow).unwrap();
    let asked = Lease { stack: one.1, first: None };
    assert_eq!(sessions.lease(one.0, asked).unwrap().first, 1064);
    // One with a connection in TIME-WAIT is the last choice, and is leased when there is no other.
    sessions.steering.end_redirect(&flow);
    sessions.steering.wait_out(id, &flow).unwrap();
    assert_eq!(sessions.lease(one.0, asked).unwrap().first, 1128);
    let lessee = sessions.stack(one.0, one.1).unwrap().id;
    sessions.steering.release(lessee, 1064).unwrap();
    assert_eq!(sessions.lease(one.0, asked).unwrap().first, 1064);
    assert_eq!(sessions.lease(one.0, asked).unwrap().first, 1000);
}

/// Connections that whoever waits for it was told are lost.
fn lost(told: &mut mpsc::Receiver<News>) -> usize {
    let is_lost = |news: &News| matches!(news.reply, Reply::Event(Event::Lost(_)));
    std::iter::from_fn(|| told.try_recv().ok()).filter(is_lost).count()
}

#[test]
fn who_asks_for_a_connection_twice_is_answered_once() {
    let mut sessions = sessions("");
    let (holder, mut asked) = listener(&mut sessions, 7);
    let ((one, mut told), (two, mut other)) =
        (listener(&mut sessions, 7), listener(&mut sessions, 7));
    let id = sessions.carry(7, holder.1).unwrap();
    let recalled = |answer| matches!(answer, Ok(moves::Answered::Recalling));
    for to in [one, one, two] {
        assert!(recalled(sessions.begin_withdraw(id, to)));
    }
    assert!(asked.try_recv().is_ok());
    // One of them ends.
    sessions.forget_process(two.0);
    sessions.decline(id, holder.0).unwrap();
    assert_eq!((lost(&mut told), lost(&mut other)), (1, 0));
}

#[test]
fn only_so_many_wait_for_a_connection() {
    let mut sessions = sessions("");
    let holder = process(&mut sessions, 7);
    let id = sessions.carry(7, holder.1).unwrap();
    for _ in 0..64 {
        let to = process(&mut sessions, 7);
        assert!(sessions.begin_withdraw(id, to).is_ok());
    }
    let to = process(&mut sessions, 7);
    let refusal = sessions.begin_withdraw(id, to).err().unwrap();
    assert!(refusal.message.contains("64 processes wait"), "{refusal}");
    sessions.stack(to.0, to.1).unwrap().start = Some(Vec::new());
    let refusal = sessions.begin_withdraw(id, to).err().unwrap();
    assert!(refusal.message.contains("has not been started"), "{refusal}");
}

#[test]
fn a_carrier_is_for_a_stack_of_the_same_user_that_was_started() {
    let mut sessions = sessions("");
    let (id, stack) = process(&mut sessions, 7);
    assert_eq!(sessions.carry(8, stack).unwrap_err().kind, RefusalKind::Invalid);
    sessions.stack(id, stack).unwrap().start = Some(Vec::new());
    assert_eq!(sessions.carry(7, stack).unwrap_err().kind, RefusalKind::Invalid);
    sessions.stack(id, stack).unwrap().start = None;
    assert!(sessions.carry(7, stack).is_ok());
}

#[test]
fn who_comes_is_looked_at_once_more_at_its_hello() {
    let mut sessions = sessions("most = 2\nusers = [7]\n");
    let mut attach = |uid, name: &str, protocol| {
        let credentials = PeerCredentials { pid: 1, uid, gid: uid };
        let process = Process { credentials, groups: Vec::new() };
        let hello = Hello { protocol, library: "test".into(), name: name.into() };
        let attached = (process, Dismissal::default(), mpsc::channel(8).0);
        let refusal = sessions.attach(hello, attached, &Interfaces::default()).err()?;
        Some((refusal.kind, refusal.message))
    };
    let kind = |refused: Option<(RefusalKind, String)>| refused.map(|(kind, _)| kind);
    assert_eq!(kind(attach(8, "name", PROTOCOL)), Some(RefusalKind::Permission));
    assert_eq!(kind(attach(7, "name", PROTOCOL + 1)), Some(RefusalKind::Version));
    for name in ["", "two\nlines", &"n".repeat(64)] {
        assert_eq!(kind(attach(7, name, PROTOCOL)), Some(RefusalKind::Invalid), "{name:?}");
    }
    assert_eq!((attach(7, "one", PROTOCOL), attach(7, "two", PROTOCOL)), (None, None));
    let (kind, message) = attach(7, "three", PROTOCOL).unwrap();
    assert_eq!(kind, RefusalKind::Resources);
    assert!(message.contains("raise sessions.most"), "{message}");
    assert_eq!(attach(0, "root", PROTOCOL), None);
}

#[test]
fn whoever_may_not_stay_is_told_and_root_is_not_kept_out() {
    let mut sessions = sessions("most = 1\n");
    let (user, _) = process(&mut sessions, 1000);
    let (root, _) = process(&mut sessions, 0);
    sessions.apply(&testing::config("[sessions]\nusers = [5]\n").sessions);
    let told = |id| {
        let dismissal = sessions.list[&id].dismissal.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let wait = std::time::Duration::from_millis(1);
        runtime.block_on(async { tokio::time::timeout(wait, dismissal.why()).await.ok() })
    };
    let why = "the configuration does not allow it any more";
    assert_eq!((told(user), told(root)), (Some(why), None));
}

#[test]
fn ranges_wait_for_those_who_had_them_before_a_restart() {
    let mut sessions = sessions("ports = \"1000-1191\"\nleases = 3\n");
    let had = |first, uid| KeptLease { first, uid };
    sessions.expect_returns(&[had(1000, 7), had(1064, 8)]);
    let (one, other) = (process(&mut sessions, 7), process(&mut sessions, 9));
    let lease = |sessions: &mut Sessions, (id, stack): (u32, u32), first| {
        sessions.lease(id, Lease { stack, first }).map(|range| range.first)
    };
    assert_eq!(lease(&mut sessions, other, None), Ok(1128), "the one that nobody had");
    assert!(lease(&mut sessions, other, None).is_err());
    let refusal = lease(&mut sessions, other, Some(1000)).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::Permission);
    assert_eq!(lease(&mut sessions, one, Some(1000)), Ok(1000));
    assert_eq!(sessions.kept_leases(), [had(1000, 7), had(1128, 9)]);
    // Who does not come back in time has them no more.
    sessions.tend(Instant::now() + RETURNS);
    assert_eq!(lease(&mut sessions, other, None), Ok(1064));
}

#[test]
fn who_serves_keeps_so_many_ranges_from_others_as_it_may_lease() {
    let mut sessions = sessions("ports = \"1000-1511\"\nleases = 2\n");
    let (one, root) = (process(&mut sessions, 7), process(&mut sessions, 0));
    let serve = |sessions: &mut Sessions, (id, stack): (u32, u32), port: u16| {
        let proof = proof(&format!("0.0.0.0:{port}"), sessions.list[&id].uid());
        sessions.listen(id, Listen { stack, weight: 1, busy: false }, proof).map(drop)
    };
    for port in [1000, 1063, 1064, 80, 1512] {
        assert_eq!(serve(&mut sessions, one, port), Ok(()), "{port}");
    }
    let refusal = serve(&mut sessions, one, 1128).unwrap_err();
    assert!(refusal.message.contains("sessions.leases allows one user 2"), "{refusal}");
    for port in [1128, 1192, 1256] {
        assert_eq!(serve(&mut sessions, root, port), Ok(()), "root may");
    }
}

#[test]
fn other_users_leave_ranges_to_root() {
    let mut sessions = sessions("ports = \"1000-1511\"\nleases = 8\n");
    let (one, two, root) =
        (process(&mut sessions, 7), process(&mut sessions, 8), process(&mut sessions, 0));
    let lease = |sessions: &mut Sessions, (id, stack): (u32, u32)| {
        sessions.lease(id, Lease { stack, first: None }).map(|range| range.first)
    };
    for user in [one, two, one, two, one, two, one] {
        assert!(lease(&mut sessions, user).is_ok());
    }
    let refusal = lease(&mut sessions, two).unwrap_err();
    assert!(refusal.message.contains("the rest is root's"), "{refusal}");
    let again = Lease { stack: two.1, first: Some(1448) };
    let refusal = sessions.lease(two.0, again).unwrap_err();
    assert!(refusal.message.contains("the rest is root's"), "as if it had been its own: {refusal}");
    let asked = Listen { stack: two.1, weight: 1, busy: false };
    let refusal = sessions.listen(two.0, asked, proof("0.0.0.0:1500", 8)).unwrap_err();
    assert!(refusal.message.contains("the rest is root's"), "{refusal}");
    assert_eq!(lease(&mut sessions, root), Ok(1448));
}
