//! A shared object that was loaded.

use std::ffi::CString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use function::{Table, VERSION};
use libloading::Library;

use crate::instance::{Functions, Instance};

/// Room for a refusal's words: bytes.
const WORDS: usize = 256;
/// Who else than the owner may write: group and all.
const WRITABLE: u32 = 0o022;

/// Why there is no function.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The system has no such file, or it is no shared object.
    #[error("{path}: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's words.
        reason: String,
    },
    /// Others than root could change what the daemon is to run.
    #[error(
        "{0}: it, or the folder that it is in, belongs to somebody else than root and the daemon's user, or \
         others may write to it: what runs within the daemon must be root's (chown root, chmod go-w)"
    )]
    Owner(PathBuf),
    /// It exports no function.
    #[error("{0}: exports no millrace_function: see millrace_function.h")]
    NoFunction(PathBuf),
    /// It was made for another interface.
    #[error(
        "{path}: made for version {theirs} of millrace_function.h, this daemon has version {VERSION}: build it anew"
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        theirs: u32,
    },
    /// It does not want to.
    #[error("{path}: refuses: {words}")]
    Refused {
        /// The file.
        path: PathBuf,
        /// Its words.
        words: String,
    },
    /// The argument has a zero byte.
    #[error("the argument has a zero byte")]
    Argument,
}

/// A shared object that was loaded; it stays so while there are instances.
#[derive(Debug, Clone)]
pub struct Object {
    path: PathBuf,
    library: Arc<Library>,
    functions: Functions,
}

impl Object {
    /// Loads a shared object, which runs its initialisers. It is trusted like this program: only who could
    /// change this program too, root and its own user, can have written it, which is checked.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        let file = |error: &dyn std::fmt::Display| LoadError::File {
            path: path.to_owned(),
            reason: error.to_string(),
        };
        let path = fs::canonicalize(path).map_err(|error| file(&error))?;
        // The loader waits for whoever writes to a FIFO, with a lock held that every other thread needs sooner or later.
        if !fs::metadata(&path).map_err(|error| file(&error))?.is_file() {
            return Err(file(&"no regular file"));
        }
        for place in [Some(path.as_path()), path.parent()].into_iter().flatten() {
            let found = fs::metadata(place).map_err(|error| file(&error))?;
            let own = rustix::process::geteuid().as_raw();
            if (found.uid() != 0 && found.uid() != own) || found.mode() & WRITABLE != 0 {
                return Err(LoadError::Owner(path.clone()));
            }
        }
        // SAFETY: the object is trusted to be what it says, its initialisers included: see above.
        let library = unsafe { Library::new(&path) }.map_err(|error| file(&error))?;
        type Entry = unsafe extern "C" fn() -> *const Table;
        // SAFETY: the symbol has this type in every version of the interface.
        let entry = unsafe { library.get::<Entry>(b"millrace_function\0") };
        let entry = entry.map_err(|_| LoadError::NoFunction(path.clone()))?;
        // SAFETY: as its type says; the table lives as long as the library.
        let table = unsafe { entry().as_ref() };
        let table = table.ok_or_else(|| LoadError::NoFunction(path.clone()))?;
        if table.version != VERSION {
            return Err(LoadError::Version { path, theirs: table.version });
        }
        let (Some(create), Some(process), Some(destroy)) =
            (table.create, table.process, table.destroy)
        else {
            return Err(LoadError::NoFunction(path));
        };
        let functions = Functions { create, process, destroy };
        Ok(Self { path, library: Arc::new(library), functions })
    }

    /// Makes an instance for one worker. `port`: the only port whose packets it sees; `None`: all.
    ///
    /// # Errors
    /// [`LoadError::Refused`] with its words.
    pub fn instance(
        &self,
        argument: &str,
        port: Option<graph::PortId>,
    ) -> Result<Instance, LoadError> {
        let argument = CString::new(argument).map_err(|_| LoadError::Argument)?;
        let mut words = [0_u8; WORDS];
        // SAFETY: the string ends with a zero, and there is room for so many bytes.
        let state = unsafe {
            (self.functions.create)(argument.as_ptr(), words.as_mut_ptr().cast(), WORDS as u32)
        };
        if state.is_null() {
            let end = words.iter().position(|byte| *byte == 0).unwrap_or(WORDS);
            let words = String::from_utf8_lossy(words.get(..end).unwrap_or_default());
            let words = words.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
            return Err(LoadError::Refused { path: self.path.clone(), words });
        }
        Ok(Instance::new(Arc::clone(&self.library), self.functions, state, port))
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::sync::mpsc::channel;
    use std::time::Duration;

    #[test]
    fn nobody_waits_for_a_fifo() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo.so");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        for path in [fifo, folder.path().to_owned()] {
            let (tell, told) = channel();
            std::thread::spawn(move || tell.send(Object::load(&path).map(drop)));
            let loaded = told.recv_timeout(Duration::from_secs(20)).unwrap();
            let words = loaded.unwrap_err().to_string();
            assert!(words.contains("no regular file"), "{words}");
        }
    }
}
