//! When an epoll instance that has events of sessions asks the kernel about its other files.

use std::ffi::c_int;

use crate::kernel_watch::KernelWatch;

/// While sessions are ready, so many calls pass until the kernel is asked without need.
const PATIENCE: u32 = 32;

/// What to ask while sessions are ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asks {
    /// An epoll instance's own files.
    pub(crate) files: bool,
    /// Files of the kernel's that stand beside sessions: now and then.
    pub(crate) company: bool,
}

impl Asks {
    pub(super) const ALL: Self = Self { files: true, company: true };
}

/// What is known of the kernel's files in an epoll instance.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// Calls that had events of sessions, since the kernel was asked.
    calls: u32,
    watch: Watched,
}

/// How it is known that the kernel's files have events.
#[derive(Debug, Default)]
enum Watched {
    /// Nothing has needed to know.
    #[default]
    NotYet,
    By(KernelWatch),
    /// Only by asking.
    Not,
}

impl Files {
    /// What to ask in a call that has events of sessions already.
    pub(super) fn asks(&mut self, epoll: c_int) -> Asks {
        self.calls = (self.calls + 1) % PATIENCE;
        let company = self.calls == 0;
        if let (true, Watched::NotYet) = (company, &self.watch) {
            self.watch = KernelWatch::new(epoll).map_or(Watched::Not, Watched::By);
        }
        let files = match &mut self.watch {
            Watched::By(watch) if watch.is_over() => {
                self.watch = Watched::Not;
                true
            }
            Watched::By(watch) => watch.has_events(epoll),
            // An instance that is not busy yet can afford to ask.
            Watched::NotYet => true,
            Watched::Not => company,
        };
        Asks { files, company }
    }

    /// The kernel was asked: whether it had events.
    pub(super) fn asked(&mut self, had_events: bool) {
        if let Watched::By(watch) = &mut self.watch {
            watch.asked(had_events);
        }
    }

    /// Whether the files are known to have events.
    pub(super) fn have_news(&self) -> bool {
        matches!(&self.watch, Watched::By(watch) if watch.has_news())
    }
}
