//! Who gave a connection to another process hears of it when nobody uses it any more.

use super::*;

/// What a process was told of connections.
fn heard(told: &mut mpsc::Receiver<News>) -> Vec<Event> {
    let all = std::iter::from_fn(|| told.try_recv().ok());
    let events = all.filter_map(|news| match news.reply {
        Reply::Event(event) => Some(event),
        _ => None,
    });
    events.collect()
}

impl Bed {
    /// A process gives a connection to the daemon.
    fn deposits(&mut self, id: CarrierId, holder: (u32, u32)) {
        let (parking, own) = self.sessions.own_stack().unwrap();
        self.sessions.begin_deposit(id, holder).unwrap();
        self.comes(own);
        let (expected, flow, before) = (None, Some(flow()), None);
        let taking = Taking { parking, expected, flow, before, charge: CHARGE };
        self.sessions.end_deposit(id, holder, (&taking, Vec::new()), Ok(None)).unwrap();
    }

    /// A process fetches one from there.
    fn withdraws(&mut self, id: CarrierId, to: (u32, u32)) {
        assert!(matches!(self.sessions.begin_withdraw(id, to), Ok(Answered::Take(_))));
        self.sessions.end_withdraw(id, to, CHARGE, true);
    }

    /// The second process has asked the first one for a connection, which has given it.
    fn given(&mut self) -> CarrierId {
        let (one, two) = (self.one, self.two);
        let id = self.sessions.carry(7, one.1).unwrap();
        assert!(matches!(self.sessions.begin_withdraw(id, two), Ok(Answered::Recalling)));
        self.deposits(id, one);
        assert_eq!(heard(&mut self.told), [Event::Recall(id)]);
        assert_eq!(heard(&mut self.other_told), [Event::Parked(id)]);
        id
    }
}

#[test]
fn who_has_given_it_is_told_when_the_other_one_closes_it() {
    let mut bed = Bed::new();
    let (one, two) = (bed.one, bed.two);
    let id = bed.given();
    bed.withdraws(id, two);
    bed.tend(RECALL * 2);
    assert_eq!(heard(&mut bed.told), [], "the other one has it");
    bed.deposits(id, two);
    assert_eq!(heard(&mut bed.told), [Event::Parked(id)]);
    // Who closes it waits for it no more.
    bed.withdraws(id, one);
    bed.deposits(id, one);
    bed.tend(RECALL * 2);
    assert_eq!((heard(&mut bed.told), heard(&mut bed.other_told)), (vec![], vec![]));
}

#[test]
fn who_has_given_it_is_told_when_nobody_fetches_it() {
    let mut bed = Bed::new();
    let id = bed.given();
    // It may be long since the bed was made.
    bed.now = Instant::now();
    bed.tend(RECALL / 2);
    assert_eq!(heard(&mut bed.told), []);
    for told in [vec![Event::Parked(id)], vec![]] {
        bed.tend(RECALL);
        assert_eq!(heard(&mut bed.told), told);
    }
}

#[test]
fn who_has_given_it_late_is_told_at_once() {
    let mut bed = Bed::new();
    let (one, two) = (bed.one, bed.two);
    let id = bed.sessions.carry(7, one.1).unwrap();
    assert!(bed.sessions.begin_withdraw(id, two).is_ok());
    bed.now = Instant::now();
    bed.tend(RECALL);
    assert_eq!(heard(&mut bed.other_told), [Event::Lost(id)]);
    bed.deposits(id, one);
    assert_eq!(heard(&mut bed.told), [Event::Recall(id), Event::Parked(id)]);
}

#[test]
fn who_has_given_it_is_told_when_it_is_lost() {
    let mut bed = Bed::new();
    let two = bed.two;
    let id = bed.given();
    bed.withdraws(id, two);
    bed.sessions.forget_process(two.0);
    assert_eq!(heard(&mut bed.told), [Event::Lost(id)]);
}

#[test]
fn who_has_ended_is_told_nothing() {
    let mut bed = Bed::new();
    let (one, two) = (bed.one, bed.two);
    let id = bed.given();
    bed.withdraws(id, two);
    bed.sessions.forget_process(one.0);
    bed.deposits(id, two);
    assert_eq!(heard(&mut bed.told), []);
}
