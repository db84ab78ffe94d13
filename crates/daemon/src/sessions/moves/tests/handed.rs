//! Connections that wait to be accepted are offered to members of their listener.

use std::collections::HashSet;

use super::*;

#[test]
fn a_connection_that_nobody_takes_goes_round_and_ends() {
    let mut bed = Bed::new();
    let listener = bed.serve(bed.one, 1);
    bed.serve(bed.two, 1);
    let to = bed.id(bed.one);
    let id = bed.offered(listener, to, 1);
    bed.tend(OFFER / 2);
    assert_eq!((offers(&mut bed.told), offers(&mut bed.other_told)), (vec![], vec![]));
    bed.tend(OFFER * 2);
    assert_eq!((offers(&mut bed.told), offers(&mut bed.other_told)), (vec![], vec![id]));
    bed.tend(OFFER * 2);
    assert_eq!((offers(&mut bed.told), offers(&mut bed.other_told)), (vec![id], vec![]));
    assert_ne!(bed.held(), Held::default());
    bed.tend(OFFER * 2);
    assert_eq!((offers(&mut bed.told), offers(&mut bed.other_told)), (vec![], vec![]));
    assert!(bed.sessions.begin_withdraw(id, bed.two).is_err(), "it is over");
    assert_eq!(bed.held(), Held::default());
}

#[test]
fn a_connection_for_a_stack_that_has_ended_is_anothers_at_once() {
    let mut bed = Bed::new();
    let listener = bed.serve(bed.one, 1);
    bed.serve(bed.two, 1);
    let to = bed.id(bed.one);
    let id = bed.offered(listener, to, 1);
    bed.sessions.list.remove(&bed.one.0);
    bed.sessions.steering.remove_stack(to).unwrap();
    bed.tend(Duration::ZERO);
    assert_eq!(offers(&mut bed.other_told), [id]);
}

#[test]
fn a_connection_for_who_has_closed_the_listener_is_anothers_at_once() {
    let mut bed = Bed::new();
    let listener = bed.serve(bed.one, 1);
    bed.serve(bed.two, 1);
    let to = bed.id(bed.one);
    let id = bed.offered(listener, to, 1);
    bed.tend(Duration::ZERO);
    assert!(offers(&mut bed.other_told).is_empty(), "it has time to take it");
    bed.sessions.steering.unlisten(to, listener).unwrap();
    bed.tend(Duration::ZERO);
    assert_eq!(offers(&mut bed.other_told), [id]);
}

#[test]
fn who_has_no_room_for_more_news_is_asked_when_there_is() {
    let mut bed = Bed::new();
    let listener = bed.serve(bed.one, 1);
    let to = bed.id(bed.one);
    let all: HashSet<CarrierId> = (0..20).map(|_| bed.offered(listener, to, 0)).collect();
    let mut asked = HashSet::new();
    // There is room for eight.
    for count in [8, 8, 4, 0] {
        bed.tend(Duration::ZERO);
        let some = offers(&mut bed.told);
        assert_eq!(some.len(), count);
        asked.extend(some);
    }
    assert_eq!(asked, all);
}

#[test]
fn who_never_has_room_for_news_is_waited_for_no_longer_than_others() {
    let mut bed = Bed::new();
    let listener = bed.serve(bed.one, 1);
    bed.serve(bed.two, 1);
    let to = bed.id(bed.one);
    let all: HashSet<CarrierId> = (0..9).map(|_| bed.offered(listener, to, 0)).collect();
    // There is room for eight, and it hears none of them.
    bed.tend(Duration::ZERO);
    bed.tend(OFFER / 2);
    assert!(offers(&mut bed.other_told).is_empty());
    bed.tend(OFFER * 2);
    let mut asked: HashSet<_> = offers(&mut bed.other_told).into_iter().collect();
    bed.tend(Duration::ZERO);
    asked.extend(offers(&mut bed.other_told));
    assert_eq!(asked, all);
    assert_eq!(offers(&mut bed.told).len(), 8);
}

