//! The in-memory packet source of `yardstick/source.c`.

use std::ffi::c_int;
use std::io::{BufWriter, Write};
use std::path::Path;

use super::YardstickError;
use crate::ffi::Mempool;
use crate::{BufferPool, RxQueue};

/// The source as a shared object for `dpdk-testpmd`, through `LD_PRELOAD`: its `-d` refuses files
/// below a directory that everyone may write to. It reads the file of templates that the
/// environment variable `MILLRACE_SOURCE` names, and feeds all `net_null` ports from testpmd's pool
/// `mb_pool_0`.
pub const SOURCE_PLUGIN: &str = env!("MILLRACE_SOURCE_PLUGIN");

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
