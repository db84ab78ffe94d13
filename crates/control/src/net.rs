//! Addresses as people write them: MAC addresses, prefixes, addresses with their prefix length.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use crate::text::as_text;

/// A text is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Not six hexadecimal bytes.
    #[error("'{0}' is not a MAC address; write six hexadecimal bytes, as in 02:00:00:00:00:01")]
    Mac(String),
    /// Not ADDRESS/LENGTH.
    #[error("'{0}' is not ADDRESS/LENGTH; write it as in 192.0.2.0/24 or 2001:db8::/32")]
    Form(String),
    /// The length is beyond the family's.
    #[error("'{text}' has a prefix length above {most}; use 0 to {most}")]
    Length {
        /// What was read.
        text: String,
        /// Bits of an address of that family.
        most: u8,
    },
    /// Bits behind the prefix length are set.
    #[error("'{text}' has bits set behind its prefix length; the network is {network}")]
    HostBits {
        /// What was read.
        text: String,
        /// The prefix that it lies in.
        network: Prefix,
    },
    /// A mask with a one behind a zero.
    #[error("'{0}' is not a mask of ones followed by zeros; write it as in 255.255.255.0")]
    Mask(String),
}

/// An Ethernet address: the one of `wire`, as a string in JSON and TOML.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MacAddr(wire::ethernet::MacAddr);

impl MacAddr {
    /// Of these bytes, first on the wire first.
    #[must_use]
    pub const fn new(octets: [u8; 6]) -> Self {
        Self(wire::ethernet::MacAddr::new(octets))
    }

    /// Whether a single station can have it: neither a group address nor zero.
    #[must_use]
    pub fn is_unicast(self) -> bool {
        self.0.is_unicast()
    }
}

impl From<MacAddr> for wire::ethernet::MacAddr {
    fn from(mac: MacAddr) -> Self {
        mac.0
    }
}

impl From<wire::ethernet::MacAddr> for MacAddr {
    fn from(mac: wire::ethernet::MacAddr) -> Self {
        Self(mac)
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for MacAddr {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        text.parse().map(Self).map_err(|_| AddressError::Mac(shortened(text)))
    }
}

as_text!(MacAddr, "MacAddr", "Ethernet address", "02:00:00:00:00:01");

/// A network: no bit is set behind the prefix length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

impl Prefix {
    /// The network of `length` bits that holds `address`; lengths beyond the family's are cut.
    #[must_use]
    pub fn of(address: IpAddr, length: u8) -> Self {
        let length = length.min(bits(address));
        let address = match address {
            IpAddr::V4(a) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
                IpAddr::V4((u32::from(a) & mask).into())
            }
            IpAddr::V6(a) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
                IpAddr::V6((u128::from(a) & mask).into())
            }
        };
        Self { address, length }
    }

    /// Of a network address and a mask such as 255.255.255.0.
    ///
    /// # Errors
    /// `Mask` when ones stand behind zeros or the families differ, `HostBits` when the address has
    /// bits outside the mask.
    pub fn with_mask(address: IpAddr, mask: IpAddr) -> Result<Self, AddressError> {
        let ones = match (address, mask) {
            (IpAddr::V4(_), IpAddr::V4(m)) => u32::from(m).leading_ones(),
            (IpAddr::V6(_), IpAddr::V6(m)) => u128::from(m).leading_ones(),
            _ => return Err(AddressError::Mask(mask.to_string())),
        };
        let length = u8::try_from(ones).unwrap_or(u8::MAX);
        let all = match mask {
            IpAddr::V4(_) => IpAddr::from([255; 4]),
            IpAddr::V6(_) => IpAddr::from([255; 16]),
        };
        if Self::of(all, length).address != mask {
            return Err(AddressError::Mask(mask.to_string()));
        }
        let network = Self::of(address, length);
        if network.address == address {
            Ok(network)
        } else {
            Err(AddressError::HostBits { text: address.to_string(), network })
        }
    }

    /// The network's address.
    #[must_use]
    pub const fn address(self) -> IpAddr {
        self.address
    }

    /// Its length: bits.
    #[must_use]
    pub const fn length(self) -> u8 {
        self.length
    }

    /// Whether `address` lies in it.
    #[must_use]
    pub fn contains(self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4()
            && Self::of(address, self.length).address == self.address
    }

    /// Whether the two have addresses in common.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        let wide = if self.length <= other.length { self } else { other };
        let narrow = if self.length <= other.length { other } else { self };
        wide.contains(narrow.address)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl FromStr for Prefix {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (address, length) = split(text)?;
        let network = Self::of(address, length);
        if network.address == address {
            Ok(network)
        } else {
            Err(AddressError::HostBits { text: text.to_owned(), network })
        }
    }
}

as_text!(Prefix, "Prefix", "Network: ADDRESS/LENGTH without host bits", "192.0.2.0/24");

