//! Options of `IPPROTO_IP`. On an IPv6 socket they concern what it sends and receives over IPv4.

use crate::errno::Errno;
use crate::session::{Domain, Id, Kind, Role};
use crate::sessions::Sessions;
use crate::settings::{TTL, discover, flag};

use super::Value;
use super::value::{Fixed, int_or_byte, within};

/// Names (`uapi/linux/in.h`).
mod name {
    pub(super) const TOS: i32 = 1;
    pub(super) const TTL: i32 = 2;
    pub(super) const OPTIONS: i32 = 4;
    pub(super) const PKTINFO: i32 = 8;
    pub(super) const PKTOPTIONS: i32 = 9;
    pub(super) const MTU_DISCOVER: i32 = 10;
    pub(super) const RECVERR: i32 = 11;
    pub(super) const RECVTTL: i32 = 12;
    pub(super) const RECVTOS: i32 = 13;
    pub(super) const MTU: i32 = 14;
    pub(super) const FREEBIND: i32 = 15;
    pub(super) const IPSEC_POLICY: i32 = 16;
    pub(super) const XFRM_POLICY: i32 = 17;
    pub(super) const BIND_ADDRESS_NO_PORT: i32 = 24;
    pub(super) const MULTICAST_IF: i32 = 32;
    pub(super) const MULTICAST_TTL: i32 = 33;
    pub(super) const MULTICAST_LOOP: i32 = 34;
    pub(super) const ADD_MEMBERSHIP: i32 = 35;
    pub(super) const DROP_MEMBERSHIP: i32 = 36;
    pub(super) const ADD_SOURCE_MEMBERSHIP: i32 = 39;
    pub(super) const DROP_SOURCE_MEMBERSHIP: i32 = 40;
    pub(super) const UNBLOCK_SOURCE: i32 = 37;
    pub(super) const MSFILTER: i32 = 41;
    pub(super) const MCAST_JOIN_GROUP: i32 = 42;
    pub(super) const MCAST_LEAVE_GROUP: i32 = 45;
    pub(super) const MCAST_MSFILTER: i32 = 48;
    pub(super) const MULTICAST_ALL: i32 = 49;
    pub(super) const UNICAST_IF: i32 = 50;
    pub(super) const PROTOCOL: i32 = 52;
}

/// Bytes of `struct ip_mreq`, `ip_mreq_source` and `group_req`.
const GROUP: (usize, usize, usize) = (8, 12, 136);

/// What is as it is.
const FIXED: &[Fixed] = &[
    Fixed::read_only(3, 0, Errno::NOPROTOOPT),  // IP_HDRINCL
    Fixed::read_only(5, 0, Errno::INVAL),       // IP_ROUTER_ALERT
    Fixed::new(6, 0, Errno::NOPROTOOPT),        // IP_RECVOPTS
    Fixed::new(7, 0, Errno::NOPROTOOPT),        // IP_RETOPTS
    Fixed::new(11, 0, Errno::NOPROTOOPT),       // IP_RECVERR of streams
    Fixed::new(18, 0, Errno::NOPROTOOPT),       // IP_PASSSEC
    Fixed::new(19, 0, Errno::PERM),             // IP_TRANSPARENT
    Fixed::new(20, 0, Errno::NOPROTOOPT),       // IP_RECVORIGDSTADDR
    Fixed::new(21, 0, Errno::NOPROTOOPT),       // IP_MINTTL
    Fixed::read_only(22, 0, Errno::NOPROTOOPT), // IP_NODEFRAG
    Fixed::new(23, 0, Errno::NOPROTOOPT),       // IP_CHECKSUM
    Fixed::read_only(25, 0, Errno::INVAL),      // IP_RECVFRAGSIZE
    Fixed::new(26, 0, Errno::NOPROTOOPT),       // IP_RECVERR_RFC4884
    Fixed::new(32, 0, Errno::ADDRNOTAVAIL),     // IP_MULTICAST_IF
    Fixed::new(50, 0, Errno::ADDRNOTAVAIL),     // IP_UNICAST_IF
    Fixed::new(51, 0, Errno::NOPROTOOPT),       // IP_LOCAL_PORT_RANGE
];

