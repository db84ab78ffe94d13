//! The trait that transports have in common: one application over TCP, and over a layer on TCP.

use std::net::{IpAddr, SocketAddr};

use super::pair::{ADDRESSES, CLIENT, SERVER};
use crate::options::{MILLISECOND, SECOND};
use crate::*;

/// A layer that is to TCP what TLS will be: it changes what goes through and hands on the rest.
struct Veiled<T>(T);

const VEIL: u8 = 0x5a;

fn veil(bytes: &mut [u8]) {
    bytes.iter_mut().for_each(|byte| *byte ^= VEIL);
}

impl<T: Transport> Transport for Veiled<T> {
    fn input(&mut self, now: u64, packets: &[Packet<'_>], sink: &mut dyn Sink) {
        self.0.input(now, packets, sink);
    }
    fn expire(&mut self, now: u64, sink: &mut dyn Sink) {
        self.0.expire(now, sink);
    }
    fn flush(&mut self, now: u64, sink: &mut dyn Sink) {
        self.0.flush(now, sink);
    }
    fn next_deadline(&self) -> Option<u64> {
        self.0.next_deadline()
    }
    fn poll_event(&mut self) -> Option<Event> {
        self.0.poll_event()
    }
    fn listen(
        &mut self,
        address: SocketAddr,
        backlog: usize,
        options: &Options,
    ) -> Result<ListenerId, BindError> {
        self.0.listen(address, backlog, options)
    }
    fn listener_address(&self, listener: ListenerId) -> Option<SocketAddr> {
        self.0.listener_address(listener)
    }
    fn backlog(&self, listener: ListenerId) -> Option<Backlog> {
        self.0.backlog(listener)
    }
    fn accept(&mut self, listener: ListenerId) -> Option<ConnectionId> {
        self.0.accept(listener)
    }
    fn close_listener(&mut self, listener: ListenerId) {
        self.0.close_listener(listener);
    }
    fn connect(
        &mut self,
        now: u64,
        local: IpAddr,
        port: u16,
        remote: SocketAddr,
        options: &Options,
    ) -> Result<ConnectionId, ConnectError> {
        self.0.connect(now, local, port, remote, options)
    }
    fn ends(&self, id: ConnectionId) -> Option<Ends> {
        self.0.ends(id)
    }
    fn send_with(
        &mut self,
        id: ConnectionId,
        bytes: &[u8],
        write: Write,
    ) -> Result<usize, SocketError> {
        let mut veiled = bytes.to_vec();
        veil(&mut veiled);
        self.0.send_with(id, &veiled, write)
    }
    fn recv(&mut self, id: ConnectionId, target: &mut [u8]) -> Result<usize, SocketError> {
        let count = self.0.recv(id, target)?;
        veil(&mut target[..count]);
        Ok(count)
    }
    fn peek(
        &self,
        id: ConnectionId,
        offset: usize,
        target: &mut [u8],
    ) -> Result<usize, SocketError> {
        let count = self.0.peek(id, offset, target)?;
        veil(&mut target[..count]);
        Ok(count)
    }
    fn is_finished(&self, id: ConnectionId) -> bool {
        self.0.is_finished(id)
    }
    fn readiness(&mut self, id: ConnectionId) -> Readiness {
        self.0.readiness(id)
    }
    fn take_error(&mut self, id: ConnectionId) -> Option<Failure> {
        self.0.take_error(id)
    }
    fn options(&self, id: ConnectionId) -> Option<&Options> {
        self.0.options(id)
    }
    fn set_options(&mut self, id: ConnectionId, options: Options) -> Result<(), SocketError> {
        self.0.set_options(id, options)
    }
    fn shutdown(&mut self, id: ConnectionId) -> Result<(), SocketError> {
        self.0.shutdown(id)
    }
    fn shutdown_receive(&mut self, id: ConnectionId) -> Result<(), SocketError> {
        self.0.shutdown_receive(id)
    }
    fn close(&mut self, id: ConnectionId) {
        self.0.close(id);
    }
    fn abort(&mut self, id: ConnectionId) {
        self.0.abort(id);
    }
}

/// A client asks, a server answers with the same, both close. Gives what went over the wire.
fn converse<T: Transport>(mut hosts: [T; 2]) -> Vec<Vec<u8>> {
    let options = Options::default();
    let any = (ADDRESSES[SERVER], 0).into();
    let listener = hosts[SERVER].listen(any, 5, &options).unwrap();
    let to = hosts[SERVER].listener_address(listener).unwrap();
    let mut now = SECOND;
    let client = hosts[CLIENT].connect(now, ADDRESSES[CLIENT].into(), 0, to, &options).unwrap();
    hosts[CLIENT].send(client, b"how are you?").unwrap();
    let (mut server, mut wire, mut answer) = (None, Vec::new(), Vec::new());
    for _ in 0..200 {
        now += MILLISECOND;
        for side in [CLIENT, SERVER] {
            let mut list = PacketList::default();
            hosts[side].expire(now, &mut list);
            hosts[side].flush(now, &mut list);
            let mut none = PacketList::default();
            for packet in &list.packets {
                hosts[1 - side].input(now, &[Packet::new(packet)], &mut none);
            }
            let mut back = PacketList::default();
            for packet in &none.packets {
                hosts[side].input(now, &[Packet::new(packet)], &mut back);
            }
            wire.extend(list.packets);
            wire.extend(none.packets);
        }
        if hosts[SERVER].backlog(listener).unwrap().waiting > 0 {
            server = hosts[SERVER].accept(listener);
        }
        let mut buffer = [0; 100];
        if let Some(id) = server.filter(|id| hosts[SERVER].readiness(*id).readable) {
            let count = hosts[SERVER].recv(id, &mut buffer).unwrap();
            if count > 0 {
                hosts[SERVER].send(id, &buffer[..count]).unwrap();
                hosts[SERVER].shutdown(id).unwrap();
            } else if hosts[SERVER].is_finished(id) {
                hosts[SERVER].close(id);
                server = None;
            }
        }
        let count = hosts[CLIENT].recv(client, &mut buffer).unwrap_or(0);
        answer.extend_from_slice(&buffer[..count]);
        if hosts[CLIENT].is_finished(client) {
            hosts[CLIENT].close(client);
        }
        if let Some(Event::Gone(id, end)) = hosts[CLIENT].poll_event() {
            assert!(id == client && end.acknowledged && answer == b"how are you?");
            return wire;
        }
    }
    panic!("it did not end; {} bytes of an answer", answer.len());
}

#[test]
fn one_application_over_tcp_and_over_a_layer_on_it() {
    let stack = || Stack::new(Config::default(), Rings).unwrap();
    let has = |wire: &[Vec<u8>], text: &[u8]| {
        wire.iter().any(|packet| packet.windows(text.len()).any(|window| window == text))
    };
    let mut veiled = b"how are you?".to_vec();
    veil(&mut veiled);
    let plain = converse([stack(), stack()]);
    assert!(has(&plain, b"how are you?") && !has(&plain, &veiled));
    let hidden = converse([Veiled(stack()), Veiled(stack())]);
    assert!(has(&hidden, &veiled) && !has(&hidden, b"how are you?"));
}
