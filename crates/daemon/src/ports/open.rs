//! Opening a device. It takes from milliseconds to seconds, so it runs on the thread for devices. And changing one, on its own.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use control::config;
use control::net::MacAddr;
use dpdk::{
    Adjustment, Device, DeviceKind, Opened, Port, PortConfig, PortError, PortInfo, RxQueue, TxQueue,
};
use graph::{KeptLane, PortId, RxAssignment, Sockets};
use tokio::sync::Notify;

use super::device::{DeviceJobs, OpenDevice, Unanswered};
use super::given::Given;
use super::needs::Needs;
use super::pools::Pools;
use super::stale;

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
    #[error("port {name}: no thread for its device: {source}")]
    Thread { name: String, source: io::Error },
    #[error("port {name}: {source}")]
    Unanswered { name: String, source: Unanswered },
}

/// The queues of a port that was just opened, in order.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    pub(crate) rx: Vec<RxAssignment>,
    pub(crate) tx: Vec<TxQueue>,
}

/// What is to be opened.
#[derive(Debug)]
pub(crate) struct Order {
    pub(super) config: config::Port,
    pub(super) device: Device,
    pub(super) needs: Needs,
    /// Its address where the device has none: the last one known.
    pub(super) mac: MacAddr,
}

/// An open device.
#[derive(Debug)]
pub(crate) struct Ready {
    /// Before the device, which closes when they are gone.
    pub(super) queues: Queues,
    pub(super) device: OpenDevice,
    pub(super) info: PortInfo,
    pub(super) id: PortId,
    pub(super) mac: MacAddr,
    /// Where the device could not do what was asked.
    pub(super) adjustments: Vec<String>,
    /// Transmit queues that it has.
    pub(super) transmit: usize,
}

impl Order {
    /// The port's name.
    pub(crate) fn name(&self) -> &str {
        &self.config.name
    }
}

impl Ready {
    /// The port's id.
    pub(crate) fn id(&self) -> PortId {
        self.id
    }

    /// Its transmit queues, for the workers.
    pub(crate) fn take_transmit(&mut self) -> Vec<TxQueue> {
        std::mem::take(&mut self.queues.tx)
    }

    /// Device and receive queues, to be closed.
    pub(crate) fn into_parts(self) -> (OpenDevice, Vec<RxAssignment>) {
        (self.device, self.queues.rx)
    }
}

/// Opens a device. `changed` is notified when its link changes.
///
/// Errors: [`OpenError`], with nothing left behind.
pub(super) fn open(
    order: &Order,
    pools: &mut Pools,
    given: &mut Given,
    changed: &Arc<Notify>,
) -> Result<Ready, OpenError> {
    let Order { config, device, needs, mac } = order;
    let pool_error = |source| OpenError::Pool { name: config.name.clone(), source };
    let buffers = pools.of_port(config, device).map_err(pool_error)?;
    let wish = PortConfig {
        rx_queues: config.rx_queues,
        tx_queues: u16::try_from(needs.workers).unwrap_or(u16::MAX),
        rx_descriptors: config.rx_descriptors,
        tx_descriptors: config.tx_descriptors,
        mtu: Some(config.mtu),
        pools: buffers,
        rss: true,
        promiscuous: needs.promiscuous,
        // A tap's interrupt is its file descriptor itself, and what is read from that is a packet.
        rx_interrupts: needs.interrupts && device.kind() != DeviceKind::Tap,
    };
    stale::remove_socket(device);
    let before = Sockets::now();
    let lanes = pools.lanes(config, device).map_err(pool_error)?;
    let (mut shared, mut lanes): (Vec<_>, Vec<_>) =
        lanes.into_iter().map(|kept| (kept.pool, kept.lane)).unzip();
    let opened = Port::open_shared(device, &wish, &mut shared);
    // What found no queue, because the device has fewer or was not opened.
    let used = lanes.split_off(shared.len());
    let unused = shared.into_iter().zip(lanes).map(|(pool, lane)| KeptLane { pool, lane });
    pools.keep_lanes(&config.name, unused.collect(), used.len());
    let Opened { mut port, rx, tx, adjustments } =
        opened.map_err(|source| OpenError::Port { name: config.name.clone(), source })?;
    let interrupts = wish.rx_interrupts && !adjustments.contains(&Adjustment::NoInterrupts);
    let sockets =
        if needs.interrupts && !interrupts { before.opened_since(rx.len()) } else { Vec::new() };
    let id = given.next(port.id());
    let mut rx = assign(id, rx, sockets, interrupts);
    let ordinary = rx.len() - used.len().min(rx.len());
    let last = rx.split_off(ordinary);
    rx.extend(last.into_iter().zip(used).map(|(queue, lane)| queue.with_lane(lane)));
    let mac = own_mac(&mut port, config, *mac);
    // Neighbour discovery and ARP live from group addresses.
    if let Err(error) = port.set_all_multicast(true) {
        tracing::debug!(port = config.name, "{error}");
    }
    let adjustments: Vec<String> = worth_telling(&adjustments).map(ToString::to_string).collect();
    for adjustment in &adjustments {
        tracing::warn!(port = config.name, "the device gives {adjustment}");
    }
    let (info, transmit) = (port.info().clone(), tx.len());
    let device = match OpenDevice::start(&config.name, port, Arc::clone(changed)) {
        Ok(device) => device,
        Err(source) => {
            keep_lanes(pools, &config.name, rx);
            return Err(OpenError::Thread { name: config.name.clone(), source });
        }
    };
    Ok(Ready { queues: Queues { rx, tx }, device, info, id, mac, adjustments, transmit })
}