/// An interface's own address with the prefix length of its network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InterfaceAddress {
    address: IpAddr,
    length: u8,
}

impl InterfaceAddress {
    /// The address.
    #[must_use]
    pub const fn address(self) -> IpAddr {
        self.address
    }

    /// Prefix length of its network: bits.
    #[must_use]
    pub const fn length(self) -> u8 {
        self.length
    }

    /// The network that it is on.
    #[must_use]
    pub fn network(self) -> Prefix {
        Prefix::of(self.address, self.length)
    }

    /// Whether an address stands for all hosts of that network: IPv4's first and last do (RFC 1122 3.2.1.3), unless there are
    /// no more (RFC 3021).
    #[must_use]
    pub fn has_broadcast(self, address: IpAddr) -> bool {
        let IpAddr::V4(asked) = address else { return false };
        let host = u32::MAX.checked_shr(u32::from(self.length)).unwrap_or(0);
        let part = u32::from(asked) & host;
        self.length < 31 && self.network().contains(address) && (part == 0 || part == host)
    }
}

impl fmt::Display for InterfaceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl FromStr for InterfaceAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (address, length) = split(text)?;
        Ok(Self { address, length })
    }
}

as_text!(
    InterfaceAddress,
    "InterfaceAddress",
    "Own address with the prefix length of its network",
    "192.0.2.1/24"
);

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// A text from outside, cut to what an error message should show.
pub(crate) fn shortened(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
    }
}

fn split(text: &str) -> Result<(IpAddr, u8), AddressError> {
    let form = || AddressError::Form(shortened(text));
    let (address, length) = text.split_once('/').ok_or_else(form)?;
    let address: IpAddr = address.parse().map_err(|_| form())?;
    if length.is_empty() || !length.bytes().all(|b| b.is_ascii_digit()) {
        return Err(form());
    }
    let most = bits(address);
    match length.parse() {
        Ok(length) if length <= most => Ok((address, length)),
        _ => Err(AddressError::Length { text: shortened(text), most }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_ones_then_zeros() {
        let of = |address: [u8; 4], mask: [u8; 4]| Prefix::with_mask(address.into(), mask.into());
        assert_eq!(of([10, 0, 0, 0], [255, 0, 0, 0]).unwrap().to_string(), "10.0.0.0/8");
        assert_eq!(of([0; 4], [0; 4]).unwrap().to_string(), "0.0.0.0/0");
        assert_eq!(of([1, 2, 3, 4], [255; 4]).unwrap().length(), 32);
        assert!(matches!(of([10, 0, 0, 0], [255, 0, 255, 0]), Err(AddressError::Mask(_))));
        assert!(matches!(of([10, 1, 0, 0], [255, 0, 0, 0]), Err(AddressError::HostBits { .. })));
        let v6 = Prefix::with_mask(IpAddr::from([0; 4]), IpAddr::from([0; 16]));
        assert!(v6.is_err());
    }

    #[test]
    fn networks_hold_and_overlap() {
        let net = |text: &str| text.parse::<Prefix>().unwrap();
        assert!(net("10.0.0.0/8").contains([10, 255, 0, 1].into()));
        assert!(!net("10.0.0.0/8").contains([11, 0, 0, 1].into()));
        assert!(!net("0.0.0.0/0").contains(IpAddr::from([0; 16])));
        assert!(net("10.0.0.0/8").overlaps(net("10.1.0.0/16")));
        assert!(net("10.1.0.0/16").overlaps(net("10.0.0.0/8")));
        assert!(!net("10.1.0.0/16").overlaps(net("10.2.0.0/16")));
        assert!(net("::/0").overlaps(net("2001:db8::/32")));
        assert!(!net("::/0").overlaps(net("0.0.0.0/0")));
    }

    #[test]
    fn a_network_has_two_addresses_that_are_no_hosts() {
        let own = |text: &str| text.parse::<InterfaceAddress>().unwrap();
        let ends = |text: &str, address: &str| own(text).has_broadcast(address.parse().unwrap());
        for address in ["192.0.2.64", "192.0.2.127"] {
            assert!(ends("192.0.2.70/26", address), "{address}");
            assert!(!ends("192.0.2.70/24", address), "{address}");
            assert!(!ends("192.0.2.1/26", address), "{address}");
        }
        assert!(!ends("192.0.2.64/31", "192.0.2.64") && !ends("192.0.2.64/32", "192.0.2.64"));
        assert!(!ends("2001:db8::1/64", "2001:db8::") && !ends("192.0.2.70/26", "2001:db8::"));
    }

    #[test]
    fn long_texts_are_cut() {
        let error = "x".repeat(1 << 20).parse::<Prefix>().unwrap_err();
        assert!(error.to_string().len() < 200);
        let mac: MacAddr = "02-00-00-00-00-0A".parse().unwrap();
        assert_eq!(mac.to_string(), "02:00:00:00:00:0a");
    }
}
