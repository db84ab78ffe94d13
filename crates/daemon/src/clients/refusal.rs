//! Refusals in few words.

use shm::attach::{Refusal, RefusalKind};

pub(super) fn invalid(problem: impl Into<String>) -> Refusal {
    Refusal::new(RefusalKind::Invalid, problem)
}

pub(super) fn no_resources(problem: impl std::fmt::Display) -> Refusal {
    Refusal::new(RefusalKind::Resources, problem.to_string())
}
