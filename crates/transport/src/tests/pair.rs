//! The wiring.

use std::collections::BTreeMap;

use crate::*;

/// Packets under way, by when they arrive and in which order they were sent.
type Wire = BTreeMap<(u64, u64), (usize, Vec<u8>)>;

/// Number of the packet and its bytes; gives how much later it arrives, if it does.
type Fate = dyn FnMut(u64, &mut Vec<u8>) -> Option<u64>;

/// Gives how long a side with something to do waits for a core: ns.
type Core = dyn FnMut() -> u64;

/// Two stacks with a wire between them. What the wire does to a packet is a function's choice.
pub(super) struct Link<B: Buffers = Rings> {
    pub(super) stacks: [Stack<B>; 2],
    pub(super) now: u64,
    wire: Wire,
    sent: u64,
    /// One way: ns.
    pub(super) delay: u64,
    /// Bytes per second each way, and bytes that wait at most; beyond them packets are lost.
    pub(super) bottleneck: Option<(u64, u64)>,
    busy_until: [u64; 2],
    /// Both look only at multiples of this: ns.
    pub(super) tick: u64,
    /// The cores that they run on, when these are busy: a side runs some time after there is something to do, then takes everything
    /// that has arrived, and its application reads and writes.
    pub(super) core: Option<Box<Core>>,
    turns: [Turn; 2],
    /// What happens to packets.
    pub(super) fate: Box<Fate>,
    pub(super) events: [Vec<Event>; 2],
    /// Everything that was sent: sender and packet.
    pub(super) seen: Vec<(usize, Vec<u8>)>,
}

/// When a side runs.
#[derive(Default, Clone, Copy)]
struct Turn {
    /// It ran last then: ns.
    last: u64,
    /// It waits so long for the next time: ns.
    wait: u64,
    /// It runs now.
    now: bool,
}

pub(super) const CLIENT: usize = 0;
pub(super) const SERVER: usize = 1;

/// Addresses of both, IPv4.
pub(super) const ADDRESSES: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 0, 2]];

impl Link {
    pub(super) fn new() -> Self {
        Self::with([Rings, Rings])
    }
}

impl<B: Buffers> Link<B> {
    /// With these buffers.
    pub(super) fn with(buffers: [B; 2]) -> Self {
        let stack = |seed, buffers| {
            let config = Config {
                seed: [seed, 1],
                connections_v4: 100,
                connections_v6: 100,
                ..Config::default()
            };
            Stack::new(config, buffers).unwrap()
        };
        let [client, server] = buffers;
        Self {
            stacks: [stack(1, client), stack(2, server)],
            now: 1_000_000_000,
            wire: Wire::new(),
            sent: 0,
            delay: 5_000_000,
            bottleneck: None,
            busy_until: [0; 2],
            tick: 1,
            core: None,
            turns: [Turn { now: true, ..Turn::default() }; 2],
            fate: Box::new(|_, _| Some(0)),
            events: [Vec::new(), Vec::new()],
            seen: Vec::new(),
        }
    }

    fn send(&mut self, from: usize, list: PacketList) {
        for mut packet in list.packets {
            self.seen.push((from, packet.clone()));
            self.sent += 1;
            let Some(left) = self.squeeze(from, packet.len() as u64) else { continue };
            if let Some(extra) = (self.fate)(self.sent, &mut packet) {
                let at = left + self.delay + extra;
                self.wire.insert((at, self.sent), (1 - from, packet));
            }
        }
    }

    /// When a packet has left the bottleneck, if it does.
    fn squeeze(&mut self, from: usize, length: u64) -> Option<u64> {
        let Some((rate, queue)) = self.bottleneck else { return Some(self.now) };
        let busy = self.busy_until[from].max(self.now);
        let waiting = (busy - self.now) * rate / 1_000_000_000;
        if waiting + length > queue {
            return None;
        }
        self.busy_until[from] = busy + length * 1_000_000_000 / rate;
        Some(self.busy_until[from])
    }

    /// Flushes both stacks, as far as they run, and takes their events.
    pub(super) fn flush(&mut self) {
        for side in self.running() {
            let mut list = PacketList::default();
            self.stacks[side].flush(self.now, &mut list);
            self.send(side, list);
            while let Some(event) = self.stacks[side].poll_event() {
                self.events[side].push(event);
            }
        }
    }

    /// Flushes both stacks into sinks that take so many packets.
    pub(super) fn flush_into(&mut self, room: usize) {
        for side in [0, 1] {
            let mut sink = Narrow { list: PacketList::default(), room };
            self.stacks[side].flush(self.now, &mut sink);
            self.send(side, sink.list);
        }
    }

    /// The sides that run now.
    fn running(&self) -> impl Iterator<Item = usize> + use<B> {
        let turns = self.turns;
        [0, 1].into_iter().filter(move |side| turns[*side].now)
    }

    /// When something happens next.
    fn next(&self) -> Option<u64> {
        if self.core.is_some() {
            return [0, 1].into_iter().filter_map(|side| self.turn(side)).min();
        }
        let wire = self.wire.first_key_value().map(|((at, _), _)| *at);
        let timers = self.stacks.iter().filter_map(Stack::next_deadline).min();
        wire.into_iter().chain(timers).min()
    }

