//! A connection as bytes: exported by one stack, imported by another, without its peer noticing.
//!
//! `docs/transport.md`, 'Moving a connection', has the format; `carried` writes and reads it.

mod check;
mod congestion;
mod connection;
mod contents;
mod error;
mod export;
mod import;
mod options;
mod summary;
mod time_wait;
mod unheld;

pub use crate::carried::{Carried, ImportError, Reader, VERSION, Writer};
pub use error::ExportError;
pub use export::{Contents, Exported};
pub use summary::Summary;
pub use time_wait::TimeWait;

/// The first four bytes: 'MRTC'.
pub(crate) const MAGIC: u32 = u32::from_le_bytes(*b"MRTC");
