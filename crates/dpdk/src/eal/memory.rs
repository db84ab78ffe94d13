//! Which pages EAL's memory comes from.

use std::path::Path;

use super::{EalError, EalOptions, Memory};

/// Whether to use hugepages.
pub(crate) fn choose(options: &EalOptions) -> Result<bool, EalError> {
    if options.memory == Memory::Plain {
        return Ok(false);
    }
    let free = free_megabytes(Path::new("/sys/kernel/mm/hugepages"));
    let enough = free >= u64::from(options.megabytes);
    if options.memory == Memory::Huge && !enough {
        return Err(EalError::Hugepages { needed: options.megabytes, free });
    }
    Ok(enough)
}

/// MB in free hugepages of every size.
fn free_megabytes(root: &Path) -> u64 {
    let Ok(sizes) = std::fs::read_dir(root) else { return 0 };
    sizes
        .filter_map(|size| {
            let size = size.ok()?;
            let name = size.file_name();
            let kilobytes = name.to_str()?.strip_prefix("hugepages-")?.strip_suffix("kB")?;
            let kilobytes: u64 = kilobytes.parse().ok()?;
            let free = std::fs::read_to_string(size.path().join("free_hugepages")).ok()?;
            Some(free.trim().parse::<u64>().ok()?.saturating_mul(kilobytes) / 1024)
        })
        .sum()
}

/// MB of ordinary memory that can be had without swapping.
pub(crate) fn available_megabytes() -> u64 {
    let Ok(memory) = std::fs::read_to_string("/proc/meminfo") else { return 0 };
    let line = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() / 1024
}
