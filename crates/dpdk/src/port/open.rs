//! Opening a port: create the device, clamp the wishes to what it can, configure, start.

use std::ffi::CStr;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::handle::Handle;
use super::queue::Limits;
use super::{Adjustment, Opened, Port, PortConfig, PortError, PortInfo, RxQueue, TxQueue, xdp};
use crate::{BufferPool, Device, DeviceKind, Eal, EalError, SharedPool, ffi};

const RX_SCATTER: u64 = 1 << 13;
const RX_RSS_HASH: u64 = 1 << 19;
const TX_MULTI_SEGS: u64 = 1 << 15;
/// Buffers in the fill ring of an AF_XDP queue: ETH_AF_XDP_DFLT_NUM_DESCS of the driver.
const XDP_FILL: u32 = 2048;
/// Ethernet header and check sequence: bytes.
const ETHERNET: u32 = 14 + 4;
/// Ethernet header, two VLAN tags.
const FRAME_OVERHEAD: u32 = 14 + 8;

/// Ports are opened one after the other: drivers do not lock, and [`xdp`] watches descriptors.
static OPENING: Mutex<()> = Mutex::new(());

impl Port {
    /// Opens `device`, configured and started. What the device cannot do is clamped and told in
    /// [`Opened::adjustments`].
    ///
    /// # Errors
    /// [`PortError`] says which; nothing is left behind.
    pub fn open(device: &Device, config: &PortConfig) -> Result<Opened, PortError> {
        Self::open_shared(device, config, &mut Vec::new())
    }

    /// As [`open`](Self::open); the last receive queues get their buffers from `shared`, the last one from the last
    /// pool. Pools that were used are taken out.
    ///
    /// # Errors
    /// As [`open`](Self::open); then all of `shared` is as it was.
    pub fn open_shared(
        device: &Device,
        config: &PortConfig,
        shared: &mut Vec<SharedPool>,
    ) -> Result<Opened, PortError> {
        Eal::get().ok_or(EalError::NotRunning)?;
        let wrong = |problem| PortError::Config { port: device.to_string(), problem };
        if config.rx_queues == 0 || config.tx_queues == 0 {
            return Err(wrong("it needs at least one receive and one transmit queue"));
        }
        if config.pools.is_empty() {
            return Err(wrong("it needs a buffer pool"));
        }
        let _one_at_a_time = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
        // Both kinds of af_* sockets get a share of the packets whether they are polled or not, so
        // there are as many queue pairs as receive queues, and transmit queues do with those.
        let handle = Handle::create(device, config)?;
        let mut opening = Opening { handle, config, shared, adjustments: Vec::new() };
        let raw = opening.info()?;
        let info = public(&raw);
        let (rx_queues, tx_queues) = opening.queues(&raw);
        let limits = opening.configure(&raw, rx_queues, tx_queues)?;
        if device.kind() == DeviceKind::AfXdp {
            xdp::wait_for_release();
            let before = xdp::sockets();
            let set_up = opening.set_up_queues(rx_queues, tx_queues);
            let made = xdp::sockets().into_iter().filter(|socket| !before.contains(socket));
            opening.handle.sockets = made.collect();
            set_up?;
        } else {
            opening.set_up_queues(rx_queues, tx_queues)?;
        }
        opening.start(longest(&raw))?;
        let Opening { handle, adjustments, .. } = opening;
        let handle = Arc::new(handle);
        let ordinary = usize::from(rx_queues).saturating_sub(shared.len());
        let unused = (shared.len() + ordinary).saturating_sub(rx_queues.into());
        let mut pools = shared.drain(unused..);
        let mut pool_of = |queue: u16| {
            let pool = if usize::from(queue) < ordinary { None } else { pools.next() };
            pool.map(Box::new)
        };
        Ok(Opened {
            rx: (0..rx_queues).map(|queue| RxQueue::new(&handle, queue, pool_of(queue))).collect(),
            tx: (0..tx_queues).map(|queue| TxQueue::new(&handle, queue, limits)).collect(),
            port: Self { handle, info, one_thread: PhantomData },
            adjustments,
        })
    }
}

struct Opening<'a> {
    handle: Handle,
    config: &'a PortConfig,
    shared: &'a [SharedPool],
    adjustments: Vec<Adjustment>,
}

