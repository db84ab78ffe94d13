//! A configuration file, checked with all that this program knows: the form of it, the files that it
//! names, and the device strings as the binding reads them.

use std::path::{Path, PathBuf};

use control::config::Reach;
use control::{Config, ConfigError};
use dpdk::Device;

/// Reads and checks a configuration file, on a thread where that may take its time.
///
/// Errors: everything that is wrong.
pub(super) async fn load_elsewhere(
    path: PathBuf,
    reach: Reach,
) -> Result<Config, Vec<ConfigError>> {
    let file = path.clone();
    let loaded = tokio::task::spawn_blocking(move || load(&file, reach)).await;
    loaded.unwrap_or_else(|error| Err(vec![unread(path, &error.to_string())]))
}

fn unread(file: PathBuf, problem: &str) -> ConfigError {
    let remedy = "try again".to_owned();
    ConfigError { file, line: 0, key: String::new(), problem: problem.to_owned(), remedy }
}

/// Reads and checks a configuration file. Nothing is opened.
///
/// Errors: everything that is wrong.
pub(crate) fn load(path: &Path, reach: Reach) -> Result<Config, Vec<ConfigError>> {
    let (config, text) = Config::load(path, reach)?;
    let errors = wrong_devices(&config, path, &text);
    if errors.is_empty() { Ok(config) } else { Err(errors) }
}

fn wrong_devices(config: &Config, path: &Path, text: &str) -> Vec<ConfigError> {
    let ports = config.ports.iter();
    let wrong = ports.filter_map(|port| {
        let device = port.device.as_str();
        let error = device.parse::<Device>().err()?;
        // The model keeps no lines; a device is in a file once.
        let line = text.lines().position(|line| line.contains(device)).map_or(0, |at| at + 1);
        Some(ConfigError {
            file: path.to_owned(),
            line,
            key: format!("port.{}.device", port.name),
            problem: error.to_string(),
            remedy: "see '[[port]]' in docs/forward.md".to_owned(),
        })
    });
    wrong.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn what_the_binding_cannot_read_is_found_before_anything_is_opened() {
        let text = "[[port]]\nname = \"a\"\ndevice = \"pci:81:00.0\"\n\
                    [[port]]\nname = \"b\"\ndevice = \"null,speed=9\"\n\
                    [[port]]\nname = \"c\"\ndevice = \"null\"\n";
        let errors = wrong_devices(&testing::config(text), Path::new("m.toml"), text);
        let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(shown.len(), 2, "{shown:?}");
        assert!(shown[0].starts_with("m.toml:3: port.a.device: pci device `81:00.0`: it must be"));
        assert!(
            shown[1].starts_with("m.toml:6: port.b.device: a null device has no option `speed`")
        );
    }
}
