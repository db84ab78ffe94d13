//! Packet functions that run in the Millrace daemon: the interface, as `include/millrace_function.h` has it for
//! C, and the way to write one in Rust.
//!
//! ```
//! use millrace_function::{Function, Packet, Verdict, export};
//!
//! /// Drops packets that are longer than its argument says.
//! struct Short(usize);
//!
//! impl Function for Short {
//!     fn create(argument: &str) -> Result<Self, String> {
//!         argument.parse().map(Self).map_err(|_| "give the longest packet: bytes".to_owned())
//!     }
//!
//!     fn process(&mut self, packet: &mut Packet<'_>) -> Verdict {
//!         if packet.bytes().len() > self.0 { Verdict::Drop } else { Verdict::Pass }
//!     }
//! }
//!
//! export!(Short);
//! ```
//! In its `Cargo.toml`: `crate-type = ["cdylib"]`. Then `millrace function add libshort.so --argument 200`.
//!
//! What is loaded runs within the daemon and is trusted like it. A panic does not get out: the rest of the
//! burst passes, and the instance is not asked again.

mod packet;
mod table;

pub use packet::{Packet, RawPacket, Verdict};
pub use table::{Table, VERSION, table};

/// A packet function. The daemon makes one for each of its workers; one thread uses it at a time.
pub trait Function: Send + Sized + 'static {
    /// Makes one; `argument`: what the user gave.
    ///
    /// # Errors
    /// What is wrong with the argument, in words for the user.
    fn create(argument: &str) -> Result<Self, String>;

    /// Treats a packet.
    fn process(&mut self, packet: &mut Packet<'_>) -> Verdict;
}

/// Exports a [`Function`] as the shared object's: once in a crate.
#[macro_export]
macro_rules! export {
    ($function:ty) => {
        /// The symbol that the daemon looks for.
        // SAFETY: the name belongs to this interface, and a shared object exports it once.
        #[unsafe(no_mangle)]
        pub extern "C" fn millrace_function() -> *const $crate::Table {
            static TABLE: $crate::Table = $crate::table::<$function>();
            &raw const TABLE
        }
    };
}
