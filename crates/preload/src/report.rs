//! What a user who wonders is told.

use crate::{environment, real};

/// Says why something is not so, to whoever has asked for it by `MILLRACE_DEBUG`.
pub(crate) fn say(what: &str) {
    if environment::is_debugged() {
        let line = format!("millrace: {what}\n");
        // SAFETY: the bytes of the line.
        unsafe { real::write(2, line.as_ptr().cast(), line.len()) };
    }
}
