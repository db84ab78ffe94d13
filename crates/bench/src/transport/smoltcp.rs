//! smoltcp, driven the same way.

use std::collections::VecDeque;

use ::smoltcp::iface::{Config, Interface, PollResult, SocketHandle, SocketSet};
use ::smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use ::smoltcp::socket::tcp::{Socket, SocketBuffer};
use ::smoltcp::time::Instant;
use ::smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};

use super::{BATCH, BURST, Contestant, FULL, Short};
use crate::failure::Failure;

/// Bytes of each buffer: room for one segment.
const BUFFER: usize = 2048;
/// The same of a lone connection: room for a burst.
const LARGE: usize = 32_768;
const PORT: u16 = 80;

/// Packets in and out.
#[derive(Default)]
struct Port {
    arrived: VecDeque<Vec<u8>>,
    sent: VecDeque<Vec<u8>>,
    /// Memory of packets that were taken in, which goes back to who sent them, and what is there for those to come:
    /// as a port's pool has it.
    used: Vec<Vec<u8>>,
    spare: Vec<Vec<u8>>,
}

struct Received<'a>(Vec<u8>, &'a mut Vec<Vec<u8>>);
struct Sending<'a>(&'a mut VecDeque<Vec<u8>>, &'a mut Vec<Vec<u8>>);

impl RxToken for Received<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, take: F) -> R {
        let result = take(&self.0);
        self.1.push(self.0);
        result
    }
}

impl TxToken for Sending<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, fill: F) -> R {
        let mut packet = self.1.pop().unwrap_or_default();
        packet.resize(length, 0);
        let result = fill(&mut packet);
        self.0.push_back(packet);
        result
    }
}

impl Device for Port {
    type RxToken<'a> = Received<'a>;
    type TxToken<'a> = Sending<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Received<'_>, Sending<'_>)> {
        let packet = self.arrived.pop_front()?;
        Some((Received(packet, &mut self.used), Sending(&mut self.sent, &mut self.spare)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Sending<'_>> {
        Some(Sending(&mut self.sent, &mut self.spare))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = 1500;
        capabilities
    }
}

struct Host {
    interface: Interface,
    port: Port,
    sockets: SocketSet<'static>,
    handles: Vec<SocketHandle>,
    /// What an application reads into.
    buffer: Vec<u8>,
}

impl Host {
    fn new(address: IpAddress, count: usize) -> Self {
        let mut port = Port::default();
        let config = Config::new(HardwareAddress::Ip);
        let mut interface = Interface::new(config, &mut port, Instant::ZERO);
        interface.update_ip_addrs(|addresses| {
            // There is room for one.
            let _ = addresses.push(IpCidr::new(address, 8));
        });
        let mut sockets = SocketSet::new(Vec::with_capacity(count));
        let handles = (0..count).map(|_| {
            let bytes = if count == 1 { LARGE } else { BUFFER };
            let buffer = || SocketBuffer::new(vec![0; bytes]);
            let mut socket = Socket::new(buffer(), buffer());
            // Its segments are a little larger than ours: the last of a burst leaves with the others.
            socket.set_nagle_enabled(false);
            sockets.add(socket)
        });
        let handles = handles.collect();
        Self { interface, port, sockets, handles, buffer: vec![0; LARGE] }
    }

    fn poll(&mut self, now: i64) {
        self.interface.poll(Instant::from_micros(now), &mut self.port, &mut self.sockets);
    }

    /// A poll sends one segment of each socket: the others leave too.
    fn send_all(&mut self, now: i64) {
        let now = Instant::from_micros(now);
        let mut sends = PollResult::SocketStateChanged;
        while sends == PollResult::SocketStateChanged {
            sends = self.interface.poll_egress(now, &mut self.port, &mut self.sockets);
        }
    }

    /// Reads what is there. Gives bytes.
    fn read(&mut self, group: &[usize]) -> usize {
        let mut bytes = 0;
        for handle in group.iter().filter_map(|place| self.handles.get(*place)) {
            let socket = self.sockets.get_mut::<Socket<'_>>(*handle);
            bytes += socket.recv_slice(&mut self.buffer).unwrap_or(0);
        }
        bytes
    }

