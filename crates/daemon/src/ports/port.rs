//! One port: what it is to be, what is open, how it is, what went through it.

use std::path::Path;

use control::api::PortCounters;
use control::config;
use control::net::MacAddr;
use dpdk::{Cause, Device, DeviceKind, Health, PortInfo};
use graph::PortId;

use super::counters::{add, less};
use super::device::OpenDevice;
use super::needs::Needs;
use super::open::{OpenError, Order, Queues, Ready};
use crate::service::Answering;

/// How a port is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Condition {
    /// It carries packets.
    Up,
    /// It does not now, and will by itself.
    Down(Cause),
    /// The worker on this core polls it and does not answer.
    Unserved(u16),
    /// Its device is gone; it is opened anew when the device is back. Why.
    Gone(String),
}

/// One port.
#[derive(Debug)]
pub(crate) struct PortState {
    /// Its section of the configuration.
    pub(crate) config: config::Port,
    /// What is to be opened.
    pub(crate) device: Device,
    /// What is open.
    pub(crate) open: Option<OpenDevice>,
    /// What that can do.
    info: Option<PortInfo>,
    /// The id that it got when its device was opened.
    id: PortId,
    /// How it is.
    pub(crate) condition: Condition,
    /// Whether the user wants it to carry packets.
    pub(crate) enabled: bool,
    /// Its MAC address; the last one known while its device is gone.
    pub(crate) mac: MacAddr,
    /// The same once it has been open, or was kept from an earlier run.
    known: Option<MacAddr>,
    /// Receive and transmit queues that it has.
    pub(crate) queues: (usize, usize),
    /// Where the device could not do what was asked.
    pub(crate) adjustments: Vec<String>,
    needs: Needs,
    unserved: Option<u16>,
    /// What the workers had counted under its number when it was opened, and what went through it
    /// before.
    baseline: PortCounters,
    before: PortCounters,
    /// Looks since the last attempt to open it anew, and how many there must be.
    retry: (u32, u32),
    /// Whether the driver of its device answers.
    answering: Answering,
}

impl PortState {
    /// A port that is not open yet.
    ///
    /// Errors: [`OpenError`]: it never could be.
    pub(crate) fn new(config: &config::Port, needs: Needs) -> Result<Self, OpenError> {
        let device: Device = config
            .device
            .as_str()
            .parse()
            .map_err(|source| OpenError::Device { name: config.name.clone(), source })?;
        if device.kind() == DeviceKind::VirtioUser && device.option("server") == Some("1") {
            return Err(OpenError::Server { name: config.name.clone() });
        }
        Ok(Self {
            config: config.clone(),
            device,
            open: None,
            info: None,
            id: PortId::NONE,
            condition: Condition::Gone("not opened yet".to_owned()),
            enabled: true,
            mac: config.mac.unwrap_or_else(|| made_up_mac(&config.name)),
            known: None,
            queues: (0, 0),
            adjustments: Vec::new(),
            needs,
            unserved: None,
            baseline: PortCounters::default(),
            before: PortCounters::default(),
            retry: (0, 1),
            answering: Answering::default(),
        })
    }

    /// Notes that a peer that makes the device's socket is not there yet; it may come later.
    pub(crate) fn lacks_peer(&mut self) -> bool {
        let virtio = self.device.kind() == DeviceKind::VirtioUser;
        if !virtio || Path::new(self.device.argument()).exists() {
            return false;
        }
        let peer = format!("there is no peer at {}", self.device.argument());
        tracing::warn!(port = self.config.name, "{peer}; it is opened when there is one");
        self.condition = Condition::Gone(peer);
        true
    }

    /// Notes that another process has the device, which only one can have, and will close it.
    pub(crate) fn is_held(&mut self) -> bool {
        if self.device.kind().is_shareable() {
            return false;
        }
        self.condition = Condition::Gone("the process before has not closed it yet".to_owned());
        true
    }

    /// What is to be opened.
    pub(crate) fn order(&self) -> Order {
        Order {
            config: self.config.clone(),
            device: self.known_device(),
            needs: self.needs,
            mac: self.mac,
        }
    }