    /// When a side gets the core for what it has to do.
    fn turn(&self, side: usize) -> Option<u64> {
        let arrival = self.wire.iter().find(|(_, (to, _))| *to == side).map(|((at, _), _)| *at);
        let due = arrival.into_iter().chain(self.stacks[side].next_deadline()).min()?;
        let turn = self.turns[side];
        Some(due.max(turn.last) + turn.wait)
    }

    /// Time goes on to `now`: who runs?
    fn hand_out_cores(&mut self, now: u64) {
        let runs = [0, 1].map(|side| self.turn(side).is_some_and(|turn| turn <= now));
        let Some(core) = &mut self.core else { return };
        for (turn, runs) in self.turns.iter_mut().zip(runs) {
            turn.now = runs;
            if runs {
                (turn.last, turn.wait) = (now, core());
            }
        }
    }

    /// Goes on to the next thing that happens, but not beyond `until`. Gives whether something did.
    pub(super) fn step(&mut self, until: u64) -> bool {
        self.flush();
        let Some(next) = self.next().filter(|next| *next <= until) else {
            self.now = until;
            return false;
        };
        self.now = self.now.max(next.next_multiple_of(self.tick));
        self.hand_out_cores(self.now);
        while let Some((to, packet)) = self.arrival() {
            let mut list = PacketList::default();
            self.stacks[to].input(self.now, &[Packet::new(&packet)], &mut list);
            self.send(to, list);
        }
        for side in self.running() {
            let mut list = PacketList::default();
            self.stacks[side].expire(self.now, &mut list);
            self.send(side, list);
        }
        self.flush();
        true
    }

    /// Takes the next packet that has arrived at a side that runs.
    fn arrival(&mut self) -> Option<(usize, Vec<u8>)> {
        let arrived = self.wire.iter().take_while(|((at, _), _)| *at <= self.now);
        let key = *arrived.into_iter().find(|(_, (to, _))| self.turns[*to].now)?.0;
        self.wire.remove(&key)
    }

    /// Lets `duration` ns pass.
    pub(super) fn run(&mut self, duration: u64) {
        let until = self.now + duration;
        while self.step(until) {}
    }

    /// A listener on the server and a connection to it: both ends of it.
    pub(super) fn connect(&mut self, client: &Options, server: &Options) -> [ConnectionId; 2] {
        let address = (ADDRESSES[SERVER], 80).into();
        let listener = self.stacks[SERVER].listen(address, 10, server).unwrap();
        let id = self.stacks[CLIENT]
            .connect(self.now, ADDRESSES[CLIENT].into(), 0, address, client)
            .unwrap();
        for _ in 0..100 {
            self.run(1_000_000_000);
            if let Some(accepted) = self.stacks[SERVER].accept(listener) {
                self.stacks[SERVER].close_listener(listener);
                return [id, accepted];
            }
        }
        panic!("no connection: {:?}", self.events);
    }

    /// Sends `bytes` from `from` and gives what the other side has read after at most `limit` ns.
    pub(super) fn transfer(
        &mut self,
        ids: [ConnectionId; 2],
        from: usize,
        bytes: &[u8],
        limit: u64,
    ) -> Vec<u8> {
        let (mut written, mut read) = (0, Vec::new());
        let until = self.now + limit;
        let mut buffer = vec![0; 65_536];
        loop {
            if written < bytes.len() && self.turns[from].now {
                written += self.stacks[from].send(ids[from], &bytes[written..]).unwrap();
            }
            while self.turns[1 - from].now {
                let count = self.stacks[1 - from].recv(ids[1 - from], &mut buffer).unwrap();
                read.extend(&buffer[..count]);
                // On a busy core it takes all before it gives way; else a bufferful at a time.
                if count == 0 || self.core.is_none() {
                    break;
                }
            }
            if read.len() >= bytes.len() || !self.step(until) && self.now >= until {
                return read;
            }
        }
    }
}

/// Takes so many packets more.
struct Narrow {
    list: PacketList,
    room: usize,
}

impl Sink for Narrow {
    fn buffer(&mut self, length: usize) -> Option<&mut [u8]> {
        self.room = self.room.checked_sub(1)?;
        self.list.buffer(length)
    }

    fn send(&mut self, departure: Departure) {
        self.list.send(departure);
    }
}

/// Bytes that differ from place to place.
pub(super) fn pattern(length: usize) -> Vec<u8> {
    (0..length as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// Numbers that look random.
pub(crate) fn random(mut seed: u64) -> impl FnMut() -> u64 {
    move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    }
}

/// What a router on the path tells the client of a packet that starts with `quoted`: 'destination unreachable'.
pub(crate) fn icmp_unreachable(quoted: &[u8], code: u8, mtu: u16) -> Vec<u8> {
    let network = wire::build::Network::V4(wire::ipv4::Fields {
        source: [10, 9, 9, 9].into(),
        destination: ADDRESSES[CLIENT].into(),
        protocol: wire::Protocol::ICMPV4,
        ttl: 64,
        service: 0,
        identification: 0,
        dont_fragment: false,
    });
    let message = wire::icmpv4::Message::Unreachable { code, mtu };
    let payload = wire::build::Payload::Icmpv4 { message, data: quoted };
    let mut error = vec![0; 600];
    let length = wire::build::packet(&mut error, &network, &payload).unwrap();
    error.truncate(length);
    error
}