    /// Reads what is there and writes `body`. Gives how many had something.
    fn serve(&mut self, group: &[usize], body: Option<&[u8]>, reads: bool) -> usize {
        let mut count = 0;
        for handle in group.iter().filter_map(|place| self.handles.get(*place)) {
            let socket = self.sockets.get_mut::<Socket<'_>>(*handle);
            if reads {
                count +=
                    usize::from(socket.recv_slice(&mut self.buffer).is_ok_and(|length| length > 0));
            }
            if let Some(body) = body {
                let _ = socket.send_slice(body);
            }
        }
        count
    }
}

/// Two interfaces, and connections between them.
pub(super) struct Smoltcp {
    client: Host,
    server: Host,
    /// us.
    now: i64,
    spent: u64,
}

impl Smoltcp {
    pub(super) fn new(count: usize) -> Result<Self, Failure> {
        let [client, server] = [1, 2].map(|host| IpAddress::v4(10, 0, 0, host));
        let (client_host, server_host) = (Host::new(client, count), Host::new(server, count));
        let mut made = Self { client: client_host, server: server_host, now: 1_000_000, spent: 0 };
        for (place, handle) in made.client.handles.clone().into_iter().enumerate() {
            if let Some(listening) = made.server.handles.get(place) {
                let socket = made.server.sockets.get_mut::<Socket<'_>>(*listening);
                socket.listen(PORT).map_err(|_| Failure::Transport("smoltcp's listen"))?;
            }
            let socket = made.client.sockets.get_mut::<Socket<'_>>(handle);
            let local = 1024 + place as u16;
            socket
                .connect(made.client.interface.context(), (server, PORT), local)
                .map_err(|_| Failure::Transport("smoltcp's connect"))?;
            if place % BATCH == BATCH - 1 || place + 1 == count {
                for _ in 0..3 {
                    made.exchange();
                }
            }
        }
        Ok(made)
    }

    fn carry_out(&mut self) {
        self.client.port.spare.append(&mut self.server.port.used);
        self.client.poll(self.now);
        self.server.port.arrived.append(&mut self.client.port.sent);
    }

    fn carry_back(&mut self) {
        self.server.port.spare.append(&mut self.client.port.used);
        self.client.port.arrived.append(&mut self.server.port.sent);
        self.client.poll(self.now);
    }

    fn exchange(&mut self) {
        self.now += 1000;
        self.carry_out();
        self.server.poll(self.now);
        self.carry_back();
    }

    /// Time that the server spends on `work`.
    fn timed<R>(&mut self, work: impl FnOnce(&mut Host, i64) -> R) -> R {
        let start = dpdk::tsc();
        let result = work(&mut self.server, self.now);
        self.spent += dpdk::tsc().wrapping_sub(start);
        result
    }

    /// All connections, so many times that it is worth measuring.
    fn groups(&self) -> Vec<Vec<usize>> {
        let count = self.server.handles.len();
        let all: Vec<usize> = (0..count).collect();
        let times = (2_000 / count).max(1);
        (0..times).flat_map(|_| all.chunks(BATCH).map(<[_]>::to_vec)).collect()
    }

    fn per(&mut self, count: usize, expected: usize) -> Result<f64, Failure> {
        let spent = std::mem::take(&mut self.spent);
        if count != expected {
            return Err(Failure::Transport("smoltcp lost a segment"));
        }
        Ok(spent as f64 / count.max(1) as f64)
    }
}

impl Contestant for Smoltcp {
    fn pairs(&mut self, size: usize) -> Result<f64, Failure> {
        let (body, mut count, mut expected) = (vec![7; size], 0, 0);
        self.spent = 0;
        for group in self.groups() {
            self.now += 20;
            self.client.serve(&group, Some(&body), false);
            self.carry_out();
            self.timed(|server, now| {
                server.poll(now);
                server.serve(&group, Some(&body), true);
                server.poll(now);
            });
            self.carry_back();
            count += self.client.serve(&group, None, true);
            expected += group.len();
        }
        self.per(count, expected)
    }

    fn receive(&mut self, size: usize) -> Result<f64, Failure> {
        let (body, mut count, mut expected) = (vec![7; size], 0, 0);
        self.spent = 0;
        for group in self.groups() {
            self.client.serve(&group, Some(&body), false);
            self.carry_out();
            count += self.timed(|server, now| {
                server.poll(now);
                server.serve(&group, None, true)
            });
            // Acknowledgments that waited.
            self.now += 50_000;
            self.timed(Host::poll);
            self.carry_back();
            expected += group.len();
        }
        self.per(count, expected)
    }

    fn send(&mut self, size: usize) -> Result<f64, Failure> {
        let (body, mut count, mut expected) = (vec![7; size], 0, 0);
        self.spent = 0;
        for group in self.groups() {
            self.now += 20;
            self.timed(|server, now| {
                server.serve(&group, Some(&body), false);
                server.poll(now);
            });
            self.carry_back();
            count += self.client.serve(&group, None, true);
            self.now += 50_000;
            self.carry_out();
            self.timed(Host::poll);
            expected += group.len();
        }
        self.per(count, expected)
    }

    /// With many connections its buffers hold a segment.
    fn burst(&mut self) -> Result<Option<f64>, Failure> {
        if self.server.handles.len() > 1 {
            return Ok(None);
        }
        let (body, mut count, mut expected) = (vec![7; BURST * FULL], 0, 0);
        self.spent = 0;
        for group in self.groups() {
            self.now += 20;
            self.timed(|server, now| {
                server.serve(&group, Some(&body), false);
                server.send_all(now);
            });
            self.carry_back();
            count += self.client.read(&group) / FULL;
            self.now += 50_000;
            self.carry_out();
            self.timed(Host::poll);
            expected += group.len() * BURST;
        }
        self.per(count, expected).map(Some)
    }

    /// Its sockets are made before; opening and closing would be measured without that.
    fn short(&mut self, _: Short) -> Result<Option<f64>, Failure> {
        Ok(None)
    }
}
