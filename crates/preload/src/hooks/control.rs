//! Control messages of datagrams: what the application says about one that it sends, and is told of one that came.

use std::ffi::c_int;
use std::mem::{offset_of, size_of};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use host::{Errno, Outgoing, Shape, Wanted};
use libc::{cmsghdr, msghdr};

use crate::memory;

/// Index of the interface by which datagrams come, as programs are told: that of the kernel's loopback, since Millrace's
/// ports have no numbers there.
const INTERFACE: c_int = 1;
/// Bytes before a message's data.
const HEAD: usize = align(size_of::<cmsghdr>());

/// `CMSG_ALIGN`
const fn align(length: usize) -> usize {
    length.next_multiple_of(size_of::<usize>())
}

/// Reads what `message` says about the datagram.
///
/// # Errors
/// [`Errno::INVAL`]: a message that is cut off, or that none knows.
///
/// # Safety
/// As for `sendmsg`.
pub(super) unsafe fn read(message: &msghdr, outgoing: &mut Outgoing) -> Result<(), Errno> {
    // SAFETY: the caller's promise.
    unsafe { each(message, |level, kind, data| understand(level, kind, data, outgoing)) }
}

/// Looks at what `message` says of a stream, which nothing can be said of.
///
/// # Errors
/// [`Errno::INVAL`]: a message that is cut off, or that sockets do not know (`sock_cmsg_send`).
///
/// # Safety
/// As for `sendmsg`.
pub(super) unsafe fn check(message: &msghdr) -> Result<(), Errno> {
    let is_known = |level, kind, _: &[u8]| match (level, kind) {
        (libc::SOL_SOCKET, libc::SCM_RIGHTS | libc::SCM_CREDENTIALS) => Ok(()),
        (libc::SOL_SOCKET, _) => Err(Errno::INVAL),
        _ => Ok(()),
    };
    // SAFETY: the caller's promise.
    unsafe { each(message, is_known) }
}

/// # Safety
/// As for `sendmsg`.
unsafe fn each(
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

fn understand(
    level: c_int,
    kind: c_int,
    data: &[u8],
    outgoing: &mut Outgoing,
) -> Result<(), Errno> {
    let number = || {
        let word = data.try_into().map(c_int::from_ne_bytes);
        word.or(data.try_into().map(u8::from_ne_bytes).map(c_int::from)).map_err(|_| Errno::INVAL)
    };
    let byte = |least: c_int| {
        let number = number()?;
        let fits = u8::try_from(number).ok().filter(|_| number >= least);
        fits.ok_or(Errno::INVAL)
    };
    match (level, kind) {
        (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
            let info: &[u8; 12] = data.try_into().map_err(|_| Errno::INVAL)?;
            let [_, _, _, _, a, b, c, d, ..] = *info;
            take_source(Ipv4Addr::new(a, b, c, d).into(), outgoing);
        }
        (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
            let address = data.first_chunk::<16>().filter(|_| data.len() == 20);
            take_source(Ipv6Addr::from(*address.ok_or(Errno::INVAL)?).into(), outgoing);
        }
        (libc::IPPROTO_IP, libc::IP_TOS) => outgoing.service = Some(byte(0)?),
        (libc::IPPROTO_IP, libc::IP_TTL) => outgoing.ttl = Some(byte(1)?),
        // RFC 3542 6.3, 6.5: -1 is the default.
        (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) if number()? != -1 => {
            outgoing.service = Some(byte(0)?);
        }
        (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) if number()? != -1 => {
            outgoing.ttl = Some(byte(0)?);
        }
        (libc::IPPROTO_IPV6, libc::IPV6_TCLASS | libc::IPV6_HOPLIMIT) => {}
        (libc::SOL_UDP, libc::UDP_SEGMENT) => {
            let size = data.try_into().map_err(|_| Errno::INVAL)?;
            outgoing.segment_size = u16::from_ne_bytes(size);
        }
        (libc::IPPROTO_IP | libc::IPPROTO_IPV6 | libc::SOL_UDP, _) => return Err(Errno::INVAL),
        _ => {}
    }
    Ok(())
}

fn take_source(source: IpAddr, outgoing: &mut Outgoing) {
    if !source.is_unspecified() {
        outgoing.source = Some(source);
    }
}

/// Writes what the application wants to be told of a datagram.
///
/// # Safety
/// As for `recvmsg`.
pub(super) unsafe fn write(message: &mut msghdr, shape: &Shape, wanted: &Wanted) {
    let room = message.msg_controllen;
    let mut list = List { message, room, used: 0 };
    let v4 = shape.to.ip().to_canonical();
    if wanted.packet_info.1 {
        // Linux maps an IPv4 address here.
        if let IpAddr::V6(to) = shape.to.ip() {
            let mut info = [0; 20];
            info[..16].copy_from_slice(&to.octets());
            info[16..].copy_from_slice(&INTERFACE.to_ne_bytes());
            list.put(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info);
        }
    }
    match v4 {
        IpAddr::V4(to) => {
            if wanted.packet_info.0 {
                let mut info = [0; 12];
                info[..4].copy_from_slice(&INTERFACE.to_ne_bytes());
                info[4..8].copy_from_slice(&to.octets());
                info[8..].copy_from_slice(&to.octets());
                list.put(libc::IPPROTO_IP, libc::IP_PKTINFO, &info);
            }
            if wanted.ttl.0 {
                list.put(libc::IPPROTO_IP, libc::IP_TTL, &c_int::from(shape.ttl).to_ne_bytes());
            }
            if wanted.service.0 {
                list.put(libc::IPPROTO_IP, libc::IP_TOS, &[shape.service]);
            }
        }
        IpAddr::V6(_) => {
            if wanted.ttl.1 {
                let limit = c_int::from(shape.ttl).to_ne_bytes();
                list.put(libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT, &limit);
            }
            if wanted.service.1 {
                let class = c_int::from(shape.service).to_ne_bytes();
                list.put(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &class);
            }
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
    /// One more; what does not fit is cut, as Linux cuts it (`put_cmsg`).
    fn put(&mut self, level: c_int, kind: c_int, data: &[u8]) {
        let left = self.room - self.used;
        if self.message.msg_control.is_null() || left < size_of::<cmsghdr>() {
            self.message.msg_flags |= libc::MSG_CTRUNC;
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
