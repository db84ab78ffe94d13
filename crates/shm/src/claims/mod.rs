//! Claims: the flows that a stack still has, said in its segment so that the daemon need not be told of each.
//!
//! A set of 64-bit tags, each a keyed hash of a flow's ends ([`tag`]). The stack writes it, the daemon's workers read
//! it, at the same time and without a word between them. A tag lies in one of two cache lines that the tag itself names,
//! and never moves; so a reader looks at two lines at most, and can't miss a tag that stays, whatever comes and goes
//! beside it. With two places in every three taken, the emptier of two lines has had room for each tag (lines of 8
//! places; 8, 64, 512 and 8,192 lines; random tags).
//!
//! Nothing here is trusted by the reader: a stack that writes nonsense claims flows that go to it or to nobody.
//! The first line counts the tags, so that a stack without any costs its readers one line, which nobody writes.

mod memory;
#[cfg(loom)]
mod modelled;
mod reader;
#[cfg(not(loom))]
mod tag;
mod writer;

#[cfg(not(loom))]
pub use memory::{ClaimsError, bytes};
pub use reader::ClaimsReader;
#[cfg(not(loom))]
pub use tag::tag;
pub use writer::ClaimsWriter;

#[cfg(not(loom))]
use memory::Memory;
#[cfg(loom)]
use modelled::Memory;

#[cfg(test)]
#[cfg(loom)]
mod model_tests;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;
