//! Options of `IPPROTO_IPV6`.

use crate::errno::Errno;
use crate::session::{Id, Kind, Role};
use crate::sessions::Sessions;
use crate::settings::{TTL, flag};

use super::Value;
use super::ip::how;
use super::value::{Fixed, int, within};

/// Names (`uapi/linux/in6.h`).
mod name {
    pub(super) const ADDRFORM: i32 = 1;
    pub(super) const PKTOPTIONS_2292: i32 = 6;
    pub(super) const CHECKSUM: i32 = 7;
    pub(super) const NEXTHOP: i32 = 9;
    pub(super) const AUTHHDR: i32 = 10;
    pub(super) const UNICAST_HOPS: i32 = 16;
    pub(super) const MULTICAST_IF: i32 = 17;
    pub(super) const MULTICAST_HOPS: i32 = 18;
    pub(super) const MULTICAST_LOOP: i32 = 19;
    pub(super) const ADD_MEMBERSHIP: i32 = 20;
    pub(super) const DROP_MEMBERSHIP: i32 = 21;
    pub(super) const MTU_DISCOVER: i32 = 23;
    pub(super) const MTU: i32 = 24;
    pub(super) const RECVERR: i32 = 25;
    pub(super) const V6ONLY: i32 = 26;
    pub(super) const JOIN_ANYCAST: i32 = 27;
    pub(super) const LEAVE_ANYCAST: i32 = 28;
    pub(super) const MULTICAST_ALL: i32 = 29;
    pub(super) const FLOWLABEL_MGR: i32 = 32;
    pub(super) const IPSEC_POLICY: i32 = 34;
    pub(super) const XFRM_POLICY: i32 = 35;
    pub(super) const HDRINCL: i32 = 36;
    pub(super) const RECVPKTINFO: i32 = 49;
    pub(super) const PKTINFO: i32 = 50;
    pub(super) const RECVHOPLIMIT: i32 = 51;
    pub(super) const HOPLIMIT: i32 = 52;
    pub(super) const HOPOPTS: i32 = 54;
    pub(super) const RTHDRDSTOPTS: i32 = 55;
    pub(super) const RTHDR: i32 = 57;
    pub(super) const DSTOPTS: i32 = 59;
    pub(super) const PATHMTU: i32 = 61;
    pub(super) const DONTFRAG: i32 = 62;
    pub(super) const RECVTCLASS: i32 = 66;
    pub(super) const TCLASS: i32 = 67;
    pub(super) const ADDR_PREFERENCES: i32 = 72;
    pub(super) const UNICAST_IF: i32 = 76;
    pub(super) const FREEBIND: i32 = 78;
}

/// `AF_INET` and `AF_INET6`: forms of addresses.
const FORMS: (i32, i32) = (2, 10);
/// Bytes of `struct ipv6_mreq`.
const GROUP: usize = 20;
/// `IPV6_PREFER_SRC_TMP`, `_PUBLIC` and `_COA`; `_CGA` and `_NONCGA`, which exclude each other.
const OTHER_SOURCES: i32 = 7;
const GENERATED_OR_NOT: i32 = 0x808;
/// Bytes of the `struct sockaddr_in6` that `struct ip6_mtuinfo` begins with, and of all of it.
const PATH_MTU: (usize, usize) = (28, 32);
/// `IPV6_MIN_MTU`: bytes.
const LEAST_MTU: i32 = 1280;

