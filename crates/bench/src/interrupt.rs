//! Ctrl-C: the step that is being measured is finished, and what was measured so far is shown and written.

use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::terminal::complain;

/// Exit status of a program that an interrupt ended, as shells have it: 128 + SIGINT.
const INTERRUPTED: i32 = 130;

static CAME: AtomicBool = AtomicBool::new(false);

/// From now on an interrupt ends the run in order, and a second one at once. Gives what tells whether one came.
pub(crate) fn keep_results() -> &'static AtomicBool {
    // Without a handler an interrupt ends the program, and what was measured is lost: no reason not to measure.
    let _ = ctrlc::set_handler(|| {
        if CAME.swap(true, Ordering::Relaxed) {
            exit(INTERRUPTED);
        }
        complain(format_args!(
            "interrupted: ends after this step, with what was measured; again to end at once"
        ));
    });
    &CAME
}

/// Whether the user wants no more.
pub(crate) fn came() -> bool {
    CAME.load(Ordering::Relaxed)
}
