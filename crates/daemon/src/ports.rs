//! The ports: opened from the configuration, watched, opened anew when their device is back.

use std::os::fd::OwnedFd;
use std::path::Path;

use control::api::PortCounters;
use control::config::{self, Config, Poll};
use control::net::MacAddr;
use dpdk::{
    Adjustment, Cause, Device, DeviceKind, Health, Opened, Port, PortConfig, PortError, RxQueue,
    TxQueue,
};
use graph::{KeptLane, PortId, RxAssignment, Sockets};

use crate::counters::{add, less};
use crate::pools::Pools;

/// Why a port could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("port {name}: {source}")]
    Device { name: String, source: dpdk::DeviceError },
    #[error("port {name}: {source}")]
    Port { name: String, source: PortError },
    #[error(
        "port {name}: with server=1 DPDK waits for the peer, and the daemon with it; leave server=1 \
         away: the port is opened when its peer is there"
    )]
    Server { name: String },
    #[error("port {name}: {source}; see [memory] in the configuration")]
    Pool { name: String, source: dpdk::PoolError },
}

/// How a port is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Condition {
    /// It carries packets.
    Up,
    /// It does not now, and will by itself.
    Down(Cause),
    /// Its device is gone; it is opened anew when the device is back. Why.
    Gone(String),
}

/// The queues of a port that was just opened, in order.
#[derive(Debug)]
pub(crate) struct Queues {
    pub(crate) rx: Vec<RxAssignment>,
    pub(crate) tx: Vec<TxQueue>,
}

/// What a port is to have beyond its section of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Workers: each gets a transmit queue where the device has as many.
    pub(crate) workers: usize,
    /// Frames for any MAC address are needed.
    pub(crate) promiscuous: bool,
    /// Workers rest, so receive interrupts are of use.
    pub(crate) interrupts: bool,
}

impl Needs {
    /// Of the port `name`.
    pub(crate) fn of(config: &Config, name: &str) -> Self {
        Self {
            workers: config.workers.cores.len(),
            promiscuous: crate::topology::promiscuous_ports(config).contains(name),
            interrupts: config.workers.poll == Poll::Adaptive,
        }
    }
}

/// One port.
#[derive(Debug)]
pub(crate) struct PortState {
    /// Its section of the configuration.
    pub(crate) config: config::Port,
    /// What is to be opened.
    pub(crate) device: Device,
    /// What is open.
    pub(crate) open: Option<Port>,
    /// How it is.
    pub(crate) condition: Condition,
    /// Whether the user wants it to carry packets.
    pub(crate) enabled: bool,
    /// Its MAC address; the last one known while its device is gone.
    pub(crate) mac: MacAddr,
    /// Receive and transmit queues that it has.
    pub(crate) queues: (usize, usize),
    /// Where the device could not do what was asked.
    pub(crate) adjustments: Vec<String>,
    needs: Needs,
    /// What the workers had counted under its number when it was opened, and what went through it
    /// before.
    baseline: PortCounters,
    before: PortCounters,
    /// Looks since the last attempt to open it anew, and how many there must be.
    retry: (u32, u32),
}

impl PortState {
    /// Opens a port.
    ///
    /// Errors: [`OpenError`], with nothing left behind.
    pub(crate) fn open(
        config: &config::Port,
        needs: Needs,
        pools: &mut Pools,
    ) -> Result<(Self, Queues), OpenError> {
        let device: Device = config
            .device
            .as_str()
            .parse()
            .map_err(|source| OpenError::Device { name: config.name.clone(), source })?;
        let mut state = Self {
            config: config.clone(),
            device,
            open: None,
            condition: Condition::Gone("not opened yet".to_owned()),
            enabled: true,
            mac: config.mac.unwrap_or_else(|| made_up_mac(&config.name)),
            queues: (0, 0),
            adjustments: Vec::new(),
            needs,
            baseline: PortCounters::default(),
            before: PortCounters::default(),
            retry: (0, 1),
        };
        let virtio = state.device.kind() == DeviceKind::VirtioUser;
        if virtio && state.device.option("server") == Some("1") {
            return Err(OpenError::Server { name: config.name.clone() });
        }
        if virtio && !Path::new(state.device.argument()).exists() {
            // Its peer makes the socket, maybe later than we start.
            let peer = format!("there is no peer at {}", state.device.argument());
            tracing::warn!(port = config.name, "{peer}; it is opened when there is one");
            state.condition = Condition::Gone(peer);
            return Ok((state, Queues { rx: Vec::new(), tx: Vec::new() }));
        }
        let queues = state.reopen(pools)?;
        Ok((state, queues))
    }

