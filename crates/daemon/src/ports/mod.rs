//! The ports: opened from the configuration, watched, opened anew when their device is back.
//!
//! | file | job |
//! | --- | --- |
//! | `port` | one port: what it is to be, what is open, how it is |
//! | `needs` | what ports need beyond their sections |
//! | `devices` | the thread that opens and closes devices |
//! | `open` | opening a device, on that thread |
//! | `device` | an open device, and the thread that looks at it and changes it |
//! | `given` | the ids that ports get |
//! | `stale` | sockets that a killed daemon has left |
//! | `numa` | which NUMA node cores, devices and buffers are on |
//! | `pools` | buffer pools, and the memory that DPDK is given for them |
//! | `counters` | counters, added and subtracted |

mod counters;
mod device;
mod devices;
mod given;
mod needs;
mod numa;
mod open;
mod pools;
mod port;
mod stale;

use std::collections::HashMap;

use control::Config;
use control::net::MacAddr;
use graph::PortId;

pub(crate) use counters::add;
pub(crate) use device::{DeviceJobs, OpenDevice, Unanswered};
pub(crate) use devices::Devices;
pub(crate) use needs::{Needs, port_of, takes_unnumbered};
pub(crate) use numa::Numa;
pub(crate) use open::{OpenError, Order, Queues, Ready, touches_device};
pub(crate) use pools::{Buffers, Pools, eal_options};
pub(crate) use port::{Condition, PortState};

/// What the topology must know of an opened port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attachment {
    /// Its number; `None` while its device is gone.
    pub(crate) id: Option<PortId>,
    /// Its MAC address.
    pub(crate) mac: MacAddr,
    /// Whether its link is up.
    pub(crate) up: bool,
}

/// Opened ports by name.
pub(crate) type Attachments = HashMap<String, Attachment>;

/// All ports, in the order of the configuration.
#[derive(Debug, Default)]
pub(crate) struct Ports {
    list: Vec<PortState>,
}

impl Ports {
    /// The ports in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &PortState> {
        self.list.iter()
    }

    /// The ports in order, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut PortState> {
        self.list.iter_mut()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// The port of that name.
    pub(crate) fn get(&self, name: &str) -> Option<&PortState> {
        self.list.iter().find(|port| port.config.name == name)
    }

    /// The port of that name, to be changed.
    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut PortState> {
        self.list.iter_mut().find(|port| port.config.name == name)
    }

    /// The number of a port that is open.
    pub(crate) fn id(&self, name: &str) -> Option<PortId> {
        self.get(name)?.id()
    }

    /// The name of an open port.
    pub(crate) fn name(&self, id: PortId) -> Option<&str> {
        let port = self.list.iter().find(|port| port.id() == Some(id))?;
        Some(&port.config.name)
    }

    /// Adds a port.
    pub(crate) fn push(&mut self, port: PortState) {
        self.list.push(port);
    }

    /// Forgets a port.
    pub(crate) fn remove(&mut self, name: &str) -> Option<PortState> {
        let at = self.list.iter().position(|port| port.config.name == name)?;
        Some(self.list.remove(at))
    }

    /// Puts them in the order of the configuration.
    pub(crate) fn sort_as(&mut self, config: &Config) {
        let place = |port: &PortState| config.ports.iter().position(|c| c.name == port.config.name);
        self.list.sort_by_key(place);
    }

    /// Names of all, for messages.
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.list.iter().map(|port| port.config.name.as_str()).collect();
        names.join(", ")
    }

    /// What the topology must know of them.
    pub(crate) fn attachments(&self) -> Attachments {
        let attachment =
            |port: &PortState| Attachment { id: port.id(), mac: port.mac, up: port.has_link() };
        self.list.iter().map(|port| (port.config.name.clone(), attachment(port))).collect()
    }

    /// How many carry packets.
    pub(crate) fn up(&self) -> usize {
        self.list.iter().filter(|port| port.is_up()).count()
    }

    /// Closes all of them.
    pub(crate) fn clear(&mut self) {
        // At the same time: those whose drivers hang keep neither the others open nor the daemon from its end one after the other.
        let devices = self.list.iter_mut().filter_map(|port| port.open.as_mut());
        devices.for_each(OpenDevice::begin_closing);
        self.list.clear();
    }
}