    /// The MAC address to keep for the next start: the driver makes up another each time that the device is opened.
    pub(crate) fn mac_to_keep(&self) -> Option<MacAddr> {
        self.known.filter(|_| self.makes_up_mac())
    }

    /// Takes over the MAC address that it had in an earlier run.
    pub(crate) fn recall_mac(&mut self, mac: MacAddr) {
        if mac.is_unicast() && self.makes_up_mac() {
            (self.mac, self.known) = (mac, Some(mac));
        }
    }

    fn makes_up_mac(&self) -> bool {
        matches!(self.device.kind(), DeviceKind::Memif | DeviceKind::VirtioUser)
            && self.config.mac.is_none()
            && self.device.option("mac").is_none()
    }

    /// The device, with the MAC address that it had before where its driver would make up another.
    fn known_device(&self) -> Device {
        let known = self
            .mac_to_keep()
            .and_then(|mac| format!("{},mac={mac}", self.config.device.as_str()).parse().ok());
        known.unwrap_or_else(|| self.device.clone())
    }

    /// Its device was opened.
    pub(crate) fn install(&mut self, ready: Ready) -> Queues {
        let Ready { queues, device, info, id, mac, adjustments, transmit } = ready;
        (self.id, self.info) = (id, Some(info));
        (self.mac, self.known) = (mac, Some(mac));
        self.adjustments = adjustments;
        self.queues = (queues.rx.len(), transmit);
        self.open = Some(device);
        (self.retry, self.answering) = ((0, 1), Answering::default());
        self.look();
        queues
    }

    /// Its id, another each time that its device is opened; `None` while that is gone.
    pub(crate) fn id(&self) -> Option<PortId> {
        self.open.is_some().then_some(self.id)
    }

    /// What its device can do, while that is open.
    pub(crate) fn info(&self) -> Option<&PortInfo> {
        self.info.as_ref().filter(|_| self.open.is_some())
    }

    /// Speed of its link, where known: Mbit/s.
    pub(crate) fn speed(&self) -> Option<u32> {
        self.open.as_ref()?.seen().speed
    }

    /// Its device cannot be opened; why. Returns whether that is news.
    pub(crate) fn note_gone(&mut self, why: String) -> bool {
        let gone = Condition::Gone(why);
        let news = self.condition != gone;
        self.condition = gone;
        news
    }

    /// Notes, once a second, whether the driver of its device answers; says so when that has changed.
    pub(crate) fn listen(&mut self) -> Option<bool> {
        self.answering.note(Some(self.open.as_ref()?.looks()))
    }

    /// Whether the driver of its device answers.
    pub(crate) fn answers(&self) -> bool {
        self.answering.answers()
    }

    /// Whether it carries packets.
    pub(crate) fn is_up(&self) -> bool {
        self.enabled && self.condition == Condition::Up
    }

    /// Whether packets can leave by it: it is open, and its link is up.
    pub(crate) fn has_link(&self) -> bool {
        let down = matches!(self.condition, Condition::Down(_) | Condition::Gone(_));
        self.enabled && self.id().is_some() && !down
    }

    /// Whether its device is gone and it is open still.
    pub(crate) fn is_to_be_closed(&self) -> bool {
        self.enabled && self.id().is_some() && matches!(self.condition, Condition::Gone(_))
    }

    /// Whether a closed port should be tried again: at every look first, then less and less often,
    /// at least at every `longest`th.
    pub(crate) fn retry_is_due(&mut self, longest: u32) -> bool {
        let (looks, wait) = &mut self.retry;
        if !self.enabled {
            return false;
        }
        *looks += 1;
        if looks < wait {
            return false;
        }
        *looks = 0;
        *wait = (*wait * 2).min(longest);
        true
    }

    /// What went through it, when the workers have counted this much under its number.
    pub(crate) fn since_opened(&self, counted: &PortCounters) -> PortCounters {
        let mut sum = add(&self.before, &less(counted, &self.baseline));
        if let Some(stats) = self.open.as_ref().map(|open| open.seen().stats) {
            sum.rx_missed += stats.rx_missed;
            sum.rx_errors += stats.rx_errors;
            sum.rx_no_buffer += stats.rx_no_buffer;
            sum.tx_errors += stats.tx_errors;
        }
        sum
    }

