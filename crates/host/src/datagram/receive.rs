//! Receiving datagrams (`udp_recvmsg`).

use std::io::IoSliceMut;

use transport::udp::Received as Head;
use transport::{Run, UdpId};

use super::{LONGEST, refused, spread};
use crate::address::told;
use crate::errno::Errno;
use crate::message::{Incoming, Received, Shape};
use crate::session::{Id, Role};
use crate::sessions::Sessions;
use crate::settings::flag;

/// How datagrams are taken.
#[derive(Debug, Clone, Copy)]
enum Way {
    One,
    /// One that stays.
    Peek,
    /// One, with those behind it that are alike (`UDP_GRO`).
    Gather,
}

/// What was taken.
struct Taken {
    head: Head,
    bytes: usize,
    /// Of several: bytes of each; 0: it is one.
    segment_size: u16,
}

impl Sessions {
    pub(crate) fn recv_datagram(
        &mut self,
        id: Id,
        socket: Option<UdpId>,
        targets: &mut [IoSliceMut<'_>],
        incoming: Incoming,
    ) -> Result<Received, Errno> {
        if incoming.errors {
            return self.recv_report(id, socket, targets);
        }
        self.get_mut(id)?.take_error()?;
        self.take_datagram(id, targets, incoming.peek)
    }

    /// The first datagram, whatever error waits to be told.
    pub(crate) fn take_datagram(
        &mut self,
        id: Id,
        targets: &mut [IoSliceMut<'_>],
        peeks: bool,
    ) -> Result<Received, Errno> {
        let session = self.get(id)?;
        let domain = session.domain;
        let way = match peeks {
            true => Way::Peek,
            false if session.settings.has(flag::GATHERED) => Way::Gather,
            false => Way::One,
        };
        let Role::Datagrams(Some(socket)) = session.role else { return Err(Errno::AGAIN) };
        let Taken { head, bytes, segment_size } = match targets {
            [target] => self.take(socket, target, way)?,
            _ => self.scatter(socket, targets, way)?,
        };
        let shape = Shape {
            length: head.length,
            from: told(domain, head.from),
            to: told(domain, head.to),
            ttl: head.ttl,
            service: head.service,
            segment_size,
            at: head.at,
            report: None,
        };
        Ok(Received { bytes, shape: Some(shape) })
    }

    fn take(&mut self, socket: UdpId, target: &mut [u8], way: Way) -> Result<Taken, Errno> {
        let one = |head: Head, room: usize| {
            let bytes = head.length.min(room);
            Taken { head, bytes, segment_size: 0 }
        };
        let room = target.len();
        let taken = match way {
            Way::Peek => {
                self.stack.udp_peek(socket, target).map(|head| head.map(|it| one(it, room)))
            }
            Way::One => {
                self.stack.udp_recv(socket, target).map(|head| head.map(|it| one(it, room)))
            }
            Way::Gather => self.stack.udp_recv_run(socket, target).map(|run| {
                run.map(|Run { first, count, copied }| match count {
                    1 => one(first, room),
                    _ => {
                        let head = Head { length: copied, ..first };
                        Taken { head, bytes: copied, segment_size: first.length as u16 }
                    }
                })
            }),
        };
        taken.map_err(refused)?.ok_or(Errno::AGAIN)
    }

    /// Into several targets, or into none.
    fn scatter(
        &mut self,
        socket: UdpId,
        targets: &mut [IoSliceMut<'_>],
        way: Way,
    ) -> Result<Taken, Errno> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let room: usize = targets.iter().map(|target| target.len()).sum();
        scratch.resize(room.min(LONGEST), 0);
        let taken = self.take(socket, &mut scratch, way);
        if let Ok(taken) = &taken {
            spread(scratch.get(..taken.bytes).unwrap_or_default(), targets);
        }
        self.scratch = scratch;
        taken
    }

    /// Bytes that taking the next one needs room for at most. `None`: there is none.
    pub(crate) fn next_datagram(&mut self, id: Id) -> Option<usize> {
        let session = self.get(id).ok()?;
        let gathers = session.settings.has(flag::GATHERED);
        let Role::Datagrams(Some(socket)) = session.role else { return None };
        let head = self.stack.udp_peek(socket, &mut []).ok().flatten()?;
        Some(if gathers { LONGEST } else { head.length })
    }
}
