//! What the kernel says of a network interface in this thread's network namespace.

use std::ffi::CString;

/// Longest interface name: IFNAMSIZ is 16 with the NUL.
pub(super) const INTERFACE_NAME: usize = 15;
/// ETHTOOL_GCHANNELS of linux/ethtool.h.
const GET_CHANNELS: u32 = 0x3c;

/// `struct ethtool_channels`.
#[repr(C)]
#[derive(Default)]
struct Channels {
    command: u32,
    max_rx: u32,
    max_tx: u32,
    max_other: u32,
    max_combined: u32,
    rx: u32,
    tx: u32,
    other: u32,
    combined: u32,
}

/// The kernel's index of an interface in this thread's network namespace.
pub(crate) fn interface_index(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    // SAFETY: a C string that lives through the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    (index != 0).then_some(index)
}

/// Names of the interfaces in this thread's network namespace.
pub(super) fn interfaces() -> Vec<String> {
    // SAFETY: returns an array that ends with a zero index, or null.
    let list = unsafe { libc::if_nameindex() };
    if list.is_null() {
        return Vec::new();
    }
    let mut names = Vec::new();
    let mut entry = list;
    // SAFETY: the walk stops at the array's end mark; names are C strings.
    unsafe {
        while (*entry).if_index != 0 {
            let name = std::ffi::CStr::from_ptr((*entry).if_name);
            names.push(name.to_string_lossy().into_owned());
            entry = entry.add(1);
        }
        libc::if_freenameindex(list);
    }
    names
}

/// The kernel's `IFF_*` flags of an interface.
pub(crate) fn interface_flags(name: &str) -> Option<i32> {
    let request = ask(name, libc::SIOCGIFFLAGS, std::ptr::null_mut())?;
    // SAFETY: the call has filled this member of the union.
    Some(i32::from(unsafe { request.ifr_ifru.ifru_flags }))
}

/// Queues of an interface that both receive and send: what net_af_xdp can have. An interface that
/// does not count them so (veth) is taken for one of 1, as the driver does.
pub(crate) fn combined_queues(name: &str) -> u16 {
    let mut channels = Channels { command: GET_CHANNELS, ..Channels::default() };
    let answer = ask(name, libc::SIOCETHTOOL, (&raw mut channels).cast());
    let known = answer.is_some() && channels.max_combined > 0;
    if known { u16::try_from(channels.combined).unwrap_or(u16::MAX).max(1) } else { 1 }
}

/// One `ioctl` about an interface; `data` for those that take a pointer.
fn ask(name: &str, command: libc::Ioctl, data: *mut libc::c_char) -> Option<libc::ifreq> {
    if name.len() > INTERFACE_NAME {
        return None;
    }
    // SAFETY: a request is integers and a pointer, for which zero is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    if !data.is_null() {
        request.ifr_ifru.ifru_data = data;
    }
    // SAFETY: plain system calls on a socket that is closed here; the request, and the structure
    // that `data` points at, outlive them.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if socket < 0 {
            return None;
        }
        let rc = libc::ioctl(socket, command, &mut request);
        libc::close(socket);
        (rc == 0).then_some(request)
    }
}
