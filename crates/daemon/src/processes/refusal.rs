//! Refusals in few words.

use shm::attach::{Refusal, RefusalKind};

/// Longest name that a process gives itself: bytes.
const LONGEST_NAME: usize = 63;

pub(crate) fn invalid(problem: impl Into<String>) -> Refusal {
    Refusal::new(RefusalKind::Invalid, problem)
}

pub(crate) fn no_resources(problem: impl std::fmt::Display) -> Refusal {
    Refusal::new(RefusalKind::Resources, problem.to_string())
}

pub(crate) fn unknown(problem: impl Into<String>) -> Refusal {
    Refusal::new(RefusalKind::Unknown, problem)
}

/// The beginning of what a process said, for people to read.
pub(crate) fn printable(said: &str) -> String {
    said.chars().take(32).collect::<String>().escape_debug().to_string()
}

/// Whether a process may call itself so, and its library.
///
/// Errors: what it is told.
pub(crate) fn check_name(name: &str, library: &str) -> Result<(), Refusal> {
    let fits = !name.is_empty() && name.len() <= LONGEST_NAME && library.len() <= LONGEST_NAME;
    if !fits || name.chars().chain(library.chars()).any(char::is_control) {
        let problem = "the name must have 1 to 63 printable bytes, the library's 63 at most";
        return Err(invalid(problem));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_printable() {
        assert_eq!(check_name("name", ""), Ok(()));
        let long = "n".repeat(LONGEST_NAME + 1);
        for (name, library) in [
            ("", "library"),
            ("two\nlines", "library"),
            (long.as_str(), "library"),
            ("name", "\u{1b}[2J"),
            ("name", long.as_str()),
        ] {
            assert!(check_name(name, library).is_err(), "{name:?} {library:?}");
        }
    }
}
