//! What the environment said when this library was loaded. Programs change theirs: NGINX drops all that it was not told to keep.

use std::ffi::{CStr, CString};
use std::path::PathBuf;
use std::sync::OnceLock;

use client::session::{LINKS_VARIABLE, PLACEMENT_VARIABLE, SESSIONS_VARIABLE};
use shm::session::Placement;

/// Says why something is not so, on standard error.
const DEBUG: &str = "MILLRACE_DEBUG";
/// `on`: the program may have `io_uring`.
const IO_URING: &str = "MILLRACE_IO_URING";
/// Variables that a program started by this one has to have.
const KEPT: [&str; 6] =
    ["LD_PRELOAD", SESSIONS_VARIABLE, PLACEMENT_VARIABLE, DEBUG, LINKS_VARIABLE, IO_URING];

/// `NAME=VALUE` of those that were there.
static SAVED: OnceLock<Vec<CString>> = OnceLock::new();

fn saved() -> &'static [CString] {
    SAVED.get_or_init(|| {
        let found = KEPT.iter().filter_map(|name| {
            let value = std::env::var(name).ok().filter(|value| !value.is_empty())?;
            CString::new(format!("{name}={value}")).ok()
        });
        found.collect()
    })
}

/// Called by the loader.
extern "C" fn remember() {
    saved();
}

#[used]
#[unsafe(link_section = ".init_array")]
static REMEMBER_HOOK: extern "C" fn() = remember;

fn value(name: &str) -> Option<&'static str> {
    saved().iter().find_map(|entry| entry.to_str().ok()?.strip_prefix(name)?.strip_prefix('='))
}

/// The daemon's sessions socket, if it is not the usual one.
pub(crate) fn sessions_socket() -> Option<PathBuf> {
    value(SESSIONS_VARIABLE).map(PathBuf::from)
}

/// Whether connections within this machine may go past the daemon.
pub(crate) fn wants_links() -> bool {
    value(LINKS_VARIABLE) != Some("off")
}

/// Whether the program may use rings of the kernel's, which knows nothing of sessions.
pub(crate) fn allows_io_uring() -> bool {
    value(IO_URING) == Some("on")
}

/// Where the stack is to run, if it is not for the daemon to say.
///
/// # Errors
/// What it says instead.
pub(crate) fn placement() -> Result<Option<Placement>, &'static str> {
    let name = value(PLACEMENT_VARIABLE);
    name.map(|name| Placement::named(name).ok_or(name)).transpose()
}

/// Whether somebody wants to know why something is not so.
pub(crate) fn is_debugged() -> bool {
    value(DEBUG).is_some()
}

/// What is missing in the environment of a program to be started.
pub(crate) fn missing<'a>(
    has: impl Fn(&[u8]) -> bool + 'a,
) -> impl Iterator<Item = &'static CStr> + 'a {
    let entries = saved().iter().map(CString::as_c_str);
    entries.filter(move |entry| {
        let name = entry.to_bytes().split_inclusive(|byte| *byte == b'=').next();
        !name.is_some_and(&has)
    })
}
