//! Checks of what DPDK itself reports badly.

use std::path::Path;

use super::interface::{INTERFACE_NAME, interface_index, interfaces};
use super::{Device, DeviceError, DeviceKind};

/// Longest socket path: `sun_path` has 108 bytes, one of them the NUL.
const SOCKET_PATH: usize = 107;

/// The argument's form.
pub(super) fn argument(device: &Device) -> Result<(), DeviceError> {
    let text = device.argument.as_str();
    let problem = match device.kind {
        DeviceKind::Null if text.is_empty() => return Ok(()),
        DeviceKind::Null => "it takes no argument",
        _ if text.is_empty() => "the argument is missing",
        _ if !text.bytes().all(|byte| byte.is_ascii_graphic()) => {
            "spaces and non-ASCII characters are not possible"
        }
        _ if text.contains(['[', ']', '"', '\'', '=']) => {
            "quotes, brackets and `=` are not possible"
        }
        DeviceKind::Pci if !is_pci_address(text) => "it must be a PCI address",
        DeviceKind::AfXdp | DeviceKind::AfPacket | DeviceKind::Tap
            if text.len() > INTERFACE_NAME || text.contains('/') || text == "." || text == ".." =>
        {
            "an interface name has at most 15 characters and no `/`"
        }
        DeviceKind::Memif | DeviceKind::VhostUser | DeviceKind::VirtioUser
            if text.len() > SOCKET_PATH =>
        {
            "a socket's path has at most 107 characters"
        }
        _ => return Ok(()),
    };
    Err(DeviceError::Argument { kind: device.kind, argument: text.to_owned(), problem })
}

/// `DDDD:BB:DD.F`.
fn is_pci_address(text: &str) -> bool {
    let hex = |part: &str, length| {
        part.len() == length && part.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let mut parts = text.split([':', '.']);
    let fields = [4, 2, 2, 1].map(|length| parts.next().is_some_and(|part| hex(part, length)));
    fields == [true; 4]
        && parts.next().is_none()
        && text.as_bytes().get(7) == Some(&b':')
        && text.as_bytes().get(10) == Some(&b'.')
}

impl Device {
    /// Checks that what the device needs of the system is there now: the interface, the file, the
    /// socket's directory.
    ///
    /// # Errors
    /// [`DeviceError::NoInterface`] or [`DeviceError::Path`].
    pub fn check(&self) -> Result<(), DeviceError> {
        match self.kind {
            DeviceKind::AfXdp | DeviceKind::AfPacket => self.check_interface(),
            DeviceKind::Pcap => {
                let file = std::fs::File::open(&self.argument);
                file.map_err(|error| self.path_error(&self.argument, &error))?;
                self.option("out").map_or(Ok(()), |out| self.check_directory(out))
            }
            DeviceKind::Memif | DeviceKind::VhostUser if !self.argument.starts_with('@') => {
                self.check_directory(&self.argument)
            }
            // As a client, virtio-user needs the other side's socket.
            DeviceKind::VirtioUser if self.option("server") != Some("1") => {
                let path = std::fs::metadata(&self.argument);
                path.map(drop).map_err(|error| self.path_error(&self.argument, &error))
            }
            DeviceKind::VirtioUser => self.check_directory(&self.argument),
            _ => Ok(()),
        }
    }

    fn check_interface(&self) -> Result<(), DeviceError> {
        if interface_index(&self.argument).is_some() {
            return Ok(());
        }
        Err(DeviceError::NoInterface {
            kind: self.kind,
            interface: self.argument.clone(),
            present: interfaces().join(", "),
        })
    }

    fn check_directory(&self, file: &str) -> Result<(), DeviceError> {
        let parent = match Path::new(file).parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let directory = std::fs::metadata(parent)
            .map_err(|error| self.path_error(&parent.to_string_lossy(), &error))?;
        if directory.is_dir() {
            return Ok(());
        }
        Err(DeviceError::Path {
            kind: self.kind,
            path: parent.to_string_lossy().into_owned(),
            reason: "not a directory".to_owned(),
        })
    }

    fn path_error(&self, path: &str, error: &std::io::Error) -> DeviceError {
        DeviceError::Path { kind: self.kind, path: path.to_owned(), reason: error.to_string() }
    }
}
