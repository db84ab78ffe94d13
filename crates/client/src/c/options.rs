//! What to open, as C says it.

use std::ffi::c_char;
use std::net::IpAddr;

use super::Fault;
use super::fault::{items, place, shown, text};
use crate::{Filter, Options, PortQueue, Spread, Take};

/// Take: the channel gets the packets, and nobody else.
pub const MILLRACE_DIVERT: u32 = 0;
/// Take: the channel gets copies.
pub const MILLRACE_COPY: u32 = 1;
/// Take: the channel only sends.
pub const MILLRACE_NOTHING: u32 = 2;

/// Spread: a flow's packets all go to one channel.
pub const MILLRACE_FLOW: u32 = 0;
/// Spread: one packet after the other.
pub const MILLRACE_ROUND_ROBIN: u32 = 1;
/// Spread: a port's packets all go to one channel, its number modulo the number of channels.
pub const MILLRACE_PORT: u32 = 2;

/// Which packets a client wants, and how. Begin with millrace_options_default(). A packet must match all that is
/// given; zero and NULL match any.
#[repr(C)]
#[derive(Debug)]
pub struct OpenOptions {
    /// Names of ports; none: all that this client may use.
    pub ports: *const *const c_char,
    /// How many names.
    pub port_count: usize,
    /// MILLRACE_DIVERT, MILLRACE_COPY or MILLRACE_NOTHING.
    pub take: u32,
    /// MILLRACE_FLOW, MILLRACE_ROUND_ROBIN or MILLRACE_PORT: how packets are spread over channels.
    pub spread: u32,
    /// Slots of each ring: a power of two, from 2 to 1,048,576.
    pub slots: u32,
    /// Bytes of packet that a slot holds: 60 to 16,383. Longer packets take several slots.
    pub capacity: u32,
    /// Channels: one for each thread, 1 to 64.
    pub channels: u16,
    /// EtherType, behind VLAN tags.
    pub ether_type: u16,
    /// Source port of TCP or UDP.
    pub source_port: u16,
    /// Destination port of TCP or UDP.
    pub destination_port: u16,
    /// "tcp", "udp", "icmp", "icmp6", "arp", or the number of an IP protocol.
    pub protocol: *const c_char,
    /// IPv4 or IPv6 address of either end.
    pub host: *const c_char,
    /// Source address.
    pub source: *const c_char,
    /// Destination address.
    pub destination: *const c_char,
    /// A port whose receive queue `queue` this client wants for itself, without copies; NULL: none. The port must keep
    /// it for clients. It comes whole: everything else stays as millrace_options_default() leaves it, but for `slots`
    /// and `capacity`.
    pub queue_port: *const c_char,
    /// The number of that queue, from 0.
    pub queue: u16,
}

/// All packets of all ports, taken for this client, flow by flow, one channel, rings of 1,024 slots of 2,048 bytes. NULL
/// is well.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millrace_options_default(options: *mut OpenOptions) {
    let Options { slots, capacity, channels, .. } = Options::default();
    // SAFETY: the caller's pointer, see the module.
    if let Ok(target) = unsafe { place(options, "options") } {
        target.write(OpenOptions {
            ports: std::ptr::null(),
            port_count: 0,
            take: MILLRACE_DIVERT,
            spread: MILLRACE_FLOW,
            slots,
            capacity,
            channels,
            ether_type: 0,
            source_port: 0,
            destination_port: 0,
            protocol: std::ptr::null(),
            host: std::ptr::null(),
            source: std::ptr::null(),
            destination: std::ptr::null(),
            queue_port: std::ptr::null(),
            queue: 0,
        });
    }
}

/// As the library takes them. NULL: the default.
///
/// # Safety
/// All pointers are null or valid.
pub(super) unsafe fn read(options: *const OpenOptions) -> Result<Options, Fault> {
    if options.is_null() {
        return Ok(Options::default());
    }
    // SAFETY: as the caller says.
    let given = unsafe { shown(options, "options")? };
    // SAFETY: as the caller says.
    let names = unsafe { items(given.ports, given.port_count, "options.ports")? };
    let mut ports = Vec::with_capacity(names.len());
    for name in names {
        // SAFETY: as the caller says.
        let name = unsafe { text(*name, "a port's name")? };
        ports.push(name.ok_or(Fault::Null("a port's name"))?.to_owned());
    }
    // SAFETY: as the caller says.
    let (protocol, host, source, destination, queue_port) = unsafe {
        (
            text(given.protocol, "options.protocol")?,
            text(given.host, "options.host")?,
            text(given.source, "options.source")?,
            text(given.destination, "options.destination")?,
            text(given.queue_port, "options.queue_port")?,
        )
    };
    let any = |number: u16| (number != 0).then_some(number);
    Ok(Options {
        ports,
        take: take(given.take)?,
        spread: spread(given.spread)?,
        filter: Filter {
            ether_type: any(given.ether_type),
            protocol: protocol.map(Into::into),
            host: address("options.host", host)?,
            source: address("options.source", source)?,
            destination: address("options.destination", destination)?,
            source_port: any(given.source_port),
            destination_port: any(given.destination_port),
        },
        channels: given.channels,
        slots: given.slots,
        capacity: given.capacity,
        queue: queue_port.map(|port| PortQueue { port: port.into(), queue: given.queue }),
    })
}

fn take(given: u32) -> Result<Take, Fault> {
    match given {
        MILLRACE_DIVERT => Ok(Take::Divert),
        MILLRACE_COPY => Ok(Take::Copy),
        MILLRACE_NOTHING => Ok(Take::Nothing),
        other => Err(unknown("options.take", other, "MILLRACE_DIVERT, _COPY, _NOTHING")),
    }
}

fn spread(given: u32) -> Result<Spread, Fault> {
    match given {
        MILLRACE_FLOW => Ok(Spread::Flow),
        MILLRACE_ROUND_ROBIN => Ok(Spread::RoundRobin),
        MILLRACE_PORT => Ok(Spread::Port),
        other => Err(unknown("options.spread", other, "MILLRACE_FLOW, _ROUND_ROBIN, _PORT")),
    }
}

fn unknown(what: &'static str, given: impl ToString, known: &'static str) -> Fault {
    Fault::Option { what, given: given.to_string(), known }
}

fn address(what: &'static str, given: Option<&str>) -> Result<Option<IpAddr>, Fault> {
    let parse = |text: &str| {
        text.parse().map_err(|_| unknown(what, text, "the IPv4 and IPv6 addresses in digits"))
    };
    given.map(parse).transpose()
}
