//! What a user who wonders is told.

use crate::{environment, uncancelled};

/// Says why something is not so, to whoever has asked for it by `MILLRACE_DEBUG`.
pub(crate) fn say(what: &str) {
    if environment::is_debugged() {
        let line = format!("millrace: {what}\n");
        uncancelled::write(libc::STDERR_FILENO, line.as_bytes());
    }
}