    /// What went through it before its device went.
    pub(crate) fn counted_before(&self) -> PortCounters {
        self.before
    }

    /// It was opened, and the workers have counted this much under its number so far.
    pub(crate) fn count_from(&mut self, counted: PortCounters) {
        self.baseline = counted;
    }

    /// Whether it takes frames for any MAC address.
    pub(crate) fn promiscuous(&self) -> bool {
        self.needs.promiscuous
    }

    /// Its queues are going; the workers have counted this much under its number.
    pub(crate) fn forget_queues(&mut self, counted: &PortCounters) {
        self.before = self.since_opened(counted);
        self.queues = (0, 0);
        self.adjustments.clear();
    }

    /// Its device is to be closed.
    pub(crate) fn take_device(&mut self) -> Option<OpenDevice> {
        if !matches!(self.condition, Condition::Gone(_)) {
            self.condition = Condition::Gone("its device was closed".to_owned());
        }
        self.open.take()
    }

    /// The cores whose workers its packets go through.
    pub(crate) fn cores(&self) -> impl Iterator<Item = u16> + '_ {
        let open = |place: &&config::QueueCore| usize::from(place.queue) < self.queues.0;
        let polling = self.config.queues.iter().filter(open).map(|place| place.core);
        polling.chain(self.config.software_rss.iter().copied())
    }

    /// Notes which of the workers that poll it does not answer.
    pub(crate) fn set_unserved(&mut self, core: Option<u16>) {
        self.unserved = core;
    }

    /// Notes how the port was seen to be. Returns the new condition when it has changed.
    pub(crate) fn look(&mut self) -> Option<&Condition> {
        let now = match self.open.as_ref()?.seen().health {
            Health::Up if self.unserved.is_some() => {
                Condition::Unserved(self.unserved.unwrap_or_default())
            }
            Health::Up => Condition::Up,
            Health::Down(cause) => Condition::Down(cause),
            Health::Gone(cause) => Condition::Gone(cause.to_string()),
        };
        if now == self.condition {
            return None;
        }
        self.condition = now;
        Some(&self.condition)
    }

    /// Whether a new section of the configuration can be applied to the port as it is.
    pub(crate) fn can_adapt(&self, config: &config::Port, needs: Needs) -> bool {
        let rest = config::Port {
            mtu: self.config.mtu,
            promiscuous: self.config.promiscuous,
            vrf: self.config.vrf.clone(),
            addresses: self.config.addresses.clone(),
            next_hop_mac: self.config.next_hop_mac,
            features: self.config.features,
            queues: self.config.queues.clone(),
            software_rss: self.config.software_rss.clone(),
            ..config.clone()
        };
        rest == self.config
            && needs.workers == self.needs.workers
            && needs.interrupts == self.needs.interrupts
    }

    /// Notes the section that it has been adapted to, and what it is to have now.
    pub(crate) fn adapted(&mut self, config: config::Port, needs: Needs) {
        self.config = config;
        self.needs = needs;
    }

    /// What it has beyond its section.
    pub(crate) fn needs(&self) -> Needs {
        self.needs
    }
}

/// Some devices have no address of their own: a locally administered one, made from the name.
fn made_up_mac(name: &str) -> MacAddr {
    // FNV-1a, 64 bits: stable over restarts and releases.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    let [a, b, c, d, e, ..] = hash.to_be_bytes();
    MacAddr::new([0x02, a, b, c, d, e])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn a_port_whose_device_is_closed_is_not_up() {
        let config = testing::config("[[port]]\nname = \"p\"\ndevice = \"null,no-rx=1\"\n");
        let mut port = PortState::new(&config.ports[0], Needs::of(&config, "p")).unwrap();
        port.condition = Condition::Up;
        assert!(port.is_up() && port.take_device().is_none());
        assert!(!port.is_up());
        // Why it is gone was known before.
        let gone = Condition::Gone("it was set down".to_owned());
        port.condition = gone.clone();
        assert!(port.take_device().is_none());
        assert_eq!(port.condition, gone);
    }
}
