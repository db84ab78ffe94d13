//! Segments that somebody in between, or from long ago, would send (RFC 5961, RFC 7323 5, RFC 1337).

use super::pair::*;
use crate::options::SECOND;
use crate::*;

/// A connection, and what the server expects next from the client.
pub(super) struct Scene {
    pub(super) link: Link,
    pub(super) ids: [ConnectionId; 2],
    port: u16,
    pub(super) seq: u32,
    pub(super) ack: u32,
    stamp: Option<(u32, u32)>,
    /// A block to acknowledge selectively.
    pub(super) sack: Option<(u32, u32)>,
}

pub(super) fn scene(options: &Options) -> Scene {
    let mut link = Link::new();
    let ids = link.connect(options, options);
    let data = link.transfer(ids, SERVER, &pattern(5000), SECOND);
    assert_eq!(data.len(), 5000);
    link.run(SECOND);
    let (_, packet) = link.seen.iter().rev().find(|(side, _)| *side == CLIENT).unwrap();
    let segment = wire::tcp::Segment::parse(&packet[20..]).unwrap();
    let stamp = segment.options().flatten().find_map(|option| match option {
        wire::tcp::Option::Timestamps { value, echo } => Some((value, echo)),
        _ => None,
    });
    let header = segment.header;
    let (port, seq, ack) = (header.source_port(), header.sequence(), header.acknowledgment());
    Scene { port, seq, ack, stamp, sack: None, ids, link }
}

impl Scene {
    /// What the server answers to a segment, as (flags, seq, ack).
    pub(super) fn inject(
        &mut self,
        flags: u8,
        seq: u32,
        ack: u32,
        data: &[u8],
    ) -> Vec<(u8, u32, u32)> {
        let mut options = Vec::new();
        if let Some((value, echo)) = self.stamp {
            options.extend([1, 1, 8, 10]);
            options.extend(value.to_be_bytes());
            options.extend(echo.to_be_bytes());
        }
        if let Some((start, end)) = self.sack {
            options.extend([1, 1, 5, 10]);
            options.extend(start.to_be_bytes());
            options.extend(end.to_be_bytes());
        }
        let network = wire::build::Network::V4(wire::ipv4::Fields {
            source: ADDRESSES[CLIENT].into(),
            destination: ADDRESSES[SERVER].into(),
            protocol: wire::Protocol::TCP,
            ttl: 64,
            service: 0,
            identification: 0,
            dont_fragment: true,
        });
        let fields = wire::tcp::Fields {
            source_port: self.port,
            destination_port: 80,
            sequence: seq,
            acknowledgment: ack,
            flags: wire::tcp::Flags(flags),
            window: 1000,
        };
        let mut packet = vec![0; 2000];
        let payload = wire::build::Payload::Tcp { fields, options: &options, data };
        let length = wire::build::packet(&mut packet, &network, &payload).unwrap();
        let mut list = PacketList::default();
        let stack = &mut self.link.stacks[SERVER];
        stack.input(self.link.now, &[Packet::new(&packet[..length])], &mut list);
        stack.flush(self.link.now, &mut list);
        let header = |packet: &Vec<u8>| {
            let found = wire::tcp::Segment::parse(&packet[20..]).unwrap().header;
            (found.flags().0, found.sequence(), found.acknowledgment())
        };
        list.packets.iter().map(header).collect()
    }

    fn state(&self) -> State {
        self.link.stacks[SERVER].info(self.ids[SERVER]).unwrap().state
    }

    fn dropped(&self, reason: Reason) -> u64 {
        self.link.stacks[SERVER].counters().dropped(reason)
    }
}

const ACK: u8 = 0x10;

#[test]
fn only_a_reset_at_the_edge_counts() {
    let mut scene = scene(&Options::default());
    let challenge = [(ACK, scene.ack, scene.seq)];
    assert_eq!(scene.inject(4, scene.seq.wrapping_add(1), 0, &[]), challenge);
    assert_eq!(scene.inject(4, scene.seq.wrapping_sub(1), 0, &[]), []);
    assert_eq!(scene.state(), State::Established);
    assert_eq!(
        (scene.dropped(Reason::ResetChallenged), scene.dropped(Reason::ResetOutOfWindow)),
        (1, 1)
    );
    assert_eq!(scene.inject(4, scene.seq, 0, &[]), []);
    assert_eq!(scene.state(), State::Closed);
}

