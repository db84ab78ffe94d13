use super::*;

use shm::session::{Listen, TransportProtocol};
use tokio::sync::mpsc;
use transport::ImportError;

use super::super::News;
use super::super::parking::{EndedFlow, Told};
use super::super::tests::{listener, proof, sessions};
use super::tend::SWEEP;
use super::waits::OF_USER;
use crate::testing;

mod earlier;
mod handed;

const CHARGE: Charge = Charge { uid: 7, bytes: 100 };

/// Two processes of user 7, what they are told, and the daemon's own stack.
struct Bed {
    sessions: Sessions,
    one: (u32, u32),
    told: mpsc::Receiver<News>,
    two: (u32, u32),
    other_told: mpsc::Receiver<News>,
    own_told: Told,
    now: Instant,
}

fn flow() -> Flow {
    let ends = ("192.0.2.1:80".parse().unwrap(), "192.0.2.77:4000".parse().unwrap());
    Flow { protocol: TransportProtocol::Tcp, local: ends.0, remote: ends.1 }
}

impl Bed {
    fn new() -> Self {
        Self::with("")
    }

    fn with(section: &str) -> Self {
        let mut sessions = sessions(section);
        let own = listener(&mut sessions, 0).0;
        let (parking, own_told) = Parking::without_thread();
        sessions.set_parking(parking, own).unwrap();
        let (one, told) = listener(&mut sessions, 7);
        let (two, other_told) = listener(&mut sessions, 7);
        Self { sessions, one, told, two, other_told, own_told, now: Instant::now() }
    }

    fn id(&mut self, (process, stack): (u32, u32)) -> StackId {
        self.sessions.stack(process, stack).unwrap().id
    }

    fn serve(&mut self, (process, stack): (u32, u32), weight: u8) -> ListenerId {
        let asked = Listen { stack, weight, busy: false };
        self.sessions.listen(process, asked, proof("0.0.0.0:80", 0)).unwrap().listener
    }

    /// A connection that the daemon keeps for a listener's member that is to accept it.
    fn offered(&mut self, listener: ListenerId, to: StackId, asked: u8) -> CarrierId {
        let parked =
            Parked { own: Vec::new(), connection: None, flow: Some(flow()), charge: CHARGE };
        self.sessions.moves.charge(CHARGE);
        let kind = Kind::Offer { listener, to, asked, is_told: asked > 0 };
        self.sessions.moves.name(7, kind, Place::Parked(parked)).unwrap()
    }

    /// A stack of another user.
    fn stranger(&mut self) -> StackId {
        let stranger = listener(&mut self.sessions, 8).0;
        self.id(stranger)
    }

    /// A connection is on its way to the own stack.
    fn comes(&mut self, own: StackId) {
        self.sessions.moves.charge(CHARGE);
        self.sessions.steering.park(own, &flow()).unwrap();
    }

    /// The own stack has ended a connection, and then does not answer for it any more.
    fn ends(&mut self, left: Option<Duration>) {
        self.sessions.connections_over(&[flow()]);
        self.frees(left);
    }

    /// It does not answer for one that it has ended any more.
    fn frees(&mut self, left: Option<Duration>) {
        self.sessions.flows_ended(&[EndedFlow { flow: flow(), left }], self.now);
    }

    fn tend(&mut self, after: Duration) {
        self.sessions.tend(self.now + after);
    }

    fn redirected(&self) -> Option<StackId> {
        self.sessions.steering.redirected(&flow())
    }

    fn held(&self) -> Held {
        self.sessions.moves.held.get(&7).copied().unwrap_or_default()
    }
}

/// The connections that a process was offered.
fn offers(told: &mut mpsc::Receiver<News>) -> Vec<CarrierId> {
    let all = std::iter::from_fn(|| told.try_recv().ok());
    let offered = all.filter_map(|news| match news.reply {
        Reply::Event(Event::Offered(offered)) => Some(offered.id),
        _ => None,
    });
    offered.collect()
}

