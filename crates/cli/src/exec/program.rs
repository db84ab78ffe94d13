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
/// The attribute of a file that gives its program capabilities (`capabilities(7)`).
const CAPABILITIES: &str = "security.capability";

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
    let is_users = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() != 0);
    check_file(program, true, is_users)
}

/// Looks at a file. `script`: it may be one, whose interpreter is looked at. `is_users`: whoever runs it is not root.
fn check_file(program: &Path, script: bool, is_users: bool) -> Result<(), String> {
    let shown = program.display();
    let head = head(program);
    // A script runs with its interpreter's rights.
    if let Some(interpreter) = interpreter(&head).filter(|_| script) {
        return check_file(Path::new(interpreter), false, is_users)
            .map_err(|why| format!("{shown} is a script, and {why}"));
    }
    if let Some(rights) = rights(program).filter(|_| is_users) {
        return Err(format!(
            "{shown} runs with {rights}, so that the loader ignores LD_PRELOAD; start it as root"
        ));
    }
    let Some(machine) = machine(&head) else { return Ok(()) };
    if machine != OWN_MACHINE {
        return Err(format!(
            "{shown} is a program for another machine or word size than Millrace's library, which therefore cannot be \
             loaded into it; use a 64-bit build for this machine"
        ));
    }
    match loader(&head) {
        Loader::Unknown => Ok(()),
        Loader::None => Err(format!(
            "{shown} is statically linked, so that no library can be loaded into it; use a build that is linked dynamically"
        )),
        Loader::At(path) if path.contains("musl") => Err(format!(
            "{shown} is linked with musl, and Millrace's library with glibc; use a build that is linked with glibc"
        )),
        Loader::At(_) => Ok(()),
    }
}

/// The first bytes of a file; of one that cannot be read, none: it can still be run, and the loader will tell.
fn head(program: &Path) -> Vec<u8> {
    let mut head = Vec::new();
    let read =
        std::fs::File::open(program).and_then(|file| file.take(HEAD as u64).read_to_end(&mut head));
    if read.is_err() { Vec::new() } else { head }
}

/// What a program may do beyond what whoever starts it may. The loader then takes no library that the environment names.
fn rights(program: &Path) -> Option<&'static str> {
    if program.metadata().is_ok_and(|about| about.mode() & SET_ID != 0) {
        return Some("its owner's rights (setuid)");
    }
    let given = rustix::fs::getxattr(program, CAPABILITIES, &mut [0_u8; 64]);
    given.is_ok().then_some("capabilities of its own (setcap)")
}

/// The program that runs a script.
fn interpreter(head: &[u8]) -> Option<&str> {
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    std::str::from_utf8(line).ok()?.split_ascii_whitespace().next()
}

/// Class, byte order and machine of an ELF program: 64-bit little-endian of this machine are the library's own.
type Machine = (u8, u8, u16);
const OWN_MACHINE: Machine = (2, 1, if cfg!(target_arch = "aarch64") { 183 } else { 62 });

/// `None`: it is no ELF program.
fn machine(head: &[u8]) -> Option<Machine> {
    let [class, order] = *head.strip_prefix(b"\x7fELF")?.first_chunk()?;
    let machine: [u8; 2] = *head.get(18..)?.first_chunk()?;
    let read = if order == 2 { u16::from_be_bytes } else { u16::from_le_bytes };
    Some((class, order, read(machine)))
}

/// What loads libraries into a program.
#[derive(Debug, PartialEq, Eq)]
enum Loader<'a> {
    /// Nothing: it is statically linked.
    None,
    /// A program of this path.
    At(&'a str),
    /// The headers do not lie within what was read.
    Unknown,
}