/// Keeps what receive queues of a port need to be a client's own, for when it is opened again.
pub(super) fn keep_lanes(pools: &mut Pools, port: &str, receive: Vec<RxAssignment>) {
    let lanes = receive.into_iter().filter_map(RxAssignment::into_lane).collect();
    pools.keep_lanes(port, lanes, 0);
}

impl DeviceJobs {
    /// Changes an open device where two sections differ. On an error it is as it was, or will be.
    ///
    /// Errors: [`Unanswered`], or the device's refusal.
    pub(crate) async fn adapt(
        &self,
        before: (config::Port, Needs),
        after: (config::Port, Needs),
    ) -> Result<Result<(), PortError>, Unanswered> {
        let (old, new) = (before.clone(), after.clone());
        let act = move |port: &mut Port| adapt(port, (&old.0, old.1), (&new.0, new.1));
        let undo = move |port: &mut Port, done: Result<(), PortError>| {
            let back = |()| adapt(port, (&after.0, after.1), (&before.0, before.1));
            if let Err(error) = done.and_then(back) {
                tracing::error!(port = before.0.name, "{error}");
            }
        };
        self.act(act, undo).await
    }
}

/// Whether two sections differ in what the device itself must do.
pub(crate) fn touches_device(
    before: (&config::Port, Needs),
    after: (&config::Port, Needs),
) -> bool {
    before.0.mtu != after.0.mtu || before.1.promiscuous != after.1.promiscuous
}

/// Changes an open device where two sections differ; on an error it is as it was.
///
/// Errors: the device's.
fn adapt(
    port: &mut Port,
    before: (&config::Port, Needs),
    after: (&config::Port, Needs),
) -> Result<(), PortError> {
    let other_mtu = before.0.mtu != after.0.mtu;
    if other_mtu {
        port.set_mtu(after.0.mtu)?;
    }
    if before.1.promiscuous != after.1.promiscuous {
        if let Err(error) = port.set_promiscuous(after.1.promiscuous) {
            if other_mtu {
                // It had this MTU a moment ago.
                let _ = port.set_mtu(before.0.mtu);
            }
            return Err(error);
        }
    }
    Ok(())
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

/// Receive interrupts are asked for in case; a device with fewer transmit queues than workers is
/// served through their owners; both are no news.
fn worth_telling(adjustments: &[Adjustment]) -> impl Iterator<Item = &Adjustment> {
    adjustments.iter().filter(|a| !matches!(a, Adjustment::NoInterrupts | Adjustment::TxQueues(..)))
}
