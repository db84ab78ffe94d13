//! A configuration file, checked with all that this program knows: the form of it, the files that it
//! names, and the device strings as the binding reads them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use control::config::Reach;
use control::{Config, ConfigError};
use dpdk::Device;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// How long the disk or the file system of a file may take before it goes on. Who reads it is not waited for any longer then.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Reads and checks a configuration file, on a thread where that may take its time.
///
/// Errors: everything that is wrong, or which file does not go on.
pub(super) async fn load_elsewhere(
    path: PathBuf,
    reach: Reach,
) -> Result<Config, Vec<ConfigError>> {
    let file = path.clone();
    in_time(path, PATIENCE, move |told| load_told(&file, reach, told)).await
}

/// Reads files on a thread where that may take its time. `read`: says again and again which one it reads.
///
/// Errors: those of `read`, or which file it has been silent about for longer than `patience`.
async fn in_time<R: Send + 'static>(
    file: PathBuf,
    patience: Duration,
    read: impl FnOnce(&mut dyn FnMut(&Path)) -> Result<R, Vec<ConfigError>> + Send + 'static,
) -> Result<R, Vec<ConfigError>> {
    let (tell, mut told) = watch::channel(file.clone());
    let mut tell = move |file: &Path| drop(tell.send_replace(file.to_owned()));
    let reading = spawn_blocking(move || read(&mut tell));
    loop {
        match timeout(patience, told.changed()).await {
            Ok(Ok(())) => {}
            // It has ended.
            Ok(Err(_)) => break,
            Err(_) => return Err(vec![late(&told.borrow())]),
        }
    }
    reading.await.unwrap_or_else(|error| Err(vec![unread(&file, &error.to_string())]))
}

/// What is wrong with a file that has not gone on for longer than [`PATIENCE`].
pub(super) fn late(file: &Path) -> ConfigError {
    let seconds = PATIENCE.as_secs();
    let problem = format!("cannot be read: its file system has not answered for {seconds} s");
    unread(file, &problem)
}

fn unread(file: &Path, problem: &str) -> ConfigError {
    let (file, problem) = (file.to_owned(), problem.to_owned());
    ConfigError { file, line: 0, key: String::new(), problem, remedy: "try again".to_owned() }
}

/// Reads and checks a configuration file. Nothing is opened.
///
/// Errors: everything that is wrong.
pub(crate) fn load(path: &Path, reach: Reach) -> Result<Config, Vec<ConfigError>> {
    load_told(path, reach, &mut |_| {})
}

/// The same. `told`: as of [`Config::load_told`].
fn load_told(
    path: &Path,
    reach: Reach,
    told: &mut dyn FnMut(&Path),
) -> Result<Config, Vec<ConfigError>> {
    let (config, text) = Config::load_told(path, reach, told)?;
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

    use std::sync::mpsc;
    use std::thread::sleep;

    use crate::testing;

    const SHORT: Duration = Duration::from_millis(500);

    #[tokio::test]
    async fn the_file_that_does_not_go_on_is_named() {
        let (go_on, waits) = mpsc::channel::<()>();
        let read = move |told: &mut dyn FnMut(&Path)| {
            told(Path::new("quick"));
            told(Path::new("/mnt/slow"));
            let _ = waits.recv();
            Ok(())
        };
        let errors = in_time(PathBuf::from("m.toml"), SHORT, read).await.unwrap_err();
        let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(shown.len(), 1, "{shown:?}");
        assert!(shown[0].starts_with("/mnt/slow: cannot be read: "), "{shown:?}");
        drop(go_on);
    }

    #[tokio::test]
    async fn a_file_that_goes_on_may_take_its_time() {
        let read = |told: &mut dyn FnMut(&Path)| {
            for _ in 0..60 {
                sleep(SHORT / 50);
                told(Path::new("long"));
            }
            Ok(7)
        };
        assert_eq!(in_time(PathBuf::from("m.toml"), SHORT, read).await.unwrap(), 7);
    }

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
