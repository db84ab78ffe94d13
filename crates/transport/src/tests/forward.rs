//! F-RTO (RFC 5682), acknowledgment by acknowledgment.

use super::attack::{Scene, scene};
use super::pair::*;
use crate::options::SECOND;
use crate::*;

const ACK: u8 = 0x10;
const MSS: u32 = 1460;

/// Ten segments are in flight, more waits, and the time-out has sent the first again.
fn timed_out(sack: bool) -> Scene {
    let mut scene = scene(&Options { timestamps: false, sack, ..Options::default() });
    let mut list = PacketList::default();
    let server = &mut scene.link.stacks[SERVER];
    server.send(scene.ids[SERVER], &pattern(60_000)).unwrap();
    server.flush(scene.link.now, &mut list);
    assert_eq!(list.packets.len(), 10);
    // With SACK a probe of the tail comes first, which finds something new to send.
    for _ in 0..4 {
        scene.link.now = scene.link.stacks[SERVER].next_deadline().unwrap();
        scene.link.stacks[SERVER].expire(scene.link.now, &mut list);
        if scene.link.stacks[SERVER].counters().timeouts == 1 {
            break;
        }
    }
    let again = list.packets.last().unwrap();
    assert_eq!(again[24..28], scene.ack.to_be_bytes());
    scene
}

impl Scene {
    /// What leaves after an acknowledgment: places in segments, counted from the first in flight.
    fn acknowledge(&mut self, bytes: u32) -> Vec<u32> {
        let (seq, first) = (self.seq, self.ack);
        let left = self.inject(ACK, seq, first.wrapping_add(bytes), &[]);
        left.iter().map(|(_, seq, _)| seq.wrapping_sub(first) / MSS).collect()
    }

    fn is_recovering(&self) -> bool {
        self.link.stacks[SERVER].info(self.ids[SERVER]).unwrap().recovering
    }

    /// The next segment that was never sent.
    fn next(&self) -> u32 {
        let info = self.link.stacks[SERVER].info(self.ids[SERVER]).unwrap();
        if info.negotiated.1 { 11 } else { 10 }
    }
}

#[test]
fn the_first_acknowledgment_brings_two_new_segments() {
    for sack in [true, false] {
        let mut scene = timed_out(sack);
        let next = scene.next();
        assert_eq!(scene.acknowledge(MSS), [next, next + 1]);
        // Nothing else goes until the next one.
        scene.link.stacks[SERVER].send(scene.ids[SERVER], b"more").unwrap();
        let mut list = PacketList::default();
        scene.link.stacks[SERVER].flush(scene.link.now, &mut list);
        assert_eq!((list.packets.len(), scene.is_recovering()), (0, true));
        // What was not sent again is acknowledged: the time-out was spurious.
        let left = scene.acknowledge(2 * MSS);
        assert!(!scene.is_recovering(), "SACK {sack}");
        assert!(left.iter().all(|place| *place >= next + 2), "{left:?}");
    }
}

#[test]
fn a_duplicate_after_it_says_that_the_rest_is_lost() {
    let mut scene = timed_out(false);
    assert_eq!(scene.acknowledge(MSS).len(), 2);
    assert_eq!(scene.acknowledge(MSS), [1]);
    assert!(scene.is_recovering());
    assert_eq!(scene.acknowledge(2 * MSS)[0], 2);
    assert!(scene.is_recovering());
}

#[test]
fn a_duplicate_before_it_ends_it_without_sack() {
    let mut scene = timed_out(false);
    // The first changes the window, which is no duplicate.
    assert!(scene.acknowledge(0).is_empty() && scene.acknowledge(0).is_empty());
    assert_eq!(scene.acknowledge(MSS)[0], 1);
    assert!(scene.is_recovering());
    // With SACK it only says what arrived (3.1 step 2).
    let mut scene = timed_out(true);
    let next = scene.next();
    scene.sack = Some((scene.ack.wrapping_add(5 * MSS), scene.ack.wrapping_add(6 * MSS)));
    assert!(scene.acknowledge(0).is_empty());
    assert_eq!(scene.acknowledge(MSS), [next, next + 1]);
}

#[test]
fn part_of_what_was_sent_again_is_not_enough() {
    let mut scene = timed_out(false);
    let left = scene.inject(ACK, scene.seq, scene.ack.wrapping_add(700), &[]);
    assert!(left.iter().all(|(_, seq, _)| seq.wrapping_sub(scene.ack) < 10 * MSS), "{left:?}");
    scene.acknowledge(2 * MSS);
    assert!(scene.is_recovering());
}

#[test]
fn blocks_tell_old_from_new() {
    for (first, spurious) in [(4, true), (11, false)] {
        let mut scene = timed_out(true);
        assert_eq!(scene.acknowledge(MSS), [11, 12]);
        let at = |place: u32| scene.ack.wrapping_add(place * MSS);
        scene.sack = Some((at(first), at(first + 1)));
        let left = scene.acknowledge(MSS);
        assert_eq!(scene.is_recovering(), !spurious, "{first}: {left:?}");
        assert_eq!(left.contains(&1), !spurious, "{first}: {left:?}");
    }
}

#[test]
fn without_anything_new_the_lost_are_sent_again() {
    let mut scene = scene(&Options { timestamps: false, sack: false, ..Options::default() });
    let mut list = PacketList::default();
    let server = &mut scene.link.stacks[SERVER];
    server.send(scene.ids[SERVER], &pattern(5 * MSS as usize)).unwrap();
    server.flush(scene.link.now, &mut list);
    scene.link.now += SECOND;
    scene.link.stacks[SERVER].expire(scene.link.now, &mut list);
    assert_eq!(scene.acknowledge(MSS), [1, 2]);
}
