//! Ports that have one queue each way.

use dpdk::{BufferPool, Device, Opened, Port, PortConfig, RxQueue, TxQueue};

use crate::failure::Failure;

/// Opens one, whose packets lie in the pool's buffers.
pub(crate) fn open(device: &Device, pool: BufferPool) -> Result<(Port, RxQueue, TxQueue), Failure> {
    let Opened { port, mut rx, mut tx, .. } = Port::open(device, &PortConfig::new(pool))?;
    let (Some(rx), Some(tx)) = (rx.pop(), tx.pop()) else { return Err(Failure::NoQueue) };
    Ok((port, rx, tx))
}
