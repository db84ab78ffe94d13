//! What a user who wonders is told.

use crate::real;

/// Says why something is not so, to whoever has asked for it by `MILLRACE_DEBUG`.
pub(crate) fn say(what: &str) {
    if std::env::var_os("MILLRACE_DEBUG").is_some() {
        let line = format!("millrace: {what}\n");
        // SAFETY: the bytes of the line.
        unsafe { real::write(2, line.as_ptr().cast(), line.len()) };
    }
}