    /// Opens the port's device again, after it was gone.
    pub(crate) fn reopen(&mut self, pools: &mut Pools) -> Result<Queues, OpenError> {
        let name = || self.config.name.clone();
        let pool = pools
            .of_device(&self.device)
            .map_err(|source| OpenError::Pool { name: name(), source })?;
        let wish = PortConfig {
            rx_queues: self.config.rx_queues,
            tx_queues: u16::try_from(self.needs.workers).unwrap_or(u16::MAX),
            rx_descriptors: self.config.rx_descriptors,
            tx_descriptors: self.config.tx_descriptors,
            mtu: Some(self.config.mtu),
            pools: vec![pool],
            rss: true,
            promiscuous: self.needs.promiscuous,
            // A tap's interrupt is its file descriptor itself, and what is read from that is a packet.
            rx_interrupts: self.needs.interrupts && self.device.kind() != DeviceKind::Tap,
        };
        let before = Sockets::now();
        let lanes = pools
            .lanes(&self.config, &self.device)
            .map_err(|source| OpenError::Pool { name: name(), source })?;
        let (mut shared, mut lanes): (Vec<_>, Vec<_>) =
            lanes.into_iter().map(|kept| (kept.pool, kept.lane)).unzip();
        let opened = Port::open_shared(&self.device, &wish, &mut shared);
        // What found no queue, because the device has fewer or was not opened.
        let used = lanes.split_off(shared.len());
        let unused = shared.into_iter().zip(lanes).map(|(pool, lane)| KeptLane { pool, lane });
        pools.keep_lanes(&self.config.name, unused.collect(), used.len());
        let Opened { mut port, rx, tx, adjustments } =
            opened.map_err(|source| OpenError::Port { name: name(), source })?;
        let interrupts = wish.rx_interrupts && !adjustments.contains(&Adjustment::NoInterrupts);
        let sockets = if self.needs.interrupts && !interrupts {
            before.opened_since(rx.len())
        } else {
            Vec::new()
        };
        let mut rx = assign(port.id(), rx, sockets, interrupts);
        let ordinary = rx.len() - used.len().min(rx.len());
        let last = rx.split_off(ordinary);
        rx.extend(last.into_iter().zip(used).map(|(queue, lane)| queue.with_lane(lane)));
        self.mac = own_mac(&mut port, &self.config, self.mac);
        // Neighbour discovery and ARP live from group addresses.
        if let Err(error) = port.set_all_multicast(true) {
            tracing::debug!(port = self.config.name, "{error}");
        }
        self.adjustments = worth_telling(&adjustments).map(ToString::to_string).collect();
        for adjustment in &self.adjustments {
            tracing::warn!(port = self.config.name, "the device gives {adjustment}");
        }
        self.queues = (rx.len(), tx.len());
        self.open = Some(port);
        self.retry = (0, 1);
        self.look();
        Ok(Queues { rx, tx })
    }

    /// Its number; `None` while its device is gone.
    pub(crate) fn id(&self) -> Option<PortId> {
        self.open.as_ref().map(Port::id)
    }

    /// Whether it carries packets.
    pub(crate) fn is_up(&self) -> bool {
        self.enabled && self.condition == Condition::Up
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
        if let Some(stats) = self.open.as_ref().and_then(|open| open.stats().ok()) {
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

    /// Looks how the port is. Returns the new condition when it has changed.
    pub(crate) fn look(&mut self) -> Option<&Condition> {
        let port = self.open.as_ref()?;
        let now = match port.health() {
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
            addresses: self.config.addresses.clone(),
            next_hop_mac: self.config.next_hop_mac,
            queues: self.config.queues.clone(),
            software_rss: self.config.software_rss.clone(),
            ..config.clone()
        };
        rest == self.config
            && needs.workers == self.needs.workers
            && needs.interrupts == self.needs.interrupts
    }

    /// Goes back to a section after [`Self::adapt`] failed.
    pub(crate) fn keep(&mut self, config: config::Port) {
        self.config = config;
    }

    /// Applies a section that [`Self::can_adapt`] has found fit.
    ///
    /// Errors: the device's; the rest is applied.
    pub(crate) fn adapt(&mut self, config: &config::Port, needs: Needs) -> Result<(), PortError> {
        let before = std::mem::replace(&mut self.config, config.clone());
        let needed = std::mem::replace(&mut self.needs, needs);
        let Some(port) = &mut self.open else { return Ok(()) };
        if config.mtu != before.mtu {
            port.set_mtu(config.mtu)?;
        }
        if needs.promiscuous != needed.promiscuous {
            port.set_promiscuous(needs.promiscuous)?;
        }
        Ok(())
    }
}

/// Receive queues with what wakes their worker: the device's interrupt, or the kernel's socket
/// behind the device; else the worker polls.
fn assign(
    port: PortId,
    queues: Vec<RxQueue>,
    sockets: Vec<OwnedFd>,
    interrupts: bool,
) -> Vec<RxAssignment> {
    let mut sockets = sockets.into_iter();
    let queues = queues.into_iter().map(|queue| RxAssignment::new(port, queue));
    queues
        .map(|queue| match sockets.next() {
            Some(socket) => queue.with_socket(socket),
            None if interrupts => queue.with_interrupt(),
            None => queue,
        })
        .collect()
}

/// Gives the device the configured MAC address, or learns the device's.
fn own_mac(port: &mut Port, config: &config::Port, fallback: MacAddr) -> MacAddr {
    if port.device().kind() == DeviceKind::Tap {
        // The driver gives the kernel's end the port's address, but they are two stations.
        return fallback;
    }
    if let Some(mac) = config.mac {
        if let Err(error) = port.set_mac(wire::MacAddr::from(mac).octets()) {
            tracing::warn!(port = config.name, "{error}; frames for {mac} need promiscuous = true");
        }
        return mac;
    }
    match port.mac() {
        Ok(mac) if mac != [0; 6] => MacAddr::new(mac),
        _ => fallback,
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

/// Receive interrupts are asked for in case; a device with fewer transmit queues than workers is
/// served through their owners; both are no news.
fn worth_telling(adjustments: &[Adjustment]) -> impl Iterator<Item = &Adjustment> {
    adjustments.iter().filter(|a| !matches!(a, Adjustment::NoInterrupts | Adjustment::TxQueues(..)))
}