impl Sessions {
    pub(super) fn set_ip_option(&mut self, id: Id, name: i32, value: &[u8]) -> Result<(), Errno> {
        let number = int_or_byte(value);
        let (domain, kind) = self.kind(id)?;
        let (on, stream) = (number != 0, kind == Kind::Stream);
        match name {
            name::OPTIONS => return if value.is_empty() { Ok(()) } else { Err(Errno::NOPROTOOPT) },
            name::IPSEC_POLICY | name::XFRM_POLICY => return Err(Errno::PERM),
            name::TTL
            | name::FREEBIND
            | name::MULTICAST_TTL
            | name::MULTICAST_LOOP
            | name::MULTICAST_ALL
                if value.is_empty() =>
            {
                return Err(Errno::INVAL);
            }
            name::MULTICAST_TTL | name::MULTICAST_IF if stream => return Err(Errno::INVAL),
            name::UNICAST_IF if value.len() != size_of::<i32>() => return Err(Errno::INVAL),
            name::FREEBIND => return self.switch(id, flag::FREE_BIND, on),
            name::BIND_ADDRESS_NO_PORT => return self.switch(id, flag::BIND_NO_PORT, on),
            name::PKTINFO => return self.switch(id, flag::PACKET_INFO, on),
            name::RECVERR if !stream => return self.tell_errors(id, flag::ERRORS_TOLD, on),
            name::RECVTTL => return self.switch(id, flag::TTL_TOLD, on),
            name::RECVTOS => return self.switch(id, flag::SERVICE_TOLD, on),
            name::MULTICAST_LOOP => return self.switch(id, flag::NO_LOOP, !on),
            name::MULTICAST_ALL => {
                let all = within(number, 0, 1)? == 1;
                return self.switch(id, flag::ALL_CHANGED, all != all_at_first(domain));
            }
            name::ADD_MEMBERSHIP | name::DROP_MEMBERSHIP if stream => return Err(Errno::PROTO),
            // No device of the router brings a group's packets here.
            name::ADD_MEMBERSHIP if value.len() >= GROUP.0 => return Err(Errno::NODEV),
            name::DROP_MEMBERSHIP if value.len() >= GROUP.0 => return Err(Errno::ADDRNOTAVAIL),
            name::ADD_SOURCE_MEMBERSHIP if value.len() == GROUP.1 => return Err(Errno::NODEV),
            name::DROP_SOURCE_MEMBERSHIP if value.len() == GROUP.1 => {
                return Err(Errno::ADDRNOTAVAIL);
            }
            name::MCAST_JOIN_GROUP if value.len() >= GROUP.2 => return Err(Errno::NODEV),
            name::MCAST_LEAVE_GROUP if value.len() >= GROUP.2 => return Err(Errno::ADDRNOTAVAIL),
            name::ADD_MEMBERSHIP..=name::DROP_MEMBERSHIP
            | name::UNBLOCK_SOURCE..=name::MCAST_MSFILTER => return Err(Errno::INVAL),
            _ => {}
        }
        self.change(id, |settings| {
            match name {
                name::TOS if stream => {
                    // The lower two bits are the transport's (RFC 3168).
                    settings.services.0 = number as u8 & 0xfc | settings.services.0 & 3;
                }
                name::TOS => settings.services.0 = number as u8,
                name::TTL if number == -1 => settings.ttls.0 = None,
                name::TTL => settings.ttls.0 = Some(within(number, 1, 255)? as u8),
                name::MULTICAST_TTL if number == -1 => settings.multicast_ttls.0 = 1,
                name::MULTICAST_TTL => settings.multicast_ttls.0 = within(number, 0, 255)? as u8,
                name::MTU_DISCOVER => settings.mtu_discover.0 = how(number, stream)?,
                _ => Fixed::set(FIXED, name, number)?,
            }
            Ok(())
        })
    }

    pub(super) fn ip_option(&mut self, id: Id, name: i32, room: usize) -> Result<Value, Errno> {
        let session = self.get(id)?;
        let settings = &session.settings;
        let value = match name {
            name::TOS => settings.services.0.into(),
            name::TTL => settings.ttls.0.unwrap_or(TTL).into(),
            name::OPTIONS => return Ok(Value::empty()),
            name::PKTOPTIONS if session.kind() == Kind::Stream => return Ok(Value::empty()),
            name::PKTINFO => settings.has(flag::PACKET_INFO).into(),
            name::MTU_DISCOVER => settings.mtu_discover.0.into(),
            name::RECVERR => settings.has(flag::ERRORS_TOLD).into(),
            name::RECVTTL => settings.has(flag::TTL_TOLD).into(),
            name::RECVTOS => settings.has(flag::SERVICE_TOLD).into(),
            name::MTU => return Ok(Value::int(self.path_mtu(id)?, room)),
            name::FREEBIND => settings.has(flag::FREE_BIND).into(),
            name::BIND_ADDRESS_NO_PORT => settings.has(flag::BIND_NO_PORT).into(),
            name::MULTICAST_TTL => settings.multicast_ttls.0.into(),
            name::MULTICAST_LOOP => (!settings.has(flag::NO_LOOP)).into(),
            name::MULTICAST_ALL => {
                (settings.has(flag::ALL_CHANGED) != all_at_first(session.domain)).into()
            }
            name::MSFILTER | name::MCAST_MSFILTER => return Err(Errno::INVAL),
            // inet_num: the port, whatever the name says.
            name::PROTOCOL => self.name(id)?.port().into(),
            _ => Fixed::get(FIXED, name)?,
        };
        Ok(Value::int_or_byte(value, room))
    }

    /// Bytes of a packet to the peer, as far as is known.
    pub(super) fn path_mtu(&self, id: Id) -> Result<i32, Errno> {
        match self.get(id)?.role {
            Role::Connection(connection) if self.has_peer(id) => {
                let info = self.stack.info(connection).ok_or(Errno::NOTCONN)?;
                Ok(info.path_mtu.into())
            }
            Role::Datagrams(Some(socket)) => {
                let peer = self.stack.udp_ends(socket).and_then(|ends| ends.1);
                peer.map(|peer| self.stack.path_mtu(peer.ip()).into()).ok_or(Errno::NOTCONN)
            }
            _ => Err(Errno::NOTCONN),
        }
    }
}

/// `IP_MULTICAST_ALL` before anybody has set it: `inet_create` switches it on, `inet6_create` does not.
fn all_at_first(domain: Domain) -> bool {
    domain == Domain::V4
}

/// A way of path MTU discovery. What it asks of the path's routers must be what packets say.
pub(super) fn how(number: i32, stream: bool) -> Result<u8, Errno> {
    match number {
        0..=2 | 5 => Ok(number as u8),
        // Whole, whatever the path is known to take: a stream's segments are cut to the path.
        3 if !stream => Ok(discover::PROBE),
        _ => Err(Errno::INVAL),
    }
}