/// What is as it is.
const FIXED: &[Fixed] = &[
    Fixed::new(2, 0, Errno::NOPROTOOPT),        // IPV6_2292PKTINFO
    Fixed::new(3, 0, Errno::NOPROTOOPT),        // IPV6_2292HOPOPTS
    Fixed::new(4, 0, Errno::NOPROTOOPT),        // IPV6_2292DSTOPTS
    Fixed::new(5, 0, Errno::NOPROTOOPT),        // IPV6_2292RTHDR
    Fixed::new(8, 0, Errno::NOPROTOOPT),        // IPV6_2292HOPLIMIT
    Fixed::new(11, 0, Errno::NOPROTOOPT),       // IPV6_FLOWINFO
    Fixed::new(17, 0, Errno::NODEV),            // IPV6_MULTICAST_IF
    Fixed::read_only(22, 0, Errno::NOPROTOOPT), // IPV6_ROUTER_ALERT
    Fixed::new(25, 0, Errno::NOPROTOOPT),       // IPV6_RECVERR of streams
    Fixed::new(30, 0, Errno::NOPROTOOPT),       // IPV6_ROUTER_ALERT_ISOLATE
    Fixed::new(31, 0, Errno::NOPROTOOPT),       // IPV6_RECVERR_RFC4884
    Fixed::new(33, 0, Errno::NOPROTOOPT),       // IPV6_FLOWINFO_SEND
    Fixed::new(53, 0, Errno::NOPROTOOPT),       // IPV6_RECVHOPOPTS
    Fixed::new(56, 0, Errno::NOPROTOOPT),       // IPV6_RECVRTHDR
    Fixed::new(58, 0, Errno::NOPROTOOPT),       // IPV6_RECVDSTOPTS
    Fixed::new(60, 0, Errno::NOPROTOOPT),       // IPV6_RECVPATHMTU
    Fixed::new(70, 0, Errno::NOPROTOOPT),       // IPV6_AUTOFLOWLABEL: no labels are sent
    Fixed::new(72, 0x500, Errno::INVAL),        // IPV6_ADDR_PREFERENCES: the kernel's default
    Fixed::new(73, 0, Errno::NOPROTOOPT),       // IPV6_MINHOPCOUNT
    Fixed::new(74, 0, Errno::NOPROTOOPT),       // IPV6_RECVORIGDSTADDR
    Fixed::new(75, 0, Errno::PERM),             // IPV6_TRANSPARENT
    Fixed::new(76, 0, Errno::ADDRNOTAVAIL),     // IPV6_UNICAST_IF
    Fixed::new(77, 0, Errno::NOPROTOOPT),       // IPV6_RECVFRAGSIZE
];

impl Sessions {
    pub(super) fn set_ipv6_option(&mut self, id: Id, name: i32, value: &[u8]) -> Result<(), Errno> {
        let stream = self.get(id)?.kind() == Kind::Stream;
        match name {
            name::HOPOPTS | name::RTHDRDSTOPTS | name::RTHDR | name::DSTOPTS => {
                // Nothing takes away what is not there.
                return if value.is_empty() { Ok(()) } else { Err(Errno::INVAL) };
            }
            // Of raw sockets, or of nothing that can be set, whatever the value.
            name::CHECKSUM
            | name::NEXTHOP
            | name::AUTHHDR
            | name::HDRINCL
            | name::HOPLIMIT
            | name::PATHMTU => return Err(Errno::NOPROTOOPT),
            name::IPSEC_POLICY | name::XFRM_POLICY => return Err(Errno::PERM),
            // Packets have no flow labels, and no source but the socket's.
            name::FLOWLABEL_MGR | name::PKTINFO => return Err(Errno::INVAL),
            name::UNICAST_IF if value.len() != size_of::<i32>() => return Err(Errno::INVAL),
            // Too few bytes for a number are 0 here.
            name::DONTFRAG => {
                return self.switch(id, flag::DONT_FRAGMENT, int(value).is_ok_and(|on| on != 0));
            }
            name::MULTICAST_HOPS | name::MULTICAST_IF if stream => return Err(Errno::NOPROTOOPT),
            name::ADD_MEMBERSHIP | name::DROP_MEMBERSHIP if value.len() < GROUP => {
                return Err(Errno::INVAL);
            }
            name::ADD_MEMBERSHIP | name::DROP_MEMBERSHIP if stream => return Err(Errno::PROTO),
            name::ADD_MEMBERSHIP => return Err(Errno::NODEV),
            name::DROP_MEMBERSHIP => return Err(Errno::ADDRNOTAVAIL),
            name::JOIN_ANYCAST | name::LEAVE_ANYCAST if value.len() < GROUP => {
                return Err(Errno::INVAL);
            }
            _ => {}
        }
        let number = int(value)?;
        let on = number != 0;
        match name {
            name::V6ONLY if !self.is_unbound(id) => return Err(Errno::INVAL),
            name::V6ONLY => return self.switch(id, flag::V6_ONLY, on),
            name::ADDRFORM if number != FORMS.0 => return Err(Errno::INVAL),
            name::ADDRFORM if !self.has_peer(id) => return Err(Errno::NOTCONN),
            // What Linux says where the peer has no IPv4 address: a connection stays what it is.
            name::ADDRFORM => return Err(Errno::ADDRNOTAVAIL),
            name::MTU if number == 0 => return Ok(()),
            name::MTU if number < LEAST_MTU => return Err(Errno::INVAL),
            // It bounds the fragments of packets, and a stream's segments have none.
            name::MTU if stream => return Ok(()),
            name::ADDR_PREFERENCES if prefers_as_at_first(number) => return Ok(()),
            name::MULTICAST_LOOP => {
                return self.switch(id, flag::NO_LOOP_V6, within(number, 0, 1)? == 0);
            }
            name::MULTICAST_ALL => {
                return self.switch(id, flag::NOT_ALL_V6, !on);
            }
            name::RECVERR if !stream => return self.tell_errors(id, flag::ERRORS_TOLD_V6, on),
            name::RECVPKTINFO => return self.switch(id, flag::PACKET_INFO_V6, on),
            name::RECVHOPLIMIT => return self.switch(id, flag::TTL_TOLD_V6, on),
            name::RECVTCLASS => return self.switch(id, flag::SERVICE_TOLD_V6, on),
            name::FREEBIND => return self.switch(id, flag::FREE_BIND, on),
            _ => {}
        }
        self.change(id, |settings| {
            match name {
                name::UNICAST_HOPS => {
                    let hops = within(number, -1, 255)?;
                    settings.ttls.1 = u8::try_from(hops).ok();
                }
                name::MULTICAST_HOPS => {
                    let hops = within(number, -1, 255)?;
                    settings.multicast_ttls.1 = u8::try_from(hops).unwrap_or(1);
                }
                name::TCLASS => {
                    let class = within(number, -1, 255)?.max(0) as u8;
                    let kept = if stream { settings.services.1 & 3 } else { class & 3 };
                    settings.services.1 = class & 0xfc | kept;
                }
                name::MTU_DISCOVER => settings.mtu_discover.1 = how(number, stream)?,
                _ => Fixed::set(FIXED, name, number)?,
            }
            Ok(())
        })
    }

