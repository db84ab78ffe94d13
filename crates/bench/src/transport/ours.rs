//! Our transport.

use std::net::{IpAddr, SocketAddr};

use transport::{Binding, Config, ConnectionId, Event, ListenerId, Options, Packet, Rings, Stack};

use super::wire::Wire;
use super::{BATCH, BURST, Contestant, FULL, QUEUES, Short};
use crate::failure::Failure;

const MILLISECOND: u64 = 1_000_000;
/// Of one listener, and of a group.
const PORTS: [u16; 2] = [80, 81];

/// Two stacks, and connections between them.
pub(super) struct Ours {
    client: Stack<Rings>,
    server: Stack<Rings>,
    /// Both ends of each.
    ids: Vec<(ConnectionId, ConnectionId)>,
    /// At each of the ports.
    listeners: [Vec<ListenerId>; 2],
    to_server: Wire,
    to_client: Wire,
    now: u64,
    spent: u64,
    buffer: Vec<u8>,
}

fn server_address(port: u16) -> SocketAddr {
    ([10, 0, 0, 2], port).into()
}

/// One more listener of a group.
fn join(server: &mut Stack<Rings>, address: SocketAddr) -> Result<ListenerId, Failure> {
    let failed = |_| Failure::Transport("listen in a group");
    let binding = Binding { reuse_port: true, ..Binding::default() };
    let id = server.bind(address, &binding).map_err(failed)?;
    server.listen_on(id, 2 * BATCH, &Options::default()).map_err(failed)?;
    Ok(id)
}

fn client_address(number: usize) -> (IpAddr, u16) {
    ([10, 1, (number / 40_000) as u8, 1].into(), 1024 + (number % 40_000) as u16)
}

impl Ours {
    pub(super) fn new(count: usize) -> Result<Self, Failure> {
        let stack = |seed| {
            let config = Config {
                connections_v4: count + 1000,
                connections_v6: 1,
                seed: [seed; 2],
                ..Config::default()
            };
            Stack::new(config, Rings)
        };
        let (client, mut server) = (stack(1)?, stack(2)?);
        let [one, group] = PORTS;
        let listener = server
            .listen(server_address(one), 2 * BATCH, &Options::default())
            .map_err(|_| Failure::Transport("listen"))?;
        let group = (0..QUEUES).map(|_| join(&mut server, server_address(group)));
        let listeners = [vec![listener], group.collect::<Result<_, _>>()?];
        let mut made = Self {
            client,
            server,
            ids: Vec::with_capacity(count),
            listeners,
            to_server: Wire::default(),
            to_client: Wire::default(),
            now: 1_000_000_000,
            spent: 0,
            buffer: vec![0; 65_536],
        };
        while made.ids.len() < count {
            let first = made.ids.len();
            let opened = made.open(first, BATCH.min(count - first), Short::ClientFirst)?;
            made.ids.extend(opened);
        }
        Ok(made)
    }

