//! The in-memory packet source of `yardstick/source.c`.

use std::ffi::c_int;
use std::io::{BufWriter, Write};
use std::path::Path;

use super::YardstickError;
use crate::ffi::Mempool;
use crate::{BufferPool, RxQueue};

/// The source as a shared object for `dpdk-testpmd` and `l3fwd`, through `LD_PRELOAD`: their `-d` refuses files
/// below a directory that everyone may write to. It reads the file of templates that the
/// environment variable `MILLRACE_SOURCE` names, and feeds the receive queues of all `net_null` ports from the pool
/// that `MILLRACE_SOURCE_POOL` names, or else from testpmd's `mb_pool_0`. Into the file that `MILLRACE_SOURCE_REPORT` names it
/// writes what was sent, for [`Report::parse`].
pub const SOURCE_PLUGIN: &str = env!("MILLRACE_SOURCE_PLUGIN");

/// What all ports have sent, as the plug-in reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// Packets sent so far.
    pub packets: u64,
    /// When: TSC cycles.
    pub time: u64,
}

impl Report {
    /// Length of a report: bytes.
    pub const LENGTH: usize = 24;

    /// The report in the plug-in's file. `None`: there is none yet, or it was being written.
    #[must_use]
    pub fn parse(bytes: &[u8; Self::LENGTH]) -> Option<Self> {
        let word = |at: usize| bytes.get(at..)?.first_chunk().copied().map(u64::from_le_bytes);
        let (packets, time, both) = (word(0)?, word(8)?, word(16)?);
        (time != 0 && packets ^ time == both).then_some(Self { packets, time })
    }
}

/// One packet of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Template {
    /// Its first 64 bytes; what follows is whatever the buffer held before.
    pub header: [u8; 64],
}

unsafe extern "C" {
    fn millrace_source_attach(
        port: u16,
        queue: u16,
        pool: *mut Mempool,
        headers: *const Template,
        lengths: *const u16,
        count: u32,
    ) -> c_int;
}

/// Makes `queue` (of a `null:no-rx=1` port) receive full bursts of packets from `pool`, whose
/// starts are `templates` in turn and whose lengths are `lengths`, for the life of the port. The
/// tables are kept for ever.
///
/// # Errors
/// [`YardstickError::Shape`] when there are no templates, not as many lengths, or a length below
/// 64 or above the pool's buffers; [`YardstickError::Memory`] when DPDK refuses.
pub fn attach_source(
    queue: &mut RxQueue,
    pool: &BufferPool,
    templates: Vec<Template>,
    lengths: Vec<u16>,
) -> Result<(), YardstickError> {
    let fits = lengths.iter().all(|length| (64..=pool.data_room()).contains(length));
    let count = u32::try_from(templates.len()).map_err(|_| YardstickError::Shape)?;
    if templates.is_empty() || templates.len() != lengths.len() || !fits {
        return Err(YardstickError::Shape);
    }
    let (templates, lengths) = (templates.leak(), lengths.leak());
    // SAFETY: the queue's port is open, the pool and both tables of `count` entries live for ever,
    // and the lengths fit the buffers.
    let rc = unsafe {
        millrace_source_attach(
            queue.port(),
            queue.index(),
            pool.as_ptr(),
            templates.as_ptr(),
            lengths.as_ptr(),
            count,
        )
    };
    if rc == 0 { Ok(()) } else { Err(YardstickError::Memory) }
}

/// Writes the file that the plug-in reads.
///
/// # Errors
/// Those of the file system.
pub fn write_templates(
    path: &Path,
    templates: &[Template],
    lengths: &[u16],
) -> std::io::Result<()> {
    let mut file = BufWriter::new(std::fs::File::create(path)?);
    let count = templates.len().min(lengths.len());
    file.write_all(b"MRSOURCE")?;
    file.write_all(&(count as u64).to_le_bytes())?;
    for template in &templates[..count] {
        file.write_all(&template.header)?;
    }
    for length in &lengths[..count] {
        file.write_all(&length.to_le_bytes())?;
    }
    file.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_whole_or_not_at_all() {
        let bytes = |words: [u64; 3]| -> [u8; Report::LENGTH] {
            let mut bytes = [0; Report::LENGTH];
            for (to, word) in bytes.chunks_mut(8).zip(words) {
                to.copy_from_slice(&word.to_le_bytes());
            }
            bytes
        };
        let report = Report { packets: 700, time: 1 << 40 };
        assert_eq!(Report::parse(&bytes([700, 1 << 40, 700 ^ 1 << 40])), Some(report));
        assert_eq!(Report::parse(&bytes([701, 1 << 40, 700 ^ 1 << 40])), None);
        assert_eq!(Report::parse(&[0; Report::LENGTH]), None);
    }
}
