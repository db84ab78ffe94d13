//! Device strings: `KIND:ARGUMENT[,option=value]`.

use std::fmt;
use std::str::FromStr;

use crate::net::shortened;
use crate::text::as_text;

/// Every kind of device, with the form of its argument.
pub const DEVICE_KINDS: [(&str, &str); 9] = [
    ("pci", "pci:0000:81:00.0"),
    ("afxdp", "afxdp:eth1"),
    ("afpacket", "afpacket:eth1"),
    ("tap", "tap:NAME"),
    ("memif", "memif:/run/PATH.sock"),
    ("vhost-user", "vhost-user:/run/PATH.sock"),
    ("virtio-user", "virtio-user:/run/PATH.sock"),
    ("pcap", "pcap:FILE"),
    ("null", "null"),
];

/// Longest device string: bytes.
const LONGEST: usize = 512;

/// Longest name of a kernel interface: bytes (IFNAMSIZ less its zero).
const INTERFACE_NAME: usize = 15;

/// A device string of known form. What options a kind has is known to the binding that opens it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Device(String);

impl Device {
    /// The device that is always there.
    pub(super) fn null() -> Self {
        Self("null".to_owned())
    }

    /// The string as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The kind: a word of [`DEVICE_KINDS`].
    #[must_use]
    pub fn kind(&self) -> &str {
        self.0.split([':', ',']).next().unwrap_or_default()
    }

    /// What stands between kind and options.
    #[must_use]
    pub fn argument(&self) -> &str {
        let head = self.0.split(',').next().unwrap_or_default();
        head.split_once(':').map_or("", |(_, argument)| argument)
    }
}

/// A device string is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// No such kind.
    #[error("'{0}' is no kind of device; use one of {kinds}", kinds = kinds())]
    Kind(String),
    /// Nothing stands behind the kind.
    #[error("'{kind}' needs an argument; write it as in {form}")]
    Argument {
        /// The kind.
        kind: &'static str,
        /// An example.
        form: &'static str,
    },
    /// A kernel interface's name is too long.
    #[error("'{0}' is no name of a kernel interface; use at most 15 bytes without '/' and blanks")]
    InterfaceName(String),
    /// An option is not NAME=VALUE.
    #[error("option '{0}' is not NAME=VALUE; write it as in afxdp:eth1,queues=2")]
    Option(String),
    /// Control characters or too long.
    #[error("a device is at most 512 printable characters; shorten it")]
    Text,
}

fn kinds() -> String {
    DEVICE_KINDS.map(|(kind, _)| kind).join(", ")
}

impl FromStr for Device {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<Self, DeviceError> {
        if text.len() > LONGEST || text.chars().any(char::is_control) {
            return Err(DeviceError::Text);
        }
        let device = Self(text.to_owned());
        let Some((kind, form)) = DEVICE_KINDS.iter().find(|(kind, _)| *kind == device.kind())
        else {
            return Err(DeviceError::Kind(shortened(device.kind())));
        };
        let argument = device.argument();
        if argument.is_empty() && *kind != "null" {
            return Err(DeviceError::Argument { kind, form });
        }
        let of_kernel = matches!(*kind, "afxdp" | "afpacket" | "tap");
        let bad = |c: char| c == '/' || c.is_whitespace();
        if of_kernel && (argument.len() > INTERFACE_NAME || argument.contains(bad)) {
            return Err(DeviceError::InterfaceName(shortened(argument)));
        }
        for option in text.split(',').skip(1) {
            match option.split_once('=') {
                Some((name, value)) if !name.is_empty() && !value.is_empty() => {}
                _ => return Err(DeviceError::Option(shortened(option))),
            }
        }
        Ok(device)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

as_text!(Device, "Device", "Device: KIND:ARGUMENT[,option=value]", "afpacket:eth1");