#[test]
fn a_connection_that_cannot_be_taken_is_as_it_was() {
    let mut bed = Bed::new();
    let (parking, own) = bed.sessions.own_stack().unwrap();
    let (holder, earlier) = (bed.one, bed.id(bed.two));
    let id = bed.sessions.carry(7, holder.1).unwrap();
    let carriers = Held { carriers: 1, ..Held::default() };
    for (before, gone) in [(None, false), (Some(earlier), false), (Some(earlier), true)] {
        if gone {
            bed.sessions.steering.remove_stack(earlier).unwrap();
        }
        bed.comes(own);
        let parking = parking.clone();
        let taking = Taking { parking, expected: None, flow: Some(flow()), before, charge: CHARGE };
        bed.sessions.begin_deposit(id, holder).unwrap();
        let failed = Err(ImportError::Full);
        let ended = bed.sessions.end_deposit(id, holder, (&taking, Vec::new()), failed);
        assert!(ended.unwrap_err().message.contains("table of connections is full"));
        assert_eq!(bed.redirected(), before.filter(|_| !gone));
        assert_eq!(bed.held(), carriers, "it counts no more");
    }
    // Its process has it still.
    assert!(bed.sessions.begin_deposit(id, holder).is_ok());
}

#[test]
fn what_is_kept_for_a_user_has_a_bound_in_bytes() {
    let bounds = testing::config("[sessions]\nparked-memory = 1\n").sessions;
    let mut moves = Moves::default();
    let of = |uid, bytes| Charge { uid, bytes };
    moves.charge(of(7, (1 << 20) - 10));
    assert_eq!(moves.admit(of(7, 10), &bounds), Ok(()));
    let refusal = moves.admit(of(7, 11), &bounds).unwrap_err();
    assert!(refusal.message.contains("sessions.parked-memory, 1 MiB"), "{refusal}");
    assert_eq!(moves.admit(of(8, 1 << 20), &bounds), Ok(()), "another user");
    assert!(moves.admit(of(8, usize::MAX), &bounds).is_err());
    moves.discharge(of(7, (1 << 20) - 10));
    assert_eq!(moves.admit(of(7, 1 << 20), &bounds), Ok(()));
}

#[test]
fn a_connection_that_was_withdrawn_has_time_to_be_claimed() {
    let mut bed = Bed::new();
    let to = bed.id(bed.one);
    bed.sessions.steering.redirect(to, &flow()).unwrap();
    bed.sessions.moves.withdrawn.insert(flow(), bed.now);
    for after in [Duration::ZERO, CLAIM - SWEEP] {
        bed.tend(after);
        assert_eq!(bed.redirected(), Some(to), "after {after:?}");
    }
    bed.tend(CLAIM);
    assert_eq!(bed.redirected(), None);
}

#[test]
fn redirects_are_looked_at_now_and_then_and_the_own_stacks_never() {
    let mut bed = Bed::new();
    let (_, own) = bed.sessions.own_stack().unwrap();
    let to = bed.id(bed.one);
    bed.tend(Duration::ZERO);
    bed.sessions.steering.redirect(to, &flow()).unwrap();
    bed.tend(SWEEP / 2);
    assert_eq!(bed.redirected(), Some(to), "it is not time yet");
    bed.tend(SWEEP);
    assert_eq!(bed.redirected(), None);
    // What the daemon keeps has no claims.
    bed.sessions.steering.park(own, &flow()).unwrap();
    bed.tend(SWEEP * 2);
    assert_eq!(bed.redirected(), Some(own));
}

#[test]
fn who_waits_is_told_when_the_time_is_over_and_not_before() {
    let mut bed = Bed::new();
    let id = bed.sessions.carry(7, bed.one.1).unwrap();
    assert!(bed.sessions.begin_withdraw(id, bed.two).is_ok());
    bed.tend(RECALL / 2);
    assert!(bed.other_told.try_recv().is_err());
    // It may be long since the bed was made.
    bed.now = Instant::now();
    bed.tend(RECALL);
    let told = bed.other_told.try_recv().unwrap().reply;
    assert_eq!(told, Reply::Event(Event::Lost(id)));
}

#[test]
fn so_many_connections_move_to_one_user_at_most() {
    let mut bed = Bed::with("parked = 1\n");
    let listener = bed.serve(bed.one, 1);
    let (one, two) = (bed.id(bed.one), bed.id(bed.two));
    let id = bed.offered(listener, two, 1);
    let other = Flow { remote: "192.0.2.77:4001".parse().unwrap(), ..flow() };
    bed.sessions.steering.redirect(one, &other).unwrap();
    let refusal = bed.sessions.begin_withdraw(id, bed.two).err().unwrap();
    assert!(refusal.message.contains("sessions.parked allows one user 1"), "{refusal}");
    // It is there still, for when there is room.
    bed.sessions.steering.end_redirect(&other).unwrap();
    assert!(bed.sessions.begin_withdraw(id, bed.two).is_ok());
}

