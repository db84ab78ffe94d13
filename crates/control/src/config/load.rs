//! Loads a configuration from a file, together with the files that it names.

use std::path::Path;

use super::read::{LONGEST, MOST_ERRORS, read};
use super::{Config, ConfigError, FlowFile, Reach, Route, RouteFile};
use crate::cores;

/// Entries of a file between two signs that it is being read.
const SIGN: usize = 2_048;

impl Config {
    /// Reads a configuration's text. `file` names it in errors, and relative paths start from its
    /// folder. The files that it names are not opened.
    ///
    /// # Errors
    /// Everything that is wrong, in the order of lines: at most 100 errors.
    pub fn parse(text: &str, file: &Path) -> Result<Self, Vec<ConfigError>> {
        Self::parse_for(text, file, &cores::allowed())
    }

    /// As [`Config::parse`], for a machine on which the process may use the `allowed` cores.
    ///
    /// # Errors
    /// As [`Config::parse`].
    pub fn parse_for(text: &str, file: &Path, allowed: &[u16]) -> Result<Self, Vec<ConfigError>> {
        read(text, file, allowed)
    }

    /// Reads a configuration from a file, and every file of routes and flows that it names: the
    /// latter only to check them, so that what they hold takes no memory here. Open them again
    /// with [`RouteFile`] and [`FlowFile`] to use it. Gives its text, too.
    ///
    /// # Errors
    /// Everything that is wrong: at most 100 errors.
    pub fn load(path: &Path, reach: Reach) -> Result<(Self, String), Vec<ConfigError>> {
        Self::load_told(path, reach, &mut |_| {})
    }

    /// As [`Config::load`]. `told`: gets the name of each file before it is opened, and again while its entries are read, so that
    /// whoever waits knows which file does not go on.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn load_told(
        path: &Path,
        reach: Reach,
        told: &mut dyn FnMut(&Path),
    ) -> Result<(Self, String), Vec<ConfigError>> {
        told(path);
        let text = reach.read(path, LONGEST).map_err(|error| vec![error])?;
        let config = Self { reach, ..Self::parse(&text, path)? };
        let errors = config.check_files(told);
        if errors.is_empty() { Ok((config, text)) } else { Err(errors) }
    }

    /// Reads every file of routes and flows that the configuration names, and checks each line
    /// against its interfaces and limits. Returns what is wrong: at most 100 errors.
    fn check_files(&self, told: &mut dyn FnMut(&Path)) -> Vec<ConfigError> {
        let mut errors = Vec::new();
        let v6 = |route: &&Route| route.prefix.address().is_ipv6();
        let six = self.static_routes.iter().filter(v6).count();
        let mut routes = Room {
            counts: [self.static_routes.len() - six, six],
            most: [self.limits.routes4, self.limits.routes6],
            keys: ["limits.routes4", "limits.routes6"],
        };
        for path in &self.routes.files {
            self.check_routes(&mut Signs::begin(path, told), &mut routes, &mut errors);
        }
        let mut flows = Room {
            counts: [0; 2],
            most: [self.limits.flows4, self.limits.flows6],
            keys: ["limits.flows4", "limits.flows6"],
        };
        for path in &self.flows.files {
            self.check_flows(&mut Signs::begin(path, told), &mut flows, &mut errors);
        }
        errors
    }

    fn check_routes(&self, signs: &mut Signs<'_>, room: &mut Room, errors: &mut Vec<ConfigError>) {
        let mut file = match RouteFile::within(signs.path, &self.reach) {
            Ok(file) => file,
            Err(error) => return errors.push(error),
        };
        while let Some(route) = file.next().filter(|_| errors.len() < MOST_ERRORS) {
            signs.entry();
            let checked = route.and_then(|route| {
                let full = room.take(route.prefix.address().is_ipv6());
                full.map_err(|error| file.wrong("line", &error))?;
                let fits = self.check_route(&route);
                fits.map_err(|error| file.wrong(error.key(&route), &error))
            });
            errors.extend(checked.err());
        }
    }

    fn check_flows(&self, signs: &mut Signs<'_>, room: &mut Room, errors: &mut Vec<ConfigError>) {
        let mut file = match FlowFile::within(signs.path, &self.reach) {
            Ok(file) => file,
            Err(error) => return errors.push(error),
        };
        while let Some(flow) = file.next().filter(|_| errors.len() < MOST_ERRORS) {
            signs.entry();
            let checked = flow.and_then(|flow| {
                self.check_flow(&flow).map_err(|error| file.wrong(error.key(), &error))?;
                let full = room.take(flow.source.is_ipv6());
                full.map_err(|error| file.wrong("line", &error))
            });
            errors.extend(checked.err());
        }
    }
}

/// Says that a file is being read.
struct Signs<'a> {
    path: &'a Path,
    told: &'a mut dyn FnMut(&Path),
    entries: usize,
}

impl<'a> Signs<'a> {
    /// A file is about to be opened.
    fn begin(path: &'a Path, told: &'a mut dyn FnMut(&Path)) -> Self {
        told(path);
        Self { path, told, entries: 0 }
    }

    /// It had one entry more.
    fn entry(&mut self) {
        self.entries += 1;
        if self.entries % SIGN == 0 {
            (self.told)(self.path);
        }
    }
}

/// A table is full.
#[derive(Debug, thiserror::Error)]
#[error("is beyond the {most} of {key}; raise the limit, or remove lines")]
struct Full {
    most: u32,
    key: &'static str,
}

/// How full the tables of both families are.
struct Room {
    counts: [usize; 2],
    most: [u32; 2],
    keys: [&'static str; 2],
}

impl Room {
    /// Counts one entry more; complains about the first that does not fit.
    fn take(&mut self, v6: bool) -> Result<(), Full> {
        let [first, second] = &mut self.counts;
        let count = if v6 { second } else { first };
        *count += 1;
        let most = self.most[usize::from(v6)];
        let over = *count == (most as usize).saturating_add(1);
        if over { Err(Full { most, key: self.keys[usize::from(v6)] }) } else { Ok(()) }
    }
}