    /// Time that the server spends on `work`.
    fn serve(
        &mut self,
        work: impl FnOnce(&mut Stack<Rings>, u64, &mut Wire, &[Packet<'_>], &mut [u8]),
    ) {
        let packets = self.to_server.packets();
        let start = dpdk::tsc();
        work(&mut self.server, self.now, &mut self.to_client, &packets, &mut self.buffer);
        self.spent += dpdk::tsc().wrapping_sub(start);
    }

    /// What the client has to send goes to the server, whose answers come back, until nothing is left.
    fn exchange(&mut self) {
        for _ in 0..3 {
            self.now += MILLISECOND / 50;
            self.client.flush(self.now, &mut self.to_server);
            self.serve(|server, now, out, input, _| {
                server.input(now, input, out);
                server.flush(now, out);
            });
            self.to_server.clear();
            self.client.input(self.now, &self.to_client.packets(), &mut self.to_server);
            self.to_client.clear();
        }
    }

    /// Opens connections from the addresses of number `first` on. Both ends are in the same order.
    fn open(
        &mut self,
        first: usize,
        count: usize,
        kind: Short,
    ) -> Result<Vec<(ConnectionId, ConnectionId)>, Failure> {
        let options = Options::default();
        let place = usize::from(kind == Short::Group);
        let (server, listeners) = (server_address(PORTS[place]), self.listeners[place].clone());
        let mut ours = Vec::with_capacity(count);
        for number in first..first + count {
            let (local, port) = client_address(number);
            let id = self.client.connect(self.now, local, port, server, &options);
            ours.push(id.map_err(|_| Failure::Transport("connect"))?);
        }
        self.exchange();
        let mut theirs = Vec::with_capacity(count);
        self.serve(|server, _, _, _, _| {
            for listener in listeners {
                while let Some(id) = server.accept(listener) {
                    theirs.push(id);
                }
            }
            while server.poll_event().is_some() {}
        });
        // A group gives them in another order than they were opened in.
        theirs.sort_by_key(|id| {
            let remote = self.server.info(*id).map(|info| info.ends.remote);
            (0..count).find(|number| {
                let (ip, port) = client_address(first + number);
                remote == Some(SocketAddr::new(ip, port))
            })
        });
        while self.client.poll_event().is_some() {}
        if theirs.len() != count {
            return Err(Failure::Transport("accept"));
        }
        Ok(ours.into_iter().zip(theirs).collect())
    }

    /// What the client wrote goes to the server, which reads it. Gives how many had something to read.
    fn carry_out(&mut self, answer: Option<&[u8]>) -> usize {
        self.client.flush(self.now, &mut self.to_server);
        let mut count = 0;
        self.serve(|server, now, out, input, buffer| {
            server.input(now, input, out);
            while let Some(event) = server.poll_event() {
                if let Event::Readable(id) = event {
                    count += usize::from(server.recv(id, buffer).is_ok_and(|n| n > 0));
                    if let Some(answer) = answer {
                        let _ = server.send(id, answer);
                    }
                }
            }
            server.flush(now, out);
            server.expire(now, out);
        });
        self.to_server.clear();
        count
    }

    /// What the server sent goes to the client, which reads it. Gives how many had something to read, and bytes.
    fn carry_back(&mut self) -> (usize, usize) {
        self.client.input(self.now, &self.to_client.packets(), &mut self.to_server);
        self.to_client.clear();
        let (mut count, mut total) = (0, 0);
        while let Some(event) = self.client.poll_event() {
            if let Event::Readable(id) = event {
                let bytes = self.client.recv(id, &mut self.buffer).unwrap_or(0);
                count += usize::from(bytes > 0);
                total += bytes;
            }
        }
        (count, total)
    }

    fn rest(&mut self) {
        self.now += 50 * MILLISECOND;
        self.client.expire(self.now, &mut self.to_server);
        self.client.flush(self.now, &mut self.to_server);
    }

    fn per(&mut self, count: usize, expected: usize) -> Result<f64, Failure> {
        let spent = std::mem::take(&mut self.spent);
        if count != expected {
            return Err(Failure::Transport("a segment was lost"));
        }
        Ok(spent as f64 / count.max(1) as f64)
    }

    /// All connections, so many times that it is worth measuring.
    fn groups(&self) -> Vec<Vec<(ConnectionId, ConnectionId)>> {
        let times = (20_000 / self.ids.len()).max(1);
        let all = self.ids.chunks(BATCH).map(<[_]>::to_vec);
        let all: Vec<_> = all.collect();
        (0..times).flat_map(|_| all.iter().cloned()).collect()
    }
}

impl Contestant for Ours {
    fn pairs(&mut self, size: usize) -> Result<f64, Failure> {
        let (body, mut count, mut expected) = (vec![7; size], 0, 0);
        self.spent = 0;
        // All have their turn before an acknowledgment that waits for data is due, so that each goes with it.
        let turn = (MILLISECOND * 30 / (self.ids.len() / BATCH + 1) as u64).min(MILLISECOND / 50);
        for group in self.groups() {
            self.now += turn;
            for (id, _) in &group {
                let _ = self.client.send(*id, &body);
            }
            self.carry_out(Some(&body));
            count += self.carry_back().0;
            expected += group.len();
        }
        self.per(count, expected)
    }

    fn receive(&mut self, size: usize) -> Result<f64, Failure> {
        let (body, mut count, mut expected) = (vec![7; size], 0, 0);
        self.spent = 0;
        for group in self.groups() {
            self.now += MILLISECOND / 50;
            for (id, _) in &group {
                let _ = self.client.send(*id, &body);
            }
            count += self.carry_out(None);
            expected += group.len();
            // Acknowledgments that waited.
            self.now += 50 * MILLISECOND;
            self.serve(|server, now, out, _, _| {
                server.expire(now, out);
                server.flush(now, out);
            });
            self.carry_back();
        }
        self.per(count, expected)
    }

    fn send(&mut self, size: usize) -> Result<f64, Failure> {
        let (body, mut count, mut expected) = (vec![7; size], 0, 0);
        self.spent = 0;
        for group in self.groups() {
            self.now += MILLISECOND / 50;
            self.serve(|server, now, out, _, _| {
                for (_, id) in &group {
                    let _ = server.send(*id, &body);
                }
                server.flush(now, out);
            });
            count += self.carry_back().0;
            self.rest();
            self.carry_out(None);
            expected += group.len();
        }
        self.per(count, expected)
    }

    fn burst(&mut self) -> Result<Option<f64>, Failure> {
        let (body, mut count, mut expected) = (vec![7; BURST * FULL], 0, 0);
        self.spent = 0;
        for group in self.groups() {
            self.now += MILLISECOND / 50;
            self.serve(|server, now, out, _, _| {
                for (_, id) in &group {
                    let _ = server.send(*id, &body);
                }
                server.flush(now, out);
            });
            count += self.carry_back().1 / FULL;
            self.rest();
            self.carry_out(None);
            expected += group.len() * BURST;
        }
        self.per(count, expected).map(Some)
    }

    fn short(&mut self, kind: Short) -> Result<Option<f64>, Failure> {
        let (body, mut count) = (vec![7; 64], 0);
        self.spent = 0;
        for _ in 0..100 {
            let pairs = self.open(self.ids.len(), BATCH, kind)?;
            for (id, _) in &pairs {
                let _ = self.client.send(*id, &body);
            }
            self.carry_out(Some(&body));
            count += self.carry_back().0;
            let sides = [kind == Short::ServerFirst, kind != Short::ServerFirst];
            for server_closes in sides {
                if server_closes {
                    self.serve(|server, _, _, _, _| {
                        while server.poll_event().is_some() {}
                        for (_, id) in &pairs {
                            server.close(*id);
                        }
                    });
                } else {
                    for (id, _) in &pairs {
                        self.client.close(*id);
                    }
                }
                self.exchange();
            }
            // Those that closed first wait their time out.
            self.now += 61_000 * MILLISECOND;
            self.client.expire(self.now, &mut self.to_server);
            self.serve(|server, now, out, _, _| server.expire(now, out));
            while self.client.poll_event().is_some() || self.server.poll_event().is_some() {}
        }
        self.per(count, 100 * BATCH).map(Some)
    }
}