/// Of a 64-bit little-endian ELF program.
fn loader(head: &[u8]) -> Loader<'_> {
    // ELF-64 object file format: e_phoff at 32 (8 bytes), e_phentsize at 54, e_phnum at 56. In an entry, p_type is at 0,
    // p_offset at 8, p_filesz at 32.
    let short = |at: usize| Some(u16::from_le_bytes(*head.get(at..)?.first_chunk()?));
    let long = |at: usize| {
        let bytes: [u8; 8] = *head.get(at..)?.first_chunk()?;
        usize::try_from(u64::from_le_bytes(bytes)).ok()
    };
    let (Some(table), Some(size), Some(count)) = (long(32), short(54), short(56)) else {
        return Loader::Unknown;
    };
    for entry in 0..usize::from(count) {
        let at = table.saturating_add(entry * usize::from(size));
        let end = at.saturating_add(4);
        // Beyond what was read: not known to be static.
        let Some(kind) = head.get(at..end) else { return Loader::Unknown };
        if kind != PT_INTERP.to_le_bytes() {
            continue;
        }
        let (start, length) = (long(at.saturating_add(8)), long(at.saturating_add(32)));
        let path = start.zip(length).and_then(|(start, length)| {
            let bytes = head.get(start..start.saturating_add(length))?;
            std::str::from_utf8(bytes.strip_suffix(b"\0")?).ok()
        });
        return path.map_or(Loader::Unknown, Loader::At);
    }
    Loader::None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF header with program headers of these types.
    fn elf(types: &[u32]) -> Vec<u8> {
        let mut head = b"\x7fELF\x02\x01".to_vec();
        head.resize(64, 0);
        head[18..20].copy_from_slice(&OWN_MACHINE.2.to_le_bytes());
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
    fn what_a_library_can_be_loaded_into_is_known_by_its_headers() {
        assert_eq!(loader(&elf(&[1, 1, 7])), Loader::None);
        assert_eq!(loader(&elf(&[6, 3, 1])), Loader::Unknown, "without a name");
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let Loader::At(path) = loader(&own[..HEAD]) else {
            panic!("this test is linked dynamically")
        };
        assert!(path.contains("ld-linux"), "{path}");
        assert_eq!(machine(&own), Some(OWN_MACHINE));
        assert_eq!((machine(b"#!/bin/sh\n"), machine(b"")), (None, None));
    }

    #[test]
    fn what_cannot_take_the_library_is_told_why() {
        let folder = tempfile::tempdir().unwrap();
        let why = |name: &str, content: &[u8]| {
            let program = folder.path().join(name);
            std::fs::write(&program, content).unwrap();
            check(&program)
        };
        let part = |name: &str, content: &[u8], part: &str| {
            let error = why(name, content).unwrap_err();
            assert!(error.contains(part) && error.contains(name), "{error}");
        };
        part("static", &elf(&[1]), "statically linked");
        let mut narrow = elf(&[3]);
        narrow[4] = 1;
        part("narrow", &narrow, "another machine or word size");
        let mut other = elf(&[3]);
        other[18] = 8;
        part("other", &other, "another machine");
        let name = b"/lib/ld-musl-x86_64.so.1\0";
        let mut musl = elf(&[3]);
        musl[64 + 8] = 120;
        musl[64 + 32] = u8::try_from(name.len()).unwrap();
        musl.extend_from_slice(name);
        part("musl", &musl, "linked with musl");
        let script = format!("#! {} -x\necho\n", folder.path().join("static").display());
        part("script", script.as_bytes(), "is a script, and");
        assert_eq!(why("shell", b"#!/bin/sh\n"), Ok(()));
        assert_eq!(why("empty", b""), Ok(()));
        assert_eq!(why("nobody", b"#!/no/such/interpreter\n"), Ok(()), "the kernel will tell");
    }

    #[test]
    fn rights_of_its_own_keep_a_users_program_from_the_library() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        std::fs::write(&program, elf(&[3])).unwrap();
        assert_eq!(check_file(&program, true, true), Ok(()));
        let mode = |mode| {
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        let script = folder.path().join("script");
        std::fs::write(&script, format!("#!{}\n", program.display())).unwrap();
        mode(0o4755);
        for file in [&program, &script] {
            let why = check_file(file, true, true).unwrap_err();
            assert!(why.contains("(setuid)"), "{why}");
            assert_eq!(check_file(file, true, false), Ok(()), "root's");
        }
        mode(0o755);
        // cap_net_bind_service=ep; only who has CAP_SETFCAP may give it.
        let capabilities = [1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let none = rustix::fs::XattrFlags::empty();
        if rustix::fs::setxattr(program.as_path(), CAPABILITIES, &capabilities, none).is_ok() {
            let why = check_file(&program, true, true).unwrap_err();
            assert!(why.contains("(setcap)"), "{why}");
        }
    }

    #[test]
    fn headers_that_lie_are_not_followed() {
        let mut far = elf(&[1]);
        far[32..40].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(loader(&far), Loader::Unknown);
        let mut many = elf(&[1]);
        many[56..58].copy_from_slice(&u16::MAX.to_le_bytes());
        assert_eq!(loader(&many), Loader::Unknown);
        let mut name = elf(&[3]);
        name[64 + 8..64 + 16].copy_from_slice(&u64::MAX.to_le_bytes());
        name[64 + 32..64 + 40].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(loader(&name), Loader::Unknown);
        for length in 0..64 {
            assert_eq!(loader(&elf(&[1])[..length]), Loader::Unknown, "{length}");
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
