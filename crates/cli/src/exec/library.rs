//! Where the library is that takes a program's socket calls.

use std::path::{Path, PathBuf};

use crate::failure::Failure;

const LIBRARY: &str = "libmillrace_preload.so";
/// Where a distribution's package puts it.
const SYSTEM: &str = "/usr/lib/millrace";

/// The library named, or the first found. The loader splits names at blanks and colons: none may be in its path.
pub(super) fn find(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let own = std::env::current_exe().unwrap_or_default();
    let library = match named {
        Some(path) => path.canonicalize().map_err(|error| Failure::file(path, error))?,
        None => {
            let near = near(&own);
            let found = near.iter().map(|folder| folder.join(LIBRARY)).find(|path| path.is_file());
            found.ok_or_else(|| Failure::NoLibrary(near))?
        }
    };
    let text = library.to_string_lossy();
    if text.contains([' ', ':']) {
        return Err(Failure::Usage(format!(
            "the loader takes no library whose path has blanks or colons, as '{text}' has: copy it elsewhere and name it with --library"
        )));
    }
    Ok(library)
}

/// Folders to look in, seen from this program.
fn near(own: &Path) -> Vec<PathBuf> {
    let folder = own.parent().map(Path::to_owned);
    let prefix = own.parent().and_then(Path::parent);
    let below = |name: &str| prefix.map(|prefix| prefix.join(name));
    [folder, below("lib/millrace"), below("lib"), Some(SYSTEM.into())]
        .into_iter()
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_near() {
        let near = near(Path::new("/usr/local/bin/millrace"));
        let wanted =
            ["/usr/local/bin", "/usr/local/lib/millrace", "/usr/local/lib", "/usr/lib/millrace"];
        assert!(near.iter().map(|path| path.to_str().unwrap()).eq(wanted), "{near:?}");
    }

    #[test]
    fn a_path_that_the_loader_would_split_is_refused() {
        let folder = tempfile::Builder::new().prefix("with blank ").tempdir().unwrap();
        let library = folder.path().join(LIBRARY);
        std::fs::write(&library, "").unwrap();
        let failure = find(Some(&library)).unwrap_err();
        assert!(failure.to_string().contains("--library"), "{failure}");
    }
}
