//! `struct sockaddr` in and out.

use std::ffi::c_int;
use std::mem::{MaybeUninit, size_of};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use host::{Errno, Id};
use libc::{sockaddr, sockaddr_in, sockaddr_in6, sockaddr_storage, socklen_t};

use crate::{memory, real, uncancelled};

/// Bytes of an address at most.
pub(crate) const LONGEST: socklen_t = size_of::<sockaddr_storage>() as socklen_t;

/// The IPv4 or IPv6 address at `address`. `None`: it is of another family.
///
/// # Safety
/// `length` bytes can be read there.
pub(crate) unsafe fn read(
    address: *const sockaddr,
    length: socklen_t,
) -> Result<Option<SocketAddr>, Errno> {
    let length = length as usize;
    if length > size_of::<sockaddr_storage>() {
        return Err(Errno::INVAL);
    }
    if address.is_null() || length < size_of::<libc::sa_family_t>() {
        return Err(Errno::INVAL);
    }
    memory::readable(address, length)?;
    // SAFETY: at least the family is there.
    let family = c_int::from(unsafe { address.cast::<libc::sa_family_t>().read_unaligned() });
    match family {
        libc::AF_INET if length >= size_of::<sockaddr_in>() => {
            // SAFETY: as long as it has to be.
            let four = unsafe { address.cast::<sockaddr_in>().read_unaligned() };
            let ip = Ipv4Addr::from(u32::from_be(four.sin_addr.s_addr));
            Ok(Some(SocketAddrV4::new(ip, u16::from_be(four.sin_port)).into()))
        }
        // What RFC 2133 had: without a scope.
        libc::AF_INET6 if length >= size_of::<sockaddr_in6>() - 4 => {
            // SAFETY: all zeros are such an address.
            let mut six: sockaddr_in6 = unsafe { MaybeUninit::zeroed().assume_init() };
            let count = length.min(size_of::<sockaddr_in6>());
            // SAFETY: as many bytes as there are, and fit.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    address.cast::<u8>(),
                    (&raw mut six).cast::<u8>(),
                    count,
                );
            }
            let ip = Ipv6Addr::from(six.sin6_addr.s6_addr);
            let port = u16::from_be(six.sin6_port);
            Ok(Some(SocketAddrV6::new(ip, port, six.sin6_flowinfo, six.sin6_scope_id).into()))
        }
        libc::AF_INET | libc::AF_INET6 => Err(Errno::INVAL),
        _ => Ok(None),
    }
}

/// Whether an address says that there is none.
///
/// # Safety
/// The family can be read there.
pub(crate) unsafe fn is_unspecified(address: *const sockaddr) -> bool {
    // SAFETY: the caller's promise.
    let family = unsafe { address.cast::<libc::sa_family_t>().read_unaligned() };
    c_int::from(family) == libc::AF_UNSPEC
}

/// The bytes of an address as C has it.
pub(crate) fn encode(address: SocketAddr) -> (sockaddr_storage, socklen_t) {
    // SAFETY: all zeros are such a structure.
    let mut storage: sockaddr_storage = unsafe { MaybeUninit::zeroed().assume_init() };
    let length = match address {
        SocketAddr::V4(four) => {
            let there = (&raw mut storage).cast::<sockaddr_in>();
            // SAFETY: the storage is long and aligned enough for every kind of address.
            unsafe {
                (*there).sin_family = libc::AF_INET as libc::sa_family_t;
                (*there).sin_port = four.port().to_be();
                (*there).sin_addr.s_addr = u32::from(*four.ip()).to_be();
            }
            size_of::<sockaddr_in>()
        }
        SocketAddr::V6(six) => {
            let there = (&raw mut storage).cast::<sockaddr_in6>();
            // SAFETY: as above.
            unsafe {
                (*there).sin6_family = libc::AF_INET6 as libc::sa_family_t;
                (*there).sin6_port = six.port().to_be();
                (*there).sin6_flowinfo = six.flowinfo();
                (*there).sin6_addr.s6_addr = six.ip().octets();
                (*there).sin6_scope_id = six.scope_id();
            }
            size_of::<sockaddr_in6>()
        }
    };
    (storage, length as socklen_t)
}

/// Writes an address where the application wants it, cut where its room ends; says how long it is.
///
/// # Safety
/// Both are null, or `length` says how many bytes can be written at `target`.
pub(crate) unsafe fn write(
    address: SocketAddr,
    target: *mut sockaddr,
    length: *mut socklen_t,
) -> Result<(), Errno> {
    if target.is_null() {
        return Ok(());
    }
    memory::writable(length, 1)?;
    memory::writable(target, 1)?;
    let (storage, whole) = encode(address);
    // SAFETY: the caller's promise.
    let room = unsafe { length.read() };
    if i32::try_from(room).is_err() {
        return Err(Errno::INVAL);
    }
    let count = room.min(whole) as usize;
    // SAFETY: no more than there is room for, and than there is.
    unsafe {
        std::ptr::copy_nonoverlapping(
            (&raw const storage).cast::<u8>(),
            target.cast::<u8>(),
            count,
        );
        length.write(whole);
    }
    Ok(())
}