#[test]
fn a_connection_waits_for_somebody_who_accepts() {
    let mut bed = Bed::new();
    let listener = bed.serve(bed.one, 1);
    bed.serve(bed.two, 0);
    let to = bed.id(bed.two);
    // Its member does not accept: the other that does gets it at once.
    let id = bed.offered(listener, to, 0);
    bed.tend(Duration::ZERO);
    assert_eq!((offers(&mut bed.told), offers(&mut bed.other_told)), (vec![id], vec![]));
}

#[test]
fn who_only_keeps_a_listener_open_or_is_busy_hears_of_the_first_that_takes_its_connections() {
    let mut bed = Bed::new();
    let listener = bed.serve(bed.one, 0);
    bed.serve(bed.two, 0);
    let taken = Reply::Event(Event::Taken(listener));
    // How often each was told so, and nothing else.
    let heard = |bed: &mut Bed| {
        [&mut bed.told, &mut bed.other_told].map(|told| {
            let all = std::iter::from_fn(|| told.try_recv().ok());
            all.inspect(|news| assert_eq!(news.reply, taken)).count()
        })
    };
    let busy = |bed: &mut Bed, (process, stack): (u32, u32), busy: bool| {
        let asked = Listen { stack, weight: 1, busy };
        bed.sessions.listen(process, asked, proof("0.0.0.0:80", 0)).unwrap().taken
    };
    assert_eq!(heard(&mut bed), [0, 0]);
    for _ in 0..2 {
        bed.serve(bed.two, 1);
        assert_eq!(heard(&mut bed), [1, 0]);
        bed.serve(bed.two, 2);
        assert_eq!(heard(&mut bed), [0, 0], "it does already");
        bed.serve(bed.two, 0);
        assert_eq!(heard(&mut bed), [0, 0]);
    }
    bed.serve(bed.two, 1);
    bed.serve(bed.one, 1);
    assert_eq!(heard(&mut bed), [1, 0], "both do");
    let (one, two) = (bed.one, bed.two);
    assert!(busy(&mut bed, one, true), "the other one takes them");
    assert!(!busy(&mut bed, two, true));
    assert_eq!(heard(&mut bed), [0, 0]);
    assert!(busy(&mut bed, one, false));
    assert_eq!(heard(&mut bed), [0, 1]);
}

#[test]
fn nobody_gives_connections_to_a_listener_of_others() {
    let mut bed = Bed::new();
    let listener = bed.serve(bed.one, 1);
    bed.serve(bed.two, 1);
    let (parking, own) = bed.sessions.own_stack().unwrap();
    let (server, stranger) = (bed.id(bed.one), bed.stranger());
    for (from, offered) in [(stranger, 0), (server, 1)] {
        bed.comes(own);
        let (parking, flow) = (parking.clone(), Some(flow()));
        let taking = Taking { parking, expected: None, flow, before: None, charge: CHARGE };
        let handed = bed.sessions.end_hand((from, listener), (&taking, Vec::new()), Ok(None));
        assert_eq!(handed, Ok(offered > 0));
        let told = offers(&mut bed.told).len() + offers(&mut bed.other_told).len();
        assert_eq!(told, offered);
    }
}

#[test]
fn nothing_is_left_of_offers_when_the_own_stack_ends() {
    let mut bed = Bed::new();
    let listener = bed.serve(bed.one, 1);
    let to = bed.id(bed.one);
    bed.offered(listener, to, 1);
    let carrier = bed.sessions.carry(7, bed.one.1).unwrap();
    let own = bed.sessions.moves.parking.as_ref().unwrap().client;
    bed.sessions.forget_process(own);
    let left: Vec<CarrierId> = bed.sessions.moves.named.keys().copied().collect();
    assert_eq!(left, [carrier]);
    assert_eq!(bed.held(), Held { carriers: 1, ..Held::default() });
}
