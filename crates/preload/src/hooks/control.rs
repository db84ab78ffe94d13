//! Control messages of datagrams: what the application says about one that it sends (`sent`), and is told of one that came.

mod sent;

use std::ffi::c_int;
use std::mem::{offset_of, size_of};
use std::net::{IpAddr, SocketAddr};

use host::{Errno, Report, Shape, Stamps, Wanted};
use libc::{cmsghdr, msghdr, sockaddr_in, sockaddr_in6};

use crate::clock::{self, SECOND};
use crate::{address, memory};

pub(super) use sent::{Versions, check, read};

/// Index of the interface by which datagrams come, as programs are told: that of the kernel's loopback, since Millrace's
/// ports have no numbers there.
const INTERFACE: c_int = 1;
/// Whose word an error is (`uapi/linux/errqueue.h`), and the bytes of `struct sock_extended_err`, which an address follows.
const SO_EE_ORIGIN_LOCAL: u8 = 1;
const SO_EE_ORIGIN_ICMP: u8 = 2;
const SO_EE_ORIGIN_ICMP6: u8 = 3;
const EXTENDED: usize = 16;
/// Bytes before a message's data.
const HEAD: usize = align(size_of::<cmsghdr>());

/// `CMSG_ALIGN`
const fn align(length: usize) -> usize {
    length.next_multiple_of(size_of::<usize>())
}

/// Calls `act` with the level, the kind and the data of each control message.
///
/// # Errors
/// [`Errno::FAULT`]: they are not there. [`Errno::INVAL`]: one is cut off. What `act` says.
///
/// # Safety
/// As many bytes as `message` says can be read there, if any can.
pub(super) unsafe fn each(
    message: &msghdr,
    mut act: impl FnMut(c_int, c_int, &[u8]) -> Result<(), Errno>,
) -> Result<(), Errno> {
    if message.msg_control.is_null() || message.msg_controllen == 0 {
        return Ok(());
    }
    memory::readable(message.msg_control, message.msg_controllen)?;
    // SAFETY: so many bytes, as the application says.
    let mut rest = unsafe {
        std::slice::from_raw_parts(message.msg_control.cast::<u8>(), message.msg_controllen)
    };
    while rest.len() >= size_of::<cmsghdr>() {
        let word = |at: usize| rest.get(at..at + 4).and_then(|word| word.try_into().ok());
        let length = rest.first_chunk().map_or(0, |length| usize::from_ne_bytes(*length));
        let level = word(offset_of!(cmsghdr, cmsg_level)).map_or(0, c_int::from_ne_bytes);
        let kind = word(offset_of!(cmsghdr, cmsg_type)).map_or(0, c_int::from_ne_bytes);
        act(level, kind, rest.get(HEAD..length).ok_or(Errno::INVAL)?)?;
        rest = rest.get(align(length)..).unwrap_or_default();
    }
    Ok(())
}

/// The address with the interface that it is on, if it says something only there.
fn scoped(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(mut six) if six.ip().is_unicast_link_local() => {
            six.set_scope_id(INTERFACE.unsigned_abs());
            six.into()
        }
        other => other,
    }
}

/// Writes what the application wants to be told of a datagram, or of what was said about one.
///
/// # Safety
/// As for `recvmsg`.
pub(super) unsafe fn write(message: &mut msghdr, shape: &Shape, wanted: &Wanted) {
    let room = message.msg_controllen;
    let mut list = List { message, room, used: 0 };
    list.put_stamps(shape.at, &wanted.stamps);
    if shape.segment_size > 0 {
        let size = c_int::from(shape.segment_size);
        list.put(libc::SOL_UDP, libc::UDP_GRO, &size.to_ne_bytes());
    }
    match &shape.report {
        None => list.put_packet(shape, wanted),
        Some(report) => {
            // What was found out here came in no packet.
            if report.message.is_some() {
                list.put_packet(shape, wanted);
            }
            list.put_report(report, shape.from.is_ipv6());
        }
    }
    let used = list.used;
    message.msg_controllen = used as _;
}

/// The messages written so far.
struct List<'a> {
    message: &'a mut msghdr,
    room: usize,
    used: usize,
}

