//! Configurations for tests.

use std::path::Path;

use control::Config;

/// The configuration of a text, on a machine with cores 0 and 1.
pub(crate) fn config(text: &str) -> Config {
    Config::parse_for(text, Path::new("test.toml"), &[0, 1]).unwrap()
}
