//! Marks on the way, and what is told of them.

use super::*;

#[test]
fn every_mark_is_told() {
    for (every, lost) in [(3, 0), (1000, 0), (20, 4), (2, 3)] {
        let mut link = Link::new();
        let ids = link.connect(&options(Ecn::Accurate), &options(Ecn::Passive));
        let mut count = 0;
        link.fate = Box::new(move |number, packet| {
            if packet.len() > 1000 {
                // What is sent again is not capable.
                count += u32::from(packet[1] & 3 == 2);
                if packet[1] & 3 == 2 && count % every == 0 {
                    mark(packet, CE);
                }
                return Some(0);
            }
            (lost == 0 || number % lost != 0).then_some(0)
        });
        let data = pattern(500_000);
        assert!(link.transfer(ids, CLIENT, &data, 100 * SECOND) == data);
        link.run(5 * SECOND);
        let (client, server) = (info(&link, CLIENT, ids), info(&link, SERVER, ids));
        let received = server.marks.unwrap().0;
        assert_eq!(client.marks.unwrap().1, received, "1 of {every}, acknowledgments lost: {lost}");
        assert_eq!(client.threshold < u32::MAX, received > 0);
        // The bit that says that the window was reduced is the counter's now.
        assert!(
            link.seen.iter().all(|(from, p)| *from == SERVER
                || flags(p) & 2 != 0
                || ace(p) == 5
                || ace(p) == 2)
        );
    }
}

#[test]
fn what_zeroes_the_field_ends_the_marks() {
    let mut link = Link::new();
    let ids = link.connect(&options(Ecn::Accurate), &options(Ecn::Passive));
    link.fate = Box::new(|_, packet| {
        set_ace(packet, 0);
        Some(0)
    });
    assert!(is_capable(&mut link, CLIENT, ids), "nothing was heard yet");
    assert!(!is_capable(&mut link, CLIENT, ids));
    // A server hears it in the handshake already.
    let mut link = Link::new();
    link.fate = Box::new(|_, packet| {
        if flags(packet) & SYN == 0 {
            set_ace(packet, 0);
        }
        Some(0)
    });
    let ids = link.connect(&options(Ecn::Accurate), &options(Ecn::Passive));
    assert!(!is_capable(&mut link, SERVER, ids));
}

#[test]
fn nothing_but_marks_is_mangling() {
    let mut link = Link::new();
    let ids = link.connect(&options(Ecn::Accurate), &options(Ecn::Passive));
    link.fate = Box::new(|_, packet| {
        mark(packet, CE);
        Some(0)
    });
    let data = pattern(100_000);
    assert!(link.transfer(ids, CLIENT, &data, 100 * SECOND) == data);
    assert!(!is_capable(&mut link, CLIENT, ids));
}

#[test]
fn everything_arrives_over_a_bad_path() {
    for seed in 0..20 {
        let mut link = Link::new();
        let mut number = random(seed * 7919 + 1);
        link.fate = Box::new(move |_, packet| {
            let roll = number();
            if roll >> 8 & 3 == 0 {
                mark(packet, (roll >> 16 & 3) as u8);
            }
            if roll >> 24 & 15 == 0 {
                set_ace(packet, (roll >> 32 & 7) as u8);
            }
            match roll % 100 {
                0..5 => None,
                5..20 => Some(number() % 20_000_000),
                _ => Some(0),
            }
        });
        let ids = link.connect(&options(Ecn::Accurate), &options(Ecn::Passive));
        let data = pattern(100_000);
        assert!(link.transfer(ids, CLIENT, &data, 600 * SECOND) == data, "seed {seed}");
        assert!(link.transfer(ids, SERVER, &data, 600 * SECOND) == data, "seed {seed}");
    }
}

#[test]
fn two_blocks_go_before_the_counters() {
    let mut link = Link::new();
    let ids = link.connect(&options(Ecn::Accurate), &options(Ecn::Passive));
    // ECT(1) and ECT(0) arrived: the option takes three fields. Then the second and fourth are lost.
    let mut count = 0;
    link.fate = Box::new(move |_, packet| {
        if packet.len() > 1000 {
            count += 1;
            if count % 2 == 0 {
                mark(packet, 1);
            }
        }
        (packet.len() <= 1000 || !matches!(count, 6 | 8)).then_some(0)
    });
    assert_eq!(link.transfer(ids, SERVER, &pattern(4 * 1448), SECOND).len(), 4 * 1448);
    link.run(SECOND);
    assert_eq!(
        option(&seen(&link, CLIENT, 0x10).pop().unwrap()).map(|found| found.1.len()),
        Some(9)
    );
    link.stacks[SERVER].send(ids[SERVER], &pattern(5 * 1448)).unwrap();
    link.run(6_000_000);
    let last = seen(&link, CLIENT, 0x10).pop().unwrap();
    let segment = wire::tcp::Segment::parse(&last[20..]).unwrap();
    let blocks = segment.options().flatten().find_map(|option| match option {
        wire::tcp::Option::Sack(blocks) => Some(blocks.iter().count()),
        _ => None,
    });
    assert_eq!((blocks, option(&last)), (Some(2), None));
}

/// What each end says of marks once both have opened at once: classic, accurate.
fn crossed(one: Ecn, other: Ecn) -> [(bool, bool); 2] {
    let mut link = Link::new();
    let ids = [(CLIENT, one), (SERVER, other)].map(|(side, ecn)| {
        let remote = (ADDRESSES[1 - side], 7000).into();
        let local = ADDRESSES[side].into();
        link.stacks[side].connect(link.now, local, 7000, remote, &options(ecn)).unwrap()
    });
    link.run(SECOND);
    // The window must not shrink for marks that nobody made.
    let data = pattern(200_000);
    let begun = link.now;
    assert!(link.transfer(ids, CLIENT, &data, 30 * SECOND) == data);
    assert!(link.transfer(ids, SERVER, &data, 30 * SECOND) == data);
    assert!(link.now - begun < SECOND, "{one:?} {other:?}: {} ns", link.now - begun);
    [CLIENT, SERVER].map(|side| {
        let info = info(&link, side, ids);
        (info.negotiated.2 && info.marks.is_none(), info.marks.is_some())
    })
}

#[test]
fn ends_that_open_at_once_agree_on_what_both_have_offered() {
    let all = [Ecn::Off, Ecn::Passive, Ecn::Active, Ecn::Accurate];
    for (one, other) in all.iter().flat_map(|one| all.iter().map(move |other| (*one, *other))) {
        let both = [one, other];
        let accurate = both == [Ecn::Accurate; 2];
        let offered = both.iter().all(|ecn| matches!(ecn, Ecn::Active | Ecn::Accurate));
        let agreed = (offered && !accurate, accurate);
        assert_eq!(crossed(one, other), [agreed; 2], "{one:?} {other:?}");
    }
}