/// What a socket of the kernel's is bound to. `None`: it is no IP socket.
pub(crate) fn bound(fd: c_int) -> Result<Option<SocketAddr>, Errno> {
    // SAFETY: all zeros are such a structure.
    let mut storage: sockaddr_storage = unsafe { MaybeUninit::zeroed().assume_init() };
    let mut length = size_of::<sockaddr_storage>() as socklen_t;
    let target = (&raw mut storage).cast::<sockaddr>();
    // SAFETY: room for every kind of address.
    crate::errno::of(unsafe { real::getsockname(fd, target, &raw mut length) })?;
    // SAFETY: as long as the kernel says.
    unsafe { read(target, length) }
}

/// Whether a socket of the kernel's has a peer.
pub(crate) fn is_connected(fd: c_int) -> bool {
    // SAFETY: all zeros are such a structure.
    let mut storage: sockaddr_storage = unsafe { MaybeUninit::zeroed().assume_init() };
    let mut length = size_of::<sockaddr_storage>() as socklen_t;
    // SAFETY: room for every kind of address.
    unsafe { real::getpeername(fd, (&raw mut storage).cast(), &raw mut length) == 0 }
}

/// Has a socket of the kernel's forget its peer.
pub(crate) fn disconnect(fd: c_int) -> Result<(), Errno> {
    let family = libc::AF_UNSPEC as libc::sa_family_t;
    let none = sockaddr { sa_family: family, sa_data: [0; 14] };
    let length = size_of::<sockaddr>() as socklen_t;
    // SAFETY: an address, and its length.
    crate::errno::of(unsafe { uncancelled::connect(fd, &raw const none, length) }).map(drop)
}

/// A session's index is its descriptor.
pub(crate) fn id(fd: c_int) -> Id {
    Id(fd.unsigned_abs())
}

/// Whether the kernel alone knows the way: the host itself.
pub(crate) fn is_the_hosts(ip: IpAddr) -> bool {
    let ip = ip.to_canonical();
    ip.is_loopback() || ip.is_unspecified() || ip.is_multicast()
}

/// Whether an IPv6 address means something on one link only: the kernel knows links by their scope ids.
pub(crate) fn is_link_local(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(six) if six.is_unicast_link_local())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn back(address: SocketAddr, length: socklen_t) -> Result<Option<SocketAddr>, Errno> {
        let (storage, _) = encode(address);
        // SAFETY: the storage is longer than any length that is asked for here.
        unsafe { read((&raw const storage).cast(), length) }
    }

    #[test]
    fn addresses_come_back_as_they_went() {
        for text in ["192.0.2.1:80", "[2001:db8::1]:443", "[::ffff:192.0.2.1]:1", "0.0.0.0:0"] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(back(address, encode(address).1), Ok(Some(address)));
        }
    }

    #[test]
    fn scopes_come_back_too() {
        let six = SocketAddrV6::new("fe80::1".parse().unwrap(), 53, 0, 7);
        assert_eq!(back(six.into(), 28), Ok(Some(six.into())));
        assert!(is_link_local(IpAddr::V6(*six.ip())));
        for other in ["2001:db8::1", "::1", "169.254.0.1", "::ffff:169.254.0.1", "ff02::1"] {
            assert!(!is_link_local(other.parse().unwrap()), "{other}");
        }
    }

    #[test]
    fn short_ones_are_refused_and_others_are_the_kernels() {
        let four = "192.0.2.1:80".parse().unwrap();
        assert_eq!(back(four, 15), Err(Errno::INVAL));
        assert_eq!(back(four, 1), Err(Errno::INVAL));
        let six: SocketAddr = "[2001:db8::1]:443".parse().unwrap();
        assert_eq!(back(six, 24), Ok(Some(six)), "as RFC 2133 had it");
        assert_eq!(back(six, 23), Err(Errno::INVAL));
        let unix = libc::AF_UNIX as libc::sa_family_t;
        // SAFETY: two bytes.
        assert_eq!(unsafe { read((&raw const unix).cast(), 2) }, Ok(None));
    }

    #[test]
    fn what_does_not_fit_is_cut_and_told() {
        let address = "192.0.2.1:80".parse().unwrap();
        let (mut target, mut length) = ([0xee_u8; 16], 6 as socklen_t);
        // SAFETY: room for sixteen bytes.
        unsafe { write(address, target.as_mut_ptr().cast(), &raw mut length) }.unwrap();
        assert_eq!((length, target[6]), (16, 0xee));
        assert_eq!(target[2..6], [0, 80, 192, 0]);
        // SAFETY: nothing is written.
        assert_eq!(unsafe { write(address, std::ptr::null_mut(), std::ptr::null_mut()) }, Ok(()));
    }
}
