//! Neither a packet nor a call allocates more than a page at once, however much there is already: a list that doubles
//! would make one packet wait while all of it is copied. FIFOs grow by pieces of 16 KiB.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod allocator;
mod connections;
mod window;
mod wire;
