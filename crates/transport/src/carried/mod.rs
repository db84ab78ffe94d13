//! What a connection is as bytes, and how each part of it is written and read (`docs/transport.md`, 'Moving a connection').
//!
//! What a struct carries stands beside it (the macro `carried!`): it names every field, so a new one does not
//! compile until somebody has decided how it travels.

#[macro_use]
mod values;
mod bytes;
mod error;

pub use bytes::{Reader, Writer};
pub use error::ImportError;
pub use values::Carried;

/// Of the format. A stack reads its own only.
pub const VERSION: u16 = 4;
