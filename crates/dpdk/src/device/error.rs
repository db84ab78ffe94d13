//! What can be wrong with a device string or the thing that it names.

use super::DeviceKind;

/// Why a device string was refused, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// No such kind.
    #[error("`{text}` is no device; a device is one of {}", examples())]
    UnknownKind {
        /// The whole string.
        text: String,
    },
    /// The part behind the kind is missing or malformed.
    #[error("{kind} device `{argument}`: {problem}, as in `{}`", kind.example())]
    Argument {
        /// The kind.
        kind: DeviceKind,
        /// What was there.
        argument: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// An option without a value.
    #[error("{kind} device: `{text}` is no option: options are `name=value` with {}", kind.options())]
    NotAnOption {
        /// The kind.
        kind: DeviceKind,
        /// What was there.
        text: String,
    },
    /// An option that this kind does not have.
    #[error("a {kind} device has no option `{option}`; it has {}", kind.options())]
    UnknownOption {
        /// The kind.
        kind: DeviceKind,
        /// The option.
        option: String,
    },
    /// An option that was given before.
    #[error("{kind} device: option `{option}` is given twice")]
    OptionTwice {
        /// The kind.
        kind: DeviceKind,
        /// The option.
        option: String,
    },
    /// An option's value is out of range.
    #[error("{kind} device: option {option}=`{value}` must be {takes}")]
    OptionValue {
        /// The kind.
        kind: DeviceKind,
        /// The option.
        option: String,
        /// Its value.
        value: String,
        /// What it must be.
        takes: String,
    },
    /// The interface is not there.
    #[error("{kind} device: there is no network interface `{interface}` here; there are {present}")]
    NoInterface {
        /// The kind.
        kind: DeviceKind,
        /// The interface.
        interface: String,
        /// Those that exist.
        present: String,
    },
    /// A file, or the directory for a socket or an output file, is not there or not usable.
    #[error("{kind} device: `{path}`: {reason}")]
    Path {
        /// The kind.
        kind: DeviceKind,
        /// The file or directory.
        path: String,
        /// The system's words.
        reason: String,
    },
    /// `pci` devices are probed when DPDK starts, and this one was not named then.
    #[error(
        "pci device {address}: DPDK has no port there: is it bound to vfio-pci (`dpdk-devbind.py -s`), and was it in the configuration when the program started?"
    )]
    NoPciPort {
        /// The address.
        address: String,
    },
    /// A `pci` device that a port of this process has already.
    #[error(
        "pci device {address}: another port has it: remove that port, or give this one another device"
    )]
    InUse {
        /// The address.
        address: String,
    },
    /// Another device keeps DPDK's bus, which one can have at a time to be opened or closed.
    #[error(
        "device {device}: the driver of {holder} has kept DPDK's bus to itself for more than {seconds} s while that device is opened or closed; the kernel's log (dmesg) may say why"
    )]
    Waiting {
        /// The device that was to be opened.
        device: String,
        /// The other device.
        holder: String,
        /// How long.
        seconds: u64,
    },
    /// EAL has no such driver.
    #[error("{kind} device: the driver {} is not installed; it is in the package `librte-net-{}` or `dpdk` of the distribution", kind.driver(), kind.driver().trim_start_matches("net_").replace('_', "-"))]
    NoDriver {
        /// The kind.
        kind: DeviceKind,
    },
    /// The driver refused.
    #[error("{kind} device `{argument}`: the driver {} refused it: {reason}", kind.driver())]
    Driver {
        /// The kind.
        kind: DeviceKind,
        /// What was there.
        argument: String,
        /// The error's words.
        reason: String,
    },
}

fn examples() -> String {
    let list = DeviceKind::ALL.iter();
    list.map(|kind| format!("`{}`", kind.example())).collect::<Vec<_>>().join(", ")
}