#[test]
fn a_syn_is_challenged() {
    let mut scene = scene(&Options::default());
    let challenge = [(ACK, scene.ack, scene.seq)];
    assert_eq!(scene.inject(2, scene.seq, 0, &[]), challenge);
    // Twice a second at most.
    assert_eq!(scene.inject(2, scene.seq, 0, &[]), []);
    scene.link.now += SECOND / 2;
    assert_eq!(scene.inject(0x12, scene.seq.wrapping_add(5), scene.ack, &[]), challenge);
    assert_eq!((scene.state(), scene.dropped(Reason::SynChallenged)), (State::Established, 3));
}

#[test]
fn acknowledgments_must_fit() {
    let mut scene = scene(&Options::default());
    let challenge = [(ACK, scene.ack, scene.seq)];
    let far = scene.ack.wrapping_sub(1 << 30);
    assert_eq!(scene.inject(ACK, scene.seq, scene.ack.wrapping_add(1), b"x"), challenge);
    scene.link.now += SECOND;
    assert_eq!(scene.inject(ACK, scene.seq, far, b"x"), challenge);
    assert_eq!(scene.dropped(Reason::BadAck), 2);
    // An acknowledgment that is merely old does no harm: its data is taken.
    let taken = scene.inject(ACK, scene.seq, scene.ack.wrapping_sub(100), b"x");
    assert_eq!(taken, [(ACK, scene.ack, scene.seq.wrapping_add(1))]);
    assert_eq!(scene.inject(0, scene.seq.wrapping_add(1), 0, b"y"), []);
    assert_eq!(scene.dropped(Reason::NoAck), 1);
}

#[test]
fn old_time_stamps_are_refused() {
    let mut scene = scene(&Options::default());
    let fresh = scene.stamp.unwrap();
    scene.stamp = Some((fresh.0.wrapping_sub(10), fresh.1));
    let answer = [(ACK, scene.ack, scene.seq)];
    assert_eq!(scene.inject(ACK, scene.seq, scene.ack, b"old"), answer);
    scene.stamp = None;
    scene.inject(ACK, scene.seq, scene.ack, b"none");
    assert_eq!(scene.dropped(Reason::Paws), 2);
    scene.stamp = Some(fresh);
    let answer = scene.inject(ACK, scene.seq, scene.ack, b"new");
    assert_eq!(answer, [(ACK, scene.ack, scene.seq.wrapping_add(3))]);
}

#[test]
fn challenges_are_limited() {
    let mut scene = scene(&Options::default());
    let mut answers = 0;
    for _ in 0..100 {
        scene.link.now += SECOND / 100;
        answers += usize::from(!scene.inject(2, scene.seq, 0, &[]).is_empty());
    }
    assert_eq!((answers, scene.dropped(Reason::RateLimit)), (2, 98));
}

#[test]
fn a_reset_does_not_end_time_wait() {
    let mut scene = scene(&Options::default());
    scene.link.stacks[SERVER].shutdown(scene.ids[SERVER]).unwrap();
    scene.link.run(SECOND);
    scene.link.stacks[CLIENT].close(scene.ids[CLIENT]);
    scene.link.run(SECOND);
    assert_eq!(scene.state(), State::TimeWait);
    scene.inject(4, scene.seq.wrapping_add(1), 0, &[]);
    assert_eq!(scene.state(), State::TimeWait);
}

#[test]
fn urgent_data_stays_in_the_stream() {
    let mut scene = scene(&Options { timestamps: false, ..Options::default() });
    scene.link.events[SERVER].clear();
    // The builder writes no urgent pointer: 0 points at the first byte, which is not beyond it.
    scene.inject(ACK | 0x20, scene.seq, scene.ack, b"urgent");
    let mut buffer = [0; 10];
    let id = scene.ids[SERVER];
    assert_eq!(scene.link.stacks[SERVER].recv(id, &mut buffer), Ok(6));
    assert_eq!(&buffer[..6], b"urgent");
}
