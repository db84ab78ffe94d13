//! Sockets of others, as the kernel knows them.

use std::io;
use std::mem::offset_of;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::fs::fstat;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, getsockname, ipproto, sockopt};
use serde::{Deserialize, Serialize};

use super::TransportProtocol;

/// What a socket is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    /// Its protocol.
    pub protocol: TransportProtocol,
    /// Its address and port; an IPv4 address in an IPv6 one's clothes is an IPv4 address here.
    pub address: SocketAddr,
    /// Whether connections to it are accepted.
    pub is_listening: bool,
    /// How many may wait to be accepted. `None`: it does not listen, or the kernel does not tell.
    pub backlog: Option<u32>,
    /// Whether an unspecified IPv6 address does not stand for IPv4 too.
    pub only_v6: bool,
    /// Of the network namespace that it was made in; equal to that of another socket if that was made there, too.
    pub namespace: u64,
    /// Whether others of the same owner may bind the same.
    pub reuse_port: bool,
    /// The user that it belongs to: whoever made it, not whoever shows it.
    pub owner: u32,
    /// Its number, as `/proc/net/tcp` has it.
    pub inode: u64,
}

/// Why a descriptor shows no bind.
#[derive(Debug, thiserror::Error)]
pub enum BoundError {
    /// Not a socket.
    #[error("the descriptor is no socket; show the socket that is bound")]
    NotASocket,
    /// Of a family without ports.
    #[error("the socket is neither IPv4 nor IPv6; only those are served")]
    Family,
    /// Neither TCP nor UDP.
    #[error("the socket is neither of TCP nor of UDP; only those are served")]
    Protocol,
    /// Without a port.
    #[error("the socket is not bound to a port; bind it first")]
    NotBound,
    /// Bound to a device of the kernel's.
    #[error("the socket is bound to a device (SO_BINDTODEVICE); bind it to an address alone")]
    Device,
    /// The system refused.
    #[error("the socket cannot be looked at: {0}")]
    System(#[from] io::Error),
}

impl From<Errno> for BoundError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOTSOCK => Self::NotASocket,
            error => Self::System(error.into()),
        }
    }
}

/// Looks at a socket, by what the kernel says of it. It may be anybody's and anything: this can take for ever, and no signal ends it,
/// while its owner holds its lock (by sending from memory that never comes). Nothing but a socket is asked about.
///
/// # Errors
/// [`BoundError`].
pub fn examine(socket: impl AsFd) -> Result<Bound, BoundError> {
    let socket = socket.as_fd();
    let family = sockopt::socket_domain(socket)?;
    if family != AddressFamily::INET && family != AddressFamily::INET6 {
        return Err(BoundError::Family);
    }
    let protocol = match (sockopt::socket_type(socket)?, sockopt::socket_protocol(socket)?) {
        (SocketType::STREAM, Some(ipproto::TCP)) => TransportProtocol::Tcp,
        (SocketType::DGRAM, Some(ipproto::UDP)) => TransportProtocol::Udp,
        _ => return Err(BoundError::Protocol),
    };
    let address = SocketAddr::try_from(getsockname(socket)?).map_err(|_| BoundError::Family)?;
    if address.port() == 0 {
        return Err(BoundError::NotBound);
    }
    // On each device the port may be another user's.
    if device(socket)? != 0 {
        return Err(BoundError::Device);
    }
    let is_listening = sockopt::socket_acceptconn(socket)?;
    let status = fstat(socket)?;
    Ok(Bound {
        protocol,
        address: SocketAddr::new(address.ip().to_canonical(), address.port()),
        is_listening,
        backlog: if is_listening { backlog(socket).ok() } else { None },
        only_v6: family == AddressFamily::INET6 && sockopt::ipv6_v6only(socket)?,
        namespace: namespace(socket)?,
        reuse_port: sockopt::socket_reuseport(socket)?,
        owner: status.st_uid,
        inode: status.st_ino,
    })
}

/// The index of the device that a socket is bound to (Linux 5.0); 0: of none.
fn device(socket: BorrowedFd<'_>) -> io::Result<libc::c_int> {
    option(socket, libc::SOL_SOCKET, libc::SO_BINDTOIFINDEX).map(libc::c_int::from_ne_bytes)
}

/// The number of the network namespace that a socket was made in (`SO_NETNS_COOKIE`, Linux 5.14).
///
/// # Errors
/// When it is no socket, or the kernel is older.
pub fn namespace(socket: BorrowedFd<'_>) -> io::Result<u64> {
    option(socket, libc::SOL_SOCKET, libc::SO_NETNS_COOKIE).map(u64::from_ne_bytes)
}

