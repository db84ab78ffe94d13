//! A connection as bytes: exported by one stack, imported by another, without its peer noticing.
//!
//! `docs/transport.md`, 'Moving a connection', has the format. What a struct carries stands beside it
//! (the macro `carried!`): it names every field, so a new one does not compile until somebody has decided how
//! it travels.

#[macro_use]
mod carried;
mod bytes;
mod check;
mod congestion;
mod connection;
mod contents;
mod error;
mod export;
mod held;
mod import;
mod options;
mod summary;
mod unheld;

pub(crate) use held::Held;

pub use bytes::{Reader, Writer};
pub use carried::Carried;
pub use error::{ExportError, ImportError};
pub use export::{Contents, Exported};
pub use summary::Summary;

/// The first four bytes: 'MRTC'.
pub(crate) const MAGIC: u32 = u32::from_le_bytes(*b"MRTC");
/// Of the format. A stack reads its own only.
pub const VERSION: u16 = 1;
