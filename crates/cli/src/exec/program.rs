//! The program to run, and whether a library can be loaded into it.

use std::ffi::OsStr;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Bytes of a file that hold its ELF header and program headers: as the kernel, no more than its first page.
const HEAD: usize = 4_096;
/// An ELF segment that names the loader: without one, nothing is loaded into the program.
const PT_INTERP: u32 = 3;
/// Bits of a file's mode that make its program run as its owner or group.
const SET_ID: u32 = 0o6000;

/// The program that a shell would run: a path as it is, a name from the folders of PATH.
pub(super) fn find(word: &OsStr, path: &OsStr) -> Option<PathBuf> {
    let runs = |path: &PathBuf| {
        path.metadata()
            .is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
    };
    if word.to_string_lossy().contains('/') {
        return Some(PathBuf::from(word)).filter(runs);
    }
    std::env::split_paths(path).map(|folder| folder.join(word)).find(runs)
}

/// Whether the loader will load a library into it; else why not.
pub(super) fn check(program: &Path) -> Result<(), String> {
    let shown = program.display();
    if let Ok(about) = program.metadata()
        && about.mode() & SET_ID != 0
        && std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() != 0)
    {
        return Err(format!(
            "{shown} runs with its owner's rights (setuid), so that the loader ignores LD_PRELOAD; start it as root"
        ));
    }
    let mut head = Vec::new();
    // A program that cannot be read can still be run: the loader will tell.
    let Ok(file) = std::fs::File::open(program) else { return Ok(()) };
    if file.take(HEAD as u64).read_to_end(&mut head).is_err() {
        return Ok(());
    }
    if is_static(&head) {
        return Err(format!(
            "{shown} is statically linked, so that no library can be loaded into it; use a build that is linked dynamically"
        ));
    }
    Ok(())
}

/// Whether these are the first bytes of a 64-bit little-endian ELF program without a loader. What is something else, a script
/// for example, is not called static.
fn is_static(head: &[u8]) -> bool {
    let word = |at: usize| head.get(at..at + 2).map(|b| u16::from_le_bytes([b[0], b[1]]));
    if head.get(..6) != Some(b"\x7fELF\x02\x01") {
        return false;
    }
    // ELF-64 object file format: e_phoff at 32 (8 bytes), e_phentsize at 54, e_phnum at 56; p_type begins an entry.
    let (Some(size), Some(count), Some(table)) = (word(54), word(56), head.get(32..40)) else {
        return false;
    };
    let Ok(table) = <[u8; 8]>::try_from(table) else { return false };
    let Ok(table) = usize::try_from(u64::from_le_bytes(table)) else { return false };
    for entry in 0..usize::from(count) {
        let at = table.saturating_add(entry * usize::from(size));
        // Beyond what was read: not known to be static.
        let Some(kind) = at.checked_add(4).and_then(|end| head.get(at..end)) else { return false };
        if kind == PT_INTERP.to_le_bytes() {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF header with program headers of these types.
    fn elf(types: &[u32]) -> Vec<u8> {
        let mut head = b"\x7fELF\x02\x01".to_vec();
        head.resize(64, 0);
        head[32..40].copy_from_slice(&64_u64.to_le_bytes());
        head[54..56].copy_from_slice(&56_u16.to_le_bytes());
        head[56..58].copy_from_slice(&u16::try_from(types.len()).unwrap().to_le_bytes());
        for kind in types {
            head.extend_from_slice(&kind.to_le_bytes());
            head.resize(head.len() + 52, 0);
        }
        head
    }

    #[test]
    fn static_programs_are_known_by_their_headers() {
        assert!(is_static(&elf(&[1, 1, 7])));
        assert!(!is_static(&elf(&[6, 3, 1])));
        assert!(!is_static(b"#!/bin/sh\n"));
        assert!(!is_static(b""));
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(!is_static(&own[..HEAD]));
    }

    #[test]
    fn headers_that_lie_are_not_followed() {
        let mut far = elf(&[1]);
        far[32..40].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(!is_static(&far));
        let mut many = elf(&[1]);
        many[56..58].copy_from_slice(&u16::MAX.to_le_bytes());
        assert!(!is_static(&many));
        for length in 0..64 {
            assert!(!is_static(&elf(&[1])[..length]), "{length}");
        }
    }

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        std::fs::write(&program, "").unwrap();
        let path = std::env::join_paths([Path::new("/nowhere"), folder.path()]).unwrap();
        assert_eq!(find(OsStr::new("program"), &path), None, "it may not be run");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find(OsStr::new("program"), &path).as_ref(), Some(&program));
        assert_eq!(find(program.as_os_str(), OsStr::new("")).as_ref(), Some(&program));
        assert_eq!(find(OsStr::new("./program"), &path), None);
    }
}