#[test]
fn who_keeps_files_of_connections_gets_no_more_of_them() {
    let mut bed = Bed::with("memory = 1\n");
    let listener = bed.serve(bed.one, 1);
    let two = bed.id(bed.two);
    let id = bed.offered(listener, two, 1);
    let mut kept = bed.sessions.charge(bed.two.0, 1 << 20).unwrap();
    // A file that took more than was left.
    kept.add(1);
    let refusal = bed.sessions.begin_withdraw(id, bed.two).err().unwrap();
    assert!(refusal.message.contains("sessions.memory allows one user 1"), "{refusal}");
    drop(kept);
    assert!(bed.sessions.begin_withdraw(id, bed.two).is_ok(), "it is there still");
}

/// A flow with another port of its peer's.
fn beside(port: usize) -> Flow {
    let remote = flow().remote;
    Flow { remote: (remote.ip(), port as u16).into(), ..flow() }
}

#[test]
fn time_waits_end_in_time_and_one_user_has_so_many() {
    let mut bed = Bed::new();
    let (_, own) = bed.sessions.own_stack().unwrap();
    let until = bed.now + Duration::from_secs(60);
    for port in 1..=OF_USER {
        assert!(bed.sessions.wait_out(beside(port), 7, until), "{port}");
    }
    assert!(!bed.sessions.wait_out(beside(OF_USER + 1), 7, until));
    assert_eq!(bed.sessions.steering.end_wait(&beside(OF_USER + 1)), None);
    assert!(bed.sessions.wait_out(beside(OF_USER + 1), 8, until), "another user");
    // One counts for whoever had it last.
    assert!(bed.sessions.wait_out(beside(1), 8, until));
    assert!(bed.sessions.wait_out(beside(OF_USER + 2), 7, until));
    bed.tend(Duration::from_secs(59));
    assert!(!bed.sessions.wait_out(beside(OF_USER + 3), 7, until), "none is over yet");
    for second in 60..80 {
        bed.tend(Duration::from_secs(second));
    }
    for port in 1..=OF_USER + 2 {
        assert_eq!(bed.sessions.steering.end_wait(&beside(port)), None, "{port}");
    }
    let until = until + Duration::from_secs(60);
    for port in 1..=OF_USER {
        assert!(bed.sessions.wait_out(beside(port), 7, until), "{port}");
    }
    assert_eq!(bed.sessions.steering.end_wait(&beside(1)), Some(own));
    let own = bed.sessions.moves.parking.as_ref().unwrap().client;
    bed.sessions.forget_process(own);
    assert!(!bed.sessions.wait_out(beside(1), 9, until), "nobody waits");
}

#[test]
fn what_the_daemon_has_ended_waits_as_long_as_it_must() {
    let mut bed = Bed::new();
    let (_, own) = bed.sessions.own_stack().unwrap();
    for left in [None, Some(Duration::from_secs(59))] {
        bed.comes(own);
        bed.sessions.moves.orphans.insert(flow(), CHARGE);
        bed.ends(left);
        assert_eq!((bed.redirected(), bed.held()), (None, Held::default()));
        assert_eq!(bed.sessions.steering.end_wait(&flow()), left.map(|_| own));
    }
}

#[test]
fn the_next_connection_waits_for_none_that_the_daemon_has_ended() {
    let mut bed = Bed::new();
    let (_, own) = bed.sessions.own_stack().unwrap();
    bed.serve(bed.one, 1);
    let (server, reader) = (bed.id(bed.one), bed.sessions.steering.reader());
    let find = || (reader.find(&flow(), true), reader.find(&flow(), false));
    bed.comes(own);
    bed.sessions.moves.adopt(flow(), CHARGE);
    assert_eq!(find(), (Some(own), Some(own)));
    bed.sessions.connections_over(&[flow(), beside(1)]);
    assert_eq!(find(), (Some(server), Some(own)), "what comes again is for who has ended it");
    assert_eq!(bed.sessions.steering.redirected(&beside(1)), None);
    // The next one comes to the daemon, too: the first counts no more, and its end says nothing of this one.
    assert_eq!(bed.sessions.park(own, &flow()), Ok(None));
    assert_eq!((find(), bed.held()), ((Some(own), Some(own)), Held::default()));
    bed.frees(Some(Duration::from_secs(59)));
    assert_eq!(find(), (Some(own), Some(own)));
    // What a process has is none of the own stack's.
    bed.sessions.steering.redirect(server, &flow()).unwrap();
    bed.sessions.connections_over(&[flow()]);
    assert_eq!(bed.redirected(), Some(server));
    assert_eq!(bed.sessions.park(own, &flow()), Ok(Some(server)));
}

