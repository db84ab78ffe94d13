//! Device strings: `KIND:ARGUMENT[,option=value...]`.

mod check;
mod error;
mod interface;
mod kind;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

pub use error::DeviceError;
pub use kind::DeviceKind;

pub(crate) use interface::{combined_queues, interface_flags, interface_index};
use kind::Takes;

/// A device that a port can be opened on, checked for form only.
///
/// Parse it from a string such as `afxdp:eth1` or `memif:/run/a.sock,role=client,id=0`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Device {
    kind: DeviceKind,
    argument: String,
    options: Vec<(String, String)>,
}

impl Device {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> DeviceKind {
        self.kind
    }

    /// What stands behind the kind: a PCI address, interface, socket path or file.
    #[must_use]
    pub fn argument(&self) -> &str {
        &self.argument
    }

    /// The kernel's network interface that the device uses or makes, for `afxdp`, `afpacket` and
    /// `tap`.
    #[must_use]
    pub fn interface(&self) -> Option<&str> {
        match self.kind {
            DeviceKind::AfXdp | DeviceKind::AfPacket | DeviceKind::Tap => Some(&self.argument),
            _ => None,
        }
    }

    /// An option's value.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The PCI address with the driver's options, as EAL's `-a` takes it.
    pub(crate) fn allow(&self) -> String {
        let mut text = self.argument.clone();
        for (key, value) in &self.options {
            text.push_str(&format!(",{key}={value}"));
        }
        text
    }

    /// The driver's arguments for a virtual device with `queues` queue pairs, `ring` packets in
    /// each, of `mtu` bytes where that is wanted.
    pub(crate) fn arguments(&self, queues: u16, ring: u16, mtu: Option<u16>) -> String {
        let spec = self.kind.spec();
        let mut list: Vec<(&str, String)> = Vec::new();
        if let Some(key) = spec.argument_key {
            list.push((key, self.argument.clone()));
        }
        for (key, value) in &self.options {
            let known = spec.options.iter().find(|option| option.name == *key);
            list.push((known.map_or(key.as_str(), |option| option.key), value.clone()));
        }
        let mut default = |key: &'static str, value: String| {
            if !list.iter().any(|(given, _)| *given == key) {
                list.push((key, value));
            }
        };
        if let Some(key) = spec.queues_key {
            default(key, queues.to_string());
        }
        match self.kind {
            // Preferred busy polling was 4x slower on veth than plain wake-ups.
            DeviceKind::AfXdp => default("busy_budget", "0".to_owned()),
            DeviceKind::AfPacket => {
                // A frame holds the packet, with its headers, after some 90 bytes of the kernel's own.
                let needed = u32::from(mtu.unwrap_or(1500)) + 128 + 32;
                let frame = needed.next_multiple_of(512).max(2048);
                default("framesz", frame.to_string());
                // Whole pages without a gap: the driver takes all frames for one array.
                let frames = if frame == 2048 { 2 } else { 8 };
                default("blocksz", (frames * frame).to_string());
                default("framecnt", ring.clamp(64, 4096).next_power_of_two().to_string());
            }
            DeviceKind::Memif => default("socket-abstract", "no".to_owned()),
            _ => {}
        }
        let list = list.iter().map(|(key, value)| format!("{key}={value}"));
        list.collect::<Vec<_>>().join(",")
    }

    /// Whether the driver has a descriptor to wait on for packets.
    pub(crate) fn has_interrupts(&self) -> bool {
        matches!(
            self.kind,
            DeviceKind::Pci | DeviceKind::Tap | DeviceKind::VhostUser | DeviceKind::VirtioUser
        )
    }
}

impl FromStr for Device {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<Self, DeviceError> {
        let (kind, rest) = match text.split_once(':') {
            Some((kind, rest)) => (kind, rest),
            // `null` and `null,size=64` have no argument.
            None => text.split_at(text.find(',').unwrap_or(text.len())),
        };
        let kind = DeviceKind::ALL
            .iter()
            .copied()
            .find(|known| known.name() == kind)
            .ok_or_else(|| DeviceError::UnknownKind { text: text.to_owned() })?;
        let mut parts = rest.split(',');
        let argument = parts.next().unwrap_or_default().to_owned();
        let mut device = Self { kind, argument, options: Vec::new() };
        check::argument(&device)?;
        for part in parts {
            device.add(part)?;
        }
        Ok(device)
    }
}

impl Device {
    fn add(&mut self, part: &str) -> Result<(), DeviceError> {
        let spec = self.kind.spec();
        let (key, value) = part
            .split_once('=')
            .ok_or_else(|| DeviceError::NotAnOption { kind: self.kind, text: part.to_owned() })?;
        let wrong = |takes: String| DeviceError::OptionValue {
            kind: self.kind,
            option: key.to_owned(),
            value: value.to_owned(),
            takes,
        };
        if self.option(key).is_some() {
            return Err(DeviceError::OptionTwice { kind: self.kind, option: key.to_owned() });
        }
        let takes = match spec.options.iter().find(|option| option.name == key) {
            Some(option) => option.takes,
            // A PCI driver has options of its own, which only it knows.
            None if self.kind == DeviceKind::Pci && !key.is_empty() => Takes::Text,
            None => {
                return Err(DeviceError::UnknownOption { kind: self.kind, option: key.to_owned() });
            }
        };
        if !takes.allows(value) {
            return Err(wrong(takes.words()));
        }
        self.options.push((key.to_owned(), value.to_owned()));
        Ok(())
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        if !self.argument.is_empty() {
            write!(f, ":{}", self.argument)?;
        }
        self.options.iter().try_for_each(|(key, value)| write!(f, ",{key}={value}"))
    }
}
