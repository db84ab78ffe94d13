//! Opening devices and dealing out their queues.

use std::sync::Arc;

use dpdk::{
    Adjustment, Device, Eal, EalOptions, Health, Opened, PortConfig, PortError, PortStats, RxQueue,
    TxQueue,
};

use crate::{Dispatch, Error, Options, Queue, pools, sizes};

/// Threads at most: DPDK has 128 numbers for them.
const MOST_QUEUES: u16 = 64;

/// Devices that this process has opened. A port closes when it and all queues are dropped.
#[derive(Debug)]
pub struct Devices {
    /// As many as were asked for; each can go to a thread of its own.
    pub queues: Vec<Queue>,
    /// The ports, by their numbers.
    pub ports: Vec<Port>,
}

/// A port: its control side.
#[derive(Debug)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// Its number in [`Packet::port`](crate::Packet::port): its place among the devices.
    pub number: u8,
    /// Its MAC address; zeros where the device has none.
    pub mac: [u8; 6],
    /// Bytes of an IP packet.
    pub mtu: u16,
    /// What the device has instead of what was asked.
    pub adjustments: Vec<Adjustment>,
    control: dpdk::Port,
}

impl Port {
    /// What the device has counted.
    ///
    /// # Errors
    /// [`PortError::Unsupported`] or [`PortError::Driver`].
    pub fn stats(&self) -> Result<PortStats, PortError> {
        self.control.stats()
    }

    /// Whether it carries packets.
    #[must_use]
    pub fn health(&self) -> Health {
        self.control.health()
    }
}

impl Devices {
    /// Opens devices, each given as name and device string (`afpacket:eth1`; `docs/forward.md` has them all), for
    /// `queues` threads. Ports receive every frame, whatever its MAC address.
    ///
    /// # Errors
    /// [`Error`] says which, with the port's name. A device that has fewer queues than threads is refused
    /// ([`Error::ReceiveQueues`], [`Error::TransmitQueues`]).
    pub fn open(devices: &[(&str, &str)], queues: u16, options: &Options) -> Result<Self, Error> {
        if devices.is_empty() || devices.len() > usize::from(u8::MAX) {
            return Err(Error::Devices(devices.len()));
        }
        if !(1..=MOST_QUEUES).contains(&queues) {
            return Err(Error::Queues(queues));
        }
        let parsed = parse(devices)?;
        let buffers = sizes::buffers(&parsed, queues, options);
        start_dpdk(&parsed, buffers, options)?;
        let pool = pools::take(buffers, options.capacity)?;
        let config = PortConfig {
            rx_queues: sizes::receive_queues(queues, options.dispatch),
            tx_queues: queues,
            rx_descriptors: options.descriptors,
            tx_descriptors: options.descriptors,
            mtu: options.mtu,
            ..PortConfig::new(*pool)
        };
        let mut dealt: Vec<Queue> = (0..queues).map(|_| Queue::new(Arc::clone(&pool))).collect();
        let mut ports = Vec::with_capacity(devices.len());
        for (number, (&(name, _), device)) in (0..).zip(devices.iter().zip(&parsed)) {
            let opened = dpdk::Port::open(device, &config)
                .map_err(|source| Error::Port { name: name.to_owned(), source })?;
            let (port, receive, transmit) = port(name, number, opened);
            check(name, &config, receive.len(), transmit.len())?;
            let first = match options.dispatch {
                Dispatch::RoundRobin => 0,
                Dispatch::Port => usize::from(number) % dealt.len(),
            };
            for (queue, receive) in dealt.iter_mut().skip(first).zip(receive) {
                queue.receive_from(number, receive);
            }
            for (queue, transmit) in dealt.iter_mut().zip(transmit) {
                queue.send_to(transmit);
            }
            ports.push(port);
        }
        Ok(Self { queues: dealt, ports })
    }
}

fn parse(devices: &[(&str, &str)]) -> Result<Vec<Device>, Error> {
    let mut names: Vec<&str> = devices.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    if let Some([name, _]) = names.windows(2).find(|pair| matches!(pair, [a, b] if a == b)) {
        return Err(Error::Name((*name).to_owned()));
    }
    let parse = |&(name, device): &(&str, &str)| {
        device.parse().map_err(|source| Error::Device { name: name.to_owned(), source })
    };
    devices.iter().map(parse).collect()
}

/// Once per process; the devices of later calls share what the first one started.
fn start_dpdk(devices: &[Device], buffers: u32, options: &Options) -> Result<(), Error> {
    if Eal::get().is_some() {
        return Ok(());
    }
    Eal::init(&EalOptions {
        megabytes: sizes::megabytes(devices, buffers, options),
        memory: options.memory,
        devices: devices.to_vec(),
        ..EalOptions::default()
    })?;
    Ok(())
}

fn port(name: &str, number: u8, opened: Opened) -> (Port, Vec<RxQueue>, Vec<TxQueue>) {
    let Opened { port: control, rx, tx, adjustments } = opened;
    let port = Port {
        name: name.to_owned(),
        number,
        mac: control.mac().unwrap_or_default(),
        mtu: control.mtu().unwrap_or_default(),
        adjustments,
        control,
    };
    (port, rx, tx)
}

fn check(name: &str, asked: &PortConfig, receive: usize, transmit: usize) -> Result<(), Error> {
    let name = || name.to_owned();
    if receive < usize::from(asked.rx_queues) {
        return Err(Error::ReceiveQueues { name: name(), has: receive, asked: asked.rx_queues });
    }
    if transmit < usize::from(asked.tx_queues) {
        return Err(Error::TransmitQueues { name: name(), has: transmit, asked: asked.tx_queues });
    }
    Ok(())
}