    /// Whether the socket has no port yet.
    fn is_unbound(&self, id: Id) -> bool {
        self.get(id).is_ok_and(|s| matches!(s.role, Role::Fresh | Role::Datagrams(None)))
    }

    pub(super) fn ipv6_option(&mut self, id: Id, name: i32, room: usize) -> Result<Value, Errno> {
        let session = self.get(id)?;
        let stream = session.kind() == Kind::Stream;
        let settings = &session.settings;
        let value = match name {
            name::ADDRFORM if self.has_peer(id) => FORMS.1,
            name::ADDRFORM => return Err(Errno::NOTCONN),
            // It answers a request, of which there can be none: there are no labels.
            name::FLOWLABEL_MGR => return Err(Errno::INVAL),
            name::PATHMTU => return self.path_mtu_info(id, room),
            name::PKTOPTIONS_2292 if stream => return Ok(Value::empty()),
            name::UNICAST_HOPS => settings.ttls.1.unwrap_or(TTL).into(),
            name::MULTICAST_HOPS => settings.multicast_ttls.1.into(),
            name::MULTICAST_LOOP => (!settings.has(flag::NO_LOOP_V6)).into(),
            name::MTU_DISCOVER => settings.mtu_discover.1.into(),
            name::MTU => self.path_mtu(id)?,
            name::V6ONLY => settings.has(flag::V6_ONLY).into(),
            name::MULTICAST_ALL => (!settings.has(flag::NOT_ALL_V6)).into(),
            name::RECVERR => settings.has(flag::ERRORS_TOLD_V6).into(),
            name::RECVPKTINFO => settings.has(flag::PACKET_INFO_V6).into(),
            name::RECVHOPLIMIT => settings.has(flag::TTL_TOLD_V6).into(),
            name::HOPOPTS | name::RTHDRDSTOPTS | name::RTHDR | name::DSTOPTS => {
                return Ok(Value::empty());
            }
            name::DONTFRAG => settings.has(flag::DONT_FRAGMENT).into(),
            name::RECVTCLASS => settings.has(flag::SERVICE_TOLD_V6).into(),
            name::TCLASS => settings.services.1.into(),
            name::FREEBIND => settings.has(flag::FREE_BIND).into(),
            _ => Fixed::get(FIXED, name)?,
        };
        Ok(Value::int(value, room))
    }

    /// `struct ip6_mtuinfo`, which names no address here, as in Linux.
    fn path_mtu_info(&self, id: Id, room: usize) -> Result<Value, Errno> {
        if room < PATH_MTU.1 {
            return Err(Errno::INVAL);
        }
        let mut bytes = [0; PATH_MTU.1];
        bytes[PATH_MTU.0..].copy_from_slice(&self.path_mtu(id)?.to_ne_bytes());
        Ok(Value::of(&bytes, room))
    }
}

/// Whether these preferences among source addresses are the ones that a socket has (`ip6_sock_set_addr_preferences`).
fn prefers_as_at_first(preferences: i32) -> bool {
    preferences & OTHER_SOURCES == 0 && preferences & GENERATED_OR_NOT != GENERATED_OR_NOT
}
