//! Sockets that a daemon which was killed has left: the drivers that make them refuse a path that is there.

use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use dpdk::{Device, DeviceKind};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

/// Removes the socket that a device is to make, if it is there and nobody listens on it.
pub(super) fn remove_socket(device: &Device) {
    let kind = match device.kind() {
        DeviceKind::Memif if device.option("role") == Some("server") => SocketType::SEQPACKET,
        DeviceKind::VhostUser if device.option("client") != Some("1") => SocketType::STREAM,
        _ => return,
    };
    remove_stale(Path::new(device.argument()), kind);
}

fn remove_stale(path: &Path, kind: SocketType) {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if !is_socket {
        return;
    }
    // It does not wait for a place among those that are to be accepted.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, kind, flags, None);
    let asked = socket.and_then(|socket| connect(&socket, &SocketAddrUnix::new(path)?));
    if asked != Err(Errno::CONNREFUSED) {
        return;
    }
    match fs::remove_file(path) {
        Ok(()) => tracing::info!("{}: a stale socket was removed", path.display()),
        Err(error) => tracing::warn!("{}: a stale socket: {error}", path.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;
    use std::thread::sleep;
    use std::time::Duration;

    #[test]
    fn only_a_socket_without_a_listener_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("wire.sock");
        let device = |text: &str| format!("{text}:{}", path.display()).parse::<Device>().unwrap();
        let listener = UnixListener::bind(&path).unwrap();
        remove_socket(&device("vhost-user"));
        assert!(path.exists(), "somebody listens");
        drop(listener);
        remove_socket(&format!("vhost-user:{},client=1", path.display()).parse().unwrap());
        remove_socket(&device("memif"));
        assert!(path.exists(), "a client makes no socket");
        // A process that another test starts has the listener for a moment.
        let is_gone = (0..2000).any(|_| {
            sleep(Duration::from_millis(1));
            remove_socket(&device("vhost-user"));
            !path.exists()
        });
        assert!(is_gone);
        fs::write(&path, "precious").unwrap();
        remove_socket(&device("vhost-user"));
        assert!(path.exists(), "no socket");
    }
}