/// Where `struct tcp_info` says how many connections may wait at a socket that listens (Linux, `tcp_get_info`): bytes.
const BACKLOG: usize = offset_of!(libc::tcp_info, tcpi_sacked);

/// How many connections may wait at a TCP socket that listens.
fn backlog(socket: BorrowedFd<'_>) -> io::Result<u32> {
    // The kernel cuts the structure to what is asked for.
    let info: [u8; BACKLOG + size_of::<u32>()] = option(socket, libc::IPPROTO_TCP, libc::TCP_INFO)?;
    Ok(info.last_chunk::<4>().map_or(0, |number| u32::from_ne_bytes(*number)))
}

/// What an option of a socket begins with.
fn option<const N: usize>(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
) -> io::Result<[u8; N]> {
    let mut value = [0; N];
    let mut length = N as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, which the value has.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            name,
            value.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::fs::File;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::unix::net::UnixListener;

    use rustix::net::{SocketFlags, bind, listen, socket_with};

    #[test]
    fn a_listener_is_what_the_kernel_says() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let bound = examine(&listener).unwrap();
        assert_eq!(bound.address, listener.local_addr().unwrap());
        assert_eq!((bound.protocol, bound.is_listening), (TransportProtocol::Tcp, true));
        assert_eq!(bound.owner, rustix::process::geteuid().as_raw());
        assert!(!bound.only_v6 && !bound.reuse_port);
        let other = UdpSocket::bind("0.0.0.0:0").unwrap();
        let other = examine(&other).unwrap();
        assert_eq!((other.protocol, other.is_listening), (TransportProtocol::Udp, false));
        assert_eq!(other.namespace, bound.namespace);
        assert_ne!(bound.namespace, 0);
    }

    #[test]
    fn a_connection_does_not_listen() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let bound = examine(&stream).unwrap();
        assert_eq!((bound.is_listening, bound.backlog), (false, None));
    }

    #[test]
    fn as_many_may_wait_as_listen_was_told_last() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        for most in [9, 0, 70] {
            listen(&listener, most).unwrap();
            assert_eq!(examine(&listener).unwrap().backlog, Some(most as u32));
        }
        let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(examine(&datagrams).unwrap().backlog, None);
    }

    #[test]
    fn both_versions_or_one() {
        let make = |only: bool| {
            let flags = SocketFlags::CLOEXEC;
            let socket = socket_with(AddressFamily::INET6, SocketType::STREAM, flags, None);
            let socket = socket.unwrap();
            sockopt::set_ipv6_v6only(&socket, only).unwrap();
            sockopt::set_socket_reuseport(&socket, true).unwrap();
            socket
        };
        let both = make(false);
        assert!(matches!(examine(&both), Err(BoundError::NotBound)));
        bind(&both, &"[::]:0".parse::<std::net::SocketAddrV6>().unwrap()).unwrap();
        let bound = examine(&both).unwrap();
        assert!(!bound.only_v6 && bound.reuse_port && !bound.is_listening);
        let only = make(true);
        bind(&only, &"[::1]:0".parse::<std::net::SocketAddrV6>().unwrap()).unwrap();
        assert!(examine(&only).unwrap().only_v6);
        let mapped = make(false);
        bind(&mapped, &"[::ffff:127.0.0.1]:0".parse::<std::net::SocketAddrV6>().unwrap()).unwrap();
        assert!(examine(&mapped).unwrap().address.is_ipv4());
    }

    #[test]
    fn what_is_bound_to_a_device_is_told_apart() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(examine(&socket).is_ok());
        let (level, name) = (libc::SOL_SOCKET, libc::SO_BINDTODEVICE);
        // SAFETY: the name of a device, and its length.
        let done =
            unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, c"lo".as_ptr().cast(), 3) };
        assert_eq!(done, 0, "anybody may, since Linux 5.7");
        assert!(matches!(examine(&socket), Err(BoundError::Device)));
    }

    #[test]
    fn what_is_no_such_socket_is_told_apart() {
        let file = File::open("/dev/null").unwrap();
        assert!(matches!(examine(&file), Err(BoundError::NotASocket)));
        let path = std::env::temp_dir().join(format!("millrace-bound-{}", std::process::id()));
        let unix = UnixListener::bind(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(examine(&unix), Err(BoundError::Family)));
        let flags = SocketFlags::CLOEXEC;
        let multi =
            socket_with(AddressFamily::INET, SocketType::STREAM, flags, Some(ipproto::MPTCP));
        if let Ok(multi) = multi {
            assert!(matches!(examine(&multi), Err(BoundError::Protocol)));
        }
    }
}
