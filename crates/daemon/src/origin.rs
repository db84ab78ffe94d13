//! Where the configuration came from, and from where another may come.

use std::path::{Path, PathBuf};

use control::Config;
use control::config::Reach;

/// The file of the configuration in force.
pub(crate) struct Origin {
    path: PathBuf,
    /// What the command line has named.
    start: PathBuf,
    /// Where a configuration may lie that is named over the API: what only a start can change decides, not what came over
    /// the API.
    api: Reach,
}

impl Origin {
    /// Of what the command line has named.
    pub(crate) fn of_start(path: PathBuf, config: &Config) -> Self {
        let api = Reach::of_api(&path, config);
        Self { start: path.clone(), path, api }
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file that a start loads.
    pub(crate) fn of_next_start(&self) -> &Path {
        &self.start
    }

    /// What a reload opens and where that may lie; `named` is what the API says, `config` is in force.
    pub(crate) fn next(&self, named: Option<PathBuf>, config: &Config) -> (PathBuf, Reach) {
        match named.filter(|named| *named != self.path) {
            Some(named) => (named, self.api.clone()),
            None => (self.path.clone(), config.reach.clone()),
        }
    }

    /// Another file is in force.
    pub(crate) fn set(&mut self, path: PathBuf) {
        self.path = path;
    }
}