impl Opening<'_> {
    fn info(&self) -> Result<ffi::Info, PortError> {
        // SAFETY: integers and a pointer, for which zero is valid.
        let mut info: ffi::Info = unsafe { std::mem::zeroed() };
        // SAFETY: the port exists; the shim fills the structure.
        let rc = unsafe { ffi::millrace_port_info(self.handle.id, &mut info) };
        self.handle.result(rc, "be asked what it can do").map(|()| info)
    }

    /// Receive and transmit queues that the device can have.
    fn queues(&mut self, info: &ffi::Info) -> (u16, u16) {
        let pairs = match self.handle.device.kind() {
            // The number of queue pairs is fixed when these devices are made.
            DeviceKind::AfPacket | DeviceKind::AfXdp | DeviceKind::Pcap => info.max_rx_queues,
            _ => u16::MAX,
        };
        // net_tap has one kernel queue for a receive and a transmit queue together.
        let rx = self.config.rx_queues.min(info.max_rx_queues).min(pairs);
        let mut tx = self.config.tx_queues.min(info.max_tx_queues).min(pairs);
        if self.handle.device.kind() == DeviceKind::Tap {
            tx = rx;
        }
        if rx != self.config.rx_queues {
            self.adjustments.push(Adjustment::RxQueues(self.config.rx_queues, rx));
        }
        if tx != self.config.tx_queues {
            self.adjustments.push(Adjustment::TxQueues(self.config.tx_queues, tx));
        }
        if self.config.rss && rx > 1 && info.rss == 0 && !self.kernel_spreads() {
            self.adjustments.push(Adjustment::NoRss);
        }
        (rx, tx)
    }

    /// PACKET_FANOUT and a kernel interface's own queues spread flows without the driver.
    fn kernel_spreads(&self) -> bool {
        matches!(
            self.handle.device.kind(),
            DeviceKind::AfPacket | DeviceKind::AfXdp | DeviceKind::Tap
        )
    }

    /// Configures the port; what it can send.
    fn configure(&mut self, info: &ffi::Info, rx: u16, tx: u16) -> Result<Limits, PortError> {
        let rss = if self.config.rss && rx > 1 { info.rss } else { 0 };
        let mut rx_offloads = if rss == 0 { 0 } else { info.rx_offloads & RX_RSS_HASH };
        let mtu = self.mtu(info)?;
        let frame = u32::from(self.config.mtu.unwrap_or(1500)) + FRAME_OVERHEAD;
        let pools = self.config.pools.iter().chain(self.shared.iter().map(SharedPool::inner));
        let room = pools.map(BufferPool::data_room).min().unwrap_or(0);
        if frame > u32::from(room) {
            if info.rx_offloads & RX_SCATTER == 0 {
                let port = self.handle.device.to_string();
                return Err(PortError::Buffers { port, frame, room });
            }
            rx_offloads |= RX_SCATTER;
        }
        let tx_offloads = info.tx_offloads & TX_MULTI_SEGS;
        let interrupts = self.config.rx_interrupts && self.handle.device.has_interrupts();
        let mut setup = ffi::Setup {
            rx_offloads,
            tx_offloads,
            rss,
            rx_queues: rx,
            tx_queues: tx,
            mtu,
            rx_interrupts: u16::from(interrupts),
        };
        // SAFETY: the port exists and is not started; the shim reads the structure.
        let mut rc = unsafe { ffi::millrace_port_configure(self.handle.id, &setup) };
        if rc < 0 && interrupts {
            setup.rx_interrupts = 0;
            // SAFETY: as above.
            rc = unsafe { ffi::millrace_port_configure(self.handle.id, &setup) };
        }
        if self.config.rx_interrupts && setup.rx_interrupts == 0 {
            self.adjustments.push(Adjustment::NoInterrupts);
        }
        self.handle.result(rc, "be configured")?;
        let kind = self.handle.device.kind();
        // net_pcap and net_null take chains but do not say so.
        let chains = tx_offloads != 0 || matches!(kind, DeviceKind::Pcap | DeviceKind::Null);
        Ok(Limits {
            segments: if chains { Limits::NONE.segments } else { 1 },
            // net_af_xdp copies a packet of another pool into a buffer of its own, unchecked.
            length: if kind == DeviceKind::AfXdp { room.into() } else { Limits::NONE.length },
        })
    }

    /// The MTU to configure: 0 for the device's own.
    fn mtu(&self, info: &ffi::Info) -> Result<u16, PortError> {
        let Some(mtu) = self.config.mtu else { return Ok(0) };
        let (min, told) = (info.min_mtu, longest(info));
        // These take frames as long as theirs and buffers are, whatever they say (22.11).
        let more = matches!(self.handle.device.kind(), DeviceKind::AfPacket | DeviceKind::Memif);
        let max = if more { info.max_mtu } else { told };
        if (min..=max).contains(&mtu) {
            return Ok(mtu.min(told));
        }
        let port = self.handle.device.to_string();
        Err(PortError::Mtu { port, mtu, min, max })
    }

    fn set_up_queues(&mut self, rx: u16, tx: u16) -> Result<(), PortError> {
        let id = self.handle.id;
        let (mut rx_ring, mut tx_ring) = (self.config.rx_descriptors, self.config.tx_descriptors);
        // SAFETY: the port is configured; two numbers are read and written.
        let rc = unsafe { ffi::rte_eth_dev_adjust_nb_rx_tx_desc(id, &mut rx_ring, &mut tx_ring) };
        self.handle.result(rc, "choose its ring sizes")?;
        if rx_ring != self.config.rx_descriptors {
            let asked = self.config.rx_descriptors;
            self.adjustments.push(Adjustment::RxDescriptors(asked, rx_ring));
        }
        if tx_ring != self.config.tx_descriptors {
            let asked = self.config.tx_descriptors;
            self.adjustments.push(Adjustment::TxDescriptors(asked, tx_ring));
        }
        // SAFETY: the port is configured.
        let socket = unsafe { ffi::rte_eth_dev_socket_id(id) } as u32;
        for (queue, pool) in (0..rx).zip(self.config.pools.iter().cycle()) {
            // Counted from the end.
            let last = usize::from(rx - queue);
            let shared = self.shared.len().checked_sub(last).and_then(|at| self.shared.get(at));
            let pool = match shared {
                Some(shared) => *shared.inner(),
                None => self.pool_for(pool)?,
            };
            // SAFETY: the port is configured and not started, the queue exists, null means the
            // driver's defaults, and pools live for ever.
            let rc = unsafe {
                let conf = std::ptr::null();
                ffi::rte_eth_rx_queue_setup(id, queue, rx_ring, socket, conf, pool.as_ptr())
            };
            self.handle.result(rc, "set up a receive queue")?;
        }
        for queue in 0..tx {
            // SAFETY: as above.
            let rc = unsafe {
                ffi::rte_eth_tx_queue_setup(id, queue, tx_ring, socket, std::ptr::null())
            };
            self.handle.result(rc, "set up a transmit queue")?;
        }
        Ok(())
    }

    /// net_af_xdp lends the kernel [`XDP_FILL`] buffers of a queue's pool and never gets them back
    /// when it is closed (22.11, 24.11: it destroys the UMEM and forgets the fill ring). A port
    /// that is opened again and again would drain the pool, so one that has run low is replaced
    /// by a fresh one.
    fn pool_for(&self, pool: &BufferPool) -> Result<BufferPool, PortError> {
        let enough = pool.available() >= XDP_FILL + (pool.capacity() / 8).min(XDP_FILL);
        if self.handle.device.kind() != DeviceKind::AfXdp || enough {
            return Ok(*pool);
        }
        static FRESH: AtomicU32 = AtomicU32::new(0);
        let name = format!("afxdp-{}", FRESH.fetch_add(1, Ordering::Relaxed));
        Ok(BufferPool::new(&name, 4 * XDP_FILL, pool.data_room(), 256, None)?)
    }

    /// `longest`: the largest MTU that the driver can be told.
    fn start(&mut self, longest: u16) -> Result<(), PortError> {
        let id = self.handle.id;
        // SAFETY: the port is configured and its queues are set up.
        let rc = unsafe { ffi::rte_eth_dev_start(id) };
        self.handle.result(rc, "start")?;
        if let Some(mtu) = self.config.mtu.filter(|mtu| *mtu <= longest) {
            // Some drivers pass the MTU to the kernel's interface only by this call.
            // SAFETY: the port is started.
            if unsafe { ffi::rte_eth_dev_set_mtu(id, mtu) } < 0 {
                let mut given = mtu;
                // SAFETY: the port is started; one number is written.
                unsafe { ffi::rte_eth_dev_get_mtu(id, &mut given) };
                if given != mtu {
                    self.adjustments.push(Adjustment::Mtu(mtu, given));
                }
            }
        }
        // SAFETY: the port is started.
        if self.config.promiscuous && unsafe { ffi::rte_eth_promiscuous_enable(id) } < 0 {
            self.adjustments.push(Adjustment::NotPromiscuous);
        }
        Ok(())
    }
}

/// The largest MTU that a driver says it takes: what ethdev makes of its longest frame (`rte_ethdev.c`,
/// `eth_dev_get_overhead_len`).
fn longest(info: &ffi::Info) -> u16 {
    let known = info.max_mtu != u16::MAX && info.max_frame > u32::from(info.max_mtu);
    let overhead = if known { info.max_frame - u32::from(info.max_mtu) } else { ETHERNET };
    let most = info.max_frame.saturating_sub(overhead).min(info.max_mtu.into());
    u16::try_from(most).unwrap_or(u16::MAX)
}

fn public(info: &ffi::Info) -> PortInfo {
    let driver = if info.driver.is_null() {
        String::new()
    } else {
        // SAFETY: a driver's name is a static C string.
        unsafe { CStr::from_ptr(info.driver) }.to_string_lossy().into_owned()
    };
    PortInfo {
        driver,
        max_rx_queues: info.max_rx_queues,
        max_tx_queues: info.max_tx_queues,
        min_mtu: info.min_mtu,
        max_mtu: info.max_mtu,
        socket: u32::try_from(info.socket).ok(),
        rx_offloads: info.rx_offloads,
        tx_offloads: info.tx_offloads,
        rss: info.rss != 0,
    }
}
