//! The cores that this process may use.

/// Where the kernel tells (proc(5)).
const STATUS: &str = "/proc/self/status";

/// Highest core number that is taken.
const HIGHEST: u16 = 1_023;

/// Cores that this process may run on, in order; core 0 where the kernel does not tell.
#[must_use]
pub fn allowed() -> Vec<u16> {
    let status = std::fs::read_to_string(STATUS).unwrap_or_default();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let cores = list.map(|list| parse(list.trim())).unwrap_or_default();
    if cores.is_empty() { vec![0] } else { cores }
}

/// Reads a list such as `0-3,8`; what cannot be read is left out.
fn parse(list: &str) -> Vec<u16> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse().ok()?..=last.trim().parse::<u16>().ok()?.min(HIGHEST))
    };
    list.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn lists() {
        assert_eq!(super::parse("0-2,5"), [0, 1, 2, 5]);
        assert_eq!(super::parse("7"), [7]);
        assert!(super::parse("x").is_empty());
        assert_eq!(super::parse("1023-65535"), [1023]);
        assert!(!super::allowed().is_empty());
    }
}