#[test]
fn the_own_stack_forgets_time_waits_that_count_for_nobody() {
    let mut bed = Bed::new();
    let until = bed.now + Duration::from_secs(60);
    for port in 1..=OF_USER {
        assert!(bed.sessions.wait_out(beside(port), 7, until), "{port}");
    }
    // One that the daemon has ended, and for which its user has no room.
    let last = beside(OF_USER + 1);
    bed.sessions.moves.charge(CHARGE);
    bed.sessions.moves.orphans.insert(last, CHARGE);
    let left = Some(Duration::from_secs(59));
    bed.sessions.flows_ended(&[EndedFlow { flow: last, left }], bed.now);
    assert_eq!(bed.own_told.forgotten(), 1);
    bed.tend(Duration::from_secs(59));
    assert_eq!(bed.own_told.forgotten(), 0);
    bed.tend(Duration::from_secs(60));
    assert!(bed.own_told.forgotten() > 0);
}

#[test]
fn what_is_left_of_a_connection_makes_way_for_the_next() {
    let mut bed = Bed::new();
    let (parking, own) = bed.sessions.own_stack().unwrap();
    assert!(bed.sessions.wait_out(flow(), 7, bed.now + Duration::from_secs(60)));
    bed.comes(own);
    let (expected, before, charge) = (None, None, CHARGE);
    let taking = Taking { parking, expected, flow: Some(flow()), before, charge };
    bed.sessions.end_abandon(&taking, Ok(None)).unwrap();
    assert_eq!(bed.sessions.steering.end_wait(&flow()), None);
}

#[test]
fn what_is_closed_after_its_connection_has_ended_counts_no_more() {
    let mut bed = Bed::new();
    let (parking, own) = bed.sessions.own_stack().unwrap();
    let (holder, expected, flow, before) = (bed.one, None, Some(flow()), None);
    let taking = Taking { parking, expected, flow, before, charge: CHARGE };
    for (first, imported) in [(true, Ok(None)), (false, Ok(None)), (true, Err(ImportError::Full))] {
        let id = bed.sessions.carry(7, holder.1).unwrap();
        bed.sessions.begin_deposit(id, holder).unwrap();
        bed.comes(own);
        bed.sessions.end_deposit(id, holder, (&taking, Vec::new()), Ok(None)).unwrap();
        // Its peer has ended it, and the next one between the same ends comes.
        bed.ends(None);
        bed.comes(own);
        if first {
            bed.sessions.carrier_closed(id);
        }
        let _ = bed.sessions.end_abandon(&taking, imported);
        bed.sessions.carrier_closed(id);
        bed.ends(None);
        assert_eq!((bed.redirected(), bed.held()), (None, Held::default()));
    }
}

#[test]
fn what_has_ended_counts_no_more_when_the_next_between_the_same_ends_leaves() {
    let mut bed = Bed::new();
    let (parking, own) = bed.sessions.own_stack().unwrap();
    let (holder, expected, flow, before) = (bed.one, None, Some(flow()), None);
    let taking = Taking { parking, expected, flow, before, charge: CHARGE };
    let [first, next] = [(); 2].map(|()| {
        let id = bed.sessions.carry(7, holder.1).unwrap();
        bed.sessions.begin_deposit(id, holder).unwrap();
        bed.comes(own);
        bed.sessions.end_deposit(id, holder, (&taking, Vec::new()), Ok(None)).unwrap();
        id
    });
    bed.sessions.carrier_closed(first);
    assert!(bed.sessions.begin_withdraw(next, bed.two).is_ok());
    bed.sessions.end_withdraw(next, bed.two, CHARGE, true);
    assert_eq!(bed.held(), Held { carriers: 1, ..Held::default() });
}