impl List<'_> {
    /// When it came (`__sock_recv_timestamp`).
    fn put_stamps(&mut self, at: u64, stamps: &Stamps) {
        let Stamps { micros, nanos, three, new } = *stamps;
        if !(micros || nanos || three) {
            return;
        }
        let time = clock::time_of_day(at);
        let (seconds, rest) = (time / SECOND, time % SECOND);
        // A `struct timespec` or `struct timeval`, then two that are zero.
        let times = |rest: u64| {
            let mut bytes = [0; 48];
            bytes[..8].copy_from_slice(&seconds.to_ne_bytes());
            bytes[8..16].copy_from_slice(&rest.to_ne_bytes());
            bytes
        };
        let name = |old: c_int, renamed: c_int| if new { renamed } else { old };
        if micros {
            let kind = name(libc::SO_TIMESTAMP, libc::SO_TIMESTAMP_NEW);
            self.put(libc::SOL_SOCKET, kind, &times(rest / 1000)[..16]);
        }
        if nanos {
            let kind = name(libc::SO_TIMESTAMPNS, libc::SO_TIMESTAMPNS_NEW);
            self.put(libc::SOL_SOCKET, kind, &times(rest)[..16]);
        }
        if three {
            let kind = name(libc::SO_TIMESTAMPING, libc::SO_TIMESTAMPING_NEW);
            self.put(libc::SOL_SOCKET, kind, &times(rest));
        }
    }

    /// What the packet says that the datagram, or the message about one, came in.
    fn put_packet(&mut self, shape: &Shape, wanted: &Wanted) {
        let v4 = shape.to.ip().to_canonical();
        if wanted.packet_info.1 {
            // Linux maps an IPv4 address here.
            if let IpAddr::V6(to) = shape.to.ip() {
                let mut info = [0; 20];
                info[..16].copy_from_slice(&to.octets());
                info[16..].copy_from_slice(&INTERFACE.to_ne_bytes());
                self.put(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info);
            }
        }
        match v4 {
            IpAddr::V4(to) => {
                if wanted.packet_info.0 {
                    let mut info = [0; 12];
                    info[..4].copy_from_slice(&INTERFACE.to_ne_bytes());
                    info[4..8].copy_from_slice(&to.octets());
                    info[8..].copy_from_slice(&to.octets());
                    self.put(libc::IPPROTO_IP, libc::IP_PKTINFO, &info);
                }
                if wanted.ttl.0 {
                    self.put(libc::IPPROTO_IP, libc::IP_TTL, &c_int::from(shape.ttl).to_ne_bytes());
                }
                if wanted.service.0 {
                    self.put(libc::IPPROTO_IP, libc::IP_TOS, &[shape.service]);
                }
            }
            IpAddr::V6(_) => {
                if wanted.ttl.1 {
                    let limit = c_int::from(shape.ttl).to_ne_bytes();
                    self.put(libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT, &limit);
                }
                if wanted.service.1 {
                    let class = c_int::from(shape.service).to_ne_bytes();
                    self.put(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &class);
                }
            }
        }
    }

    /// `struct sock_extended_err`, and who said so.
    fn put_report(&mut self, report: &Report, six: bool) {
        let (origin, kind, code) = match report.message {
            None => (SO_EE_ORIGIN_LOCAL, 0, 0),
            Some((from, kind, code)) if from.ip().to_canonical().is_ipv4() => {
                (SO_EE_ORIGIN_ICMP, kind, code)
            }
            Some((_, kind, code)) => (SO_EE_ORIGIN_ICMP6, kind, code),
        };
        let length = if six { size_of::<sockaddr_in6>() } else { size_of::<sockaddr_in>() };
        let mut bytes = [0; EXTENDED + size_of::<sockaddr_in6>()];
        bytes[..4].copy_from_slice(&report.errno.0.to_ne_bytes());
        bytes[4..7].copy_from_slice(&[origin, kind, code]);
        bytes[8..12].copy_from_slice(&report.info.to_ne_bytes());
        let place = bytes.get_mut(EXTENDED..EXTENDED + length);
        if let (Some((from, ..)), Some(place)) = (report.message, place) {
            let (name, _) = address::encode(scoped(from));
            let name = (&raw const name).cast::<u8>();
            // SAFETY: the name is longer than any address, and all of it is set.
            unsafe { std::ptr::copy_nonoverlapping(name, place.as_mut_ptr(), place.len()) };
        }
        let (level, kind) = if six {
            (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)
        } else {
            (libc::IPPROTO_IP, libc::IP_RECVERR)
        };
        self.put(level, kind, bytes.get(..EXTENDED + length).unwrap_or_default());
    }

    /// One more; what does not fit is cut, as Linux cuts it (`put_cmsg`).
    fn put(&mut self, level: c_int, kind: c_int, data: &[u8]) {
        let left = self.room - self.used;
        if self.message.msg_control.is_null() || left < size_of::<cmsghdr>() {
            self.message.msg_flags |= libc::MSG_CTRUNC;
            return;
        }
        if memory::writable(self.message.msg_control, self.room).is_err() {
            return;
        }
        let whole = HEAD + data.len();
        let length = whole.min(left);
        if length < whole {
            self.message.msg_flags |= libc::MSG_CTRUNC;
        }
        // SAFETY: all zeros are a header.
        let mut head: cmsghdr = unsafe { std::mem::zeroed() };
        (head.cmsg_len, head.cmsg_level, head.cmsg_type) = (length as _, level, kind);
        // SAFETY: as many bytes are left, as the application says; the data is as long.
        unsafe {
            let place = self.message.msg_control.cast::<u8>().add(self.used);
            place.cast::<cmsghdr>().write_unaligned(head);
            std::ptr::copy_nonoverlapping(data.as_ptr(), place.add(HEAD), length - HEAD);
        }
        self.used += align(whole).min(left);
    }
}
