//! What this library does when the loader has loaded it.

use crate::{hooks, inherited};

extern "C" fn start() {
    inherited::look();
    hooks::follow_all();
}

#[used]
#[unsafe(link_section = ".init_array")]
static START_HOOK: extern "C" fn() = start;
