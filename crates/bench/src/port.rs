//! Ports that have one queue each way.

use dpdk::{BufferPool, Device, Opened, Port, PortConfig, RxQueue, TxQueue};

use crate::failure::Failure;

/// Opens one, whose packets lie in the pool's buffers. `mtu`: the largest IP packet, if it is larger than usual: bytes.
pub(crate) fn open(
    device: &Device,
    pool: BufferPool,
    mtu: Option<u16>,
) -> Result<(Port, RxQueue, TxQueue), Failure> {
    let config = PortConfig { mtu, ..PortConfig::new(pool) };
    let Opened { port, mut rx, mut tx, .. } = Port::open(device, &config)?;
    let (Some(rx), Some(tx)) = (rx.pop(), tx.pop()) else { return Err(Failure::NoQueue) };
    Ok((port, rx, tx))
}
