//! Where a program will be reached: what the daemon says when it is asked for what the program's library will ask.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::os::fd::AsFd as _;
use std::path::Path;

use client::session::Link;
use shm::session::OpenStack;

/// The least of a stack: it is only tried.
const TRIAL: OpenStack = OpenStack { slots: 64, capacity: 2_048, claims: 64, connections: 1 };

/// The router's addresses.
pub(super) struct Reach(Vec<IpAddr>);

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, address) in self.0.iter().enumerate() {
            let before = if number == 0 { "at" } else { "," };
            write!(f, "{before} {address}")?;
        }
        Ok(())
    }
}

/// Asks the daemon for a stack and serves a port of its own with it for a moment; else why that does not work.
pub(super) fn reach(sessions: &Path) -> Result<Reach, String> {
    let link = Link::open(Some(sessions), "millrace exec", |socket| socket)
        .map_err(|error| error.to_string())?;
    if link.addresses().is_empty() {
        return Err("no port of the router has an address: give one `addresses`".into());
    }
    let queues = link.open_stack(&TRIAL, |fd| fd).map_err(|error| error.to_string())?;
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))
        .map_err(|error| format!("no socket can be bound: {error}"))?;
    link.listen(queues.number, 0, listener.as_fd()).map_err(|error| error.to_string())?;
    Ok(Reach(link.addresses().to_vec()))
}
