//! The error queue of sockets for datagrams (`IP_RECVERR`, `IPV6_RECVERR`, `MSG_ERRQUEUE`), and the pending error beside it.

use std::io::IoSliceMut;
use std::net::SocketAddr;

use transport::{UdpId, UdpMessage, UdpReport, UdpTrouble};

use crate::address::told;
use crate::datagram::{spread, told_of};
use crate::errno::Errno;
use crate::mask::Mask;
use crate::message::{Received, Report, Shape};
use crate::session::{Id, Role};
use crate::sessions::Sessions;

impl Sessions {
    /// The first report (`ip_recv_error`, `ipv6_recv_error`): it is taken, whatever `MSG_PEEK` says.
    pub(crate) fn recv_report(
        &mut self,
        id: Id,
        socket: Option<UdpId>,
        targets: &mut [IoSliceMut<'_>],
    ) -> Result<Received, Errno> {
        let domain = self.get(id)?.domain;
        let socket = socket.ok_or(Errno::AGAIN)?;
        let report = self.stack.udp_report(socket).ok_or(Errno::AGAIN)?;
        self.follow_up(id, socket, &report);
        let UdpReport { trouble, to, message, info, data, at } = report;
        let bytes = spread(&data, targets);
        let plain = |ip| told(domain, SocketAddr::new(ip, 0));
        let said = |message: UdpMessage| (plain(message.from), message.kind, message.code);
        let report = Report { errno: told_of(trouble), message: message.map(said), info };
        let shape = Shape {
            length: data.len(),
            from: told(domain, to),
            // What was found out here came in no packet.
            to: message.map_or(told(domain, to), |message| plain(message.to)),
            ttl: message.map_or(0, |message| message.ttl),
            service: message.map_or(0, |message| message.service),
            segment_size: 0,
            at,
            report: Some(report),
        };
        Ok(Received { bytes, shape: Some(shape) })
    }

    /// A report was taken: the pending error is that of the next one (`sock_dequeue_err_skb`).
    fn follow_up(&mut self, id: Id, socket: UdpId, taken: &UdpReport) {
        let next = self.stack.udp_first_report(socket);
        let error = next.filter(|next| next.message.is_some()).map(|next| told_of(next.trouble).0);
        let others_wait = next.is_some();
        if let Ok(session) = self.get_mut(id) {
            match error {
                Some(error) => session.error = error,
                None if taken.message.is_some() => session.error = 0,
                None => {}
            }
        }
        if others_wait {
            self.wake(id, Mask::ERR);
        }
    }

    /// Whether a socket has reports.
    pub(crate) fn has_reports(&self, role: Role) -> bool {
        match role {
            Role::Datagrams(Some(socket)) => self.stack.udp_first_report(socket).is_some(),
            _ => false,
        }
    }

    /// The network has said something about what a socket has sent: `sk_err`.
    pub(crate) fn note_trouble(&mut self, socket: UdpId) {
        let Some(id) = self.of_socket(socket) else { return };
        let Some((trouble, _)) = self.stack.udp_trouble(socket) else { return };
        if let Ok(session) = self.get_mut(id) {
            session.error = told_of(trouble).0;
        }
        self.wake(id, Mask::ERR);
    }

    /// A datagram to `remote` was refused because of its length (`ip_local_error`, `ipv6_local_error`): no pending error.
    pub(crate) fn note_refusal(&mut self, id: Id, to: Option<SocketAddr>, remote: SocketAddr) {
        let Ok(session) = self.get(id) else { return };
        let Role::Datagrams(Some(socket)) = session.role else { return };
        let options = &session.settings.datagrams;
        let wanted = if remote.is_ipv4() { options.errors_v4 } else { options.errors_v6 };
        if !wanted {
            return;
        }
        let mtu = self.fragment_size(id, remote.ip());
        // Over IPv4 it is the peer's port that is told, and none when there is no peer.
        let peer = self.stack.udp_ends(socket).and_then(|ends| ends.1);
        let port = match to {
            Some(_) if remote.is_ipv4() => peer.map_or(0, |peer| peer.port()),
            _ => remote.port(),
        };
        let report = UdpReport {
            trouble: UdpTrouble::TooBig(mtu),
            to: SocketAddr::new(remote.ip(), port),
            message: None,
            info: mtu.into(),
            data: Vec::new(),
            at: self.now,
        };
        if self.stack.udp_add_report(socket, report) {
            self.wake(id, Mask::ERR);
        }
    }

    /// `IP_RECVERR` or `IPV6_RECVERR`: without, nothing is kept.
    pub(crate) fn tell_errors(&mut self, id: Id, flag: u32, on: bool) -> Result<(), Errno> {
        self.switch(id, flag, on)?;
        if let Role::Datagrams(Some(socket)) = self.get(id)?.role {
            if !on {
                self.stack.udp_clear_reports(socket);
            }
        }
        Ok(())
    }
}
