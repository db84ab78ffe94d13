//! Attaching.

use std::ffi::{c_char, c_int};
use std::path::Path;

use super::fault::{at, count, place, room, shown, text};
use super::{Fault, guard};
use crate::Client;

/// A process that is attached to the daemon. Threads may share it, but for millrace_reattach() and millrace_detach().
#[derive(Debug)]
pub struct ClientHandle(pub(super) Client);

/// A port of the daemon.
#[repr(C)]
#[derive(Debug)]
pub struct PortView {
    /// Its name, cut off after 63 bytes, with a zero byte behind.
    pub name: [c_char; 64],
    /// Its MAC address.
    pub mac: [u8; 6],
    /// Bytes of an IP packet.
    pub mtu: u16,
    /// Its number, as in millrace_packet.
    pub number: u8,
}

/// Attaches to the daemon at the socket `path`; with NULL at what the environment variable MILLRACE_ATTACH says, else
/// at /run/millrace/attach.sock. `name` is shown to people: 1 to 63 bytes.
///
/// Gives 0 and the client, which millrace_detach() ends; or a status: MILLRACE_NO_DAEMON, MILLRACE_REFUSED,
/// MILLRACE_VERSION_MISMATCH.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millrace_attach(
    path: *const c_char,
    name: *const c_char,
    client: *mut *mut ClientHandle,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's pointers, see the module.
        let (path, name, target) =
            unsafe { (text(path, "path")?, text(name, "name")?, place(client, "client")?) };
        target.write(std::ptr::null_mut());
        let attached = Client::attach(path.map(Path::new), name.ok_or(Fault::Null("name"))?)?;
        target.write(Box::into_raw(Box::new(ClientHandle(attached))));
        Ok(0)
    })
}

/// Attaches anew, by the same socket and name, when a daemon that was gone is back. Channels of before stay dead: close
/// them and open new ones.
///
/// Gives 0 or a status, as millrace_attach().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millrace_reattach(client: *mut ClientHandle) -> c_int {
    guard(|| {
        // SAFETY: the caller's pointer.
        let client = unsafe { at(client, "client")? };
        client.0.reattach()?;
        Ok(0)
    })
}

/// Ends an attachment; its channels live on until they are closed. NULL is well.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millrace_detach(client: *mut ClientHandle) {
    guard(|| {
        if !client.is_null() {
            // SAFETY: `millrace_attach` made it, and the caller does not use it again.
            drop(unsafe { Box::from_raw(client) });
        }
        Ok(0)
    });
}

/// Ports that this client may use.
///
/// Gives how many there are and writes the first `room` of them; or a status.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millrace_ports(
    client: *const ClientHandle,
    ports: *mut PortView,
    room: usize,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's pointers.
        let (client, targets) =
            unsafe { (shown(client, "client")?, self::room(ports, room, "ports")?) };
        let found = client.0.ports()?;
        for (target, port) in targets.iter_mut().zip(&found) {
            let mut name = [0; 64];
            for (target, byte) in name.iter_mut().take(63).zip(port.name.bytes()) {
                *target = byte as c_char;
            }
            target.write(PortView { name, mac: port.mac, mtu: port.mtu, number: port.number });
        }
        Ok(count(found.len()))
    })
}
