//! VLAN tags (IEEE 802.1Q): the four bytes behind a tag's EtherType, 0x8100 or 0x88a8.

use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::ethernet::EtherType;

/// Bytes that one tag adds to a frame.
pub const TAG_LENGTH: usize = 4;

/// A VLAN id that a frame can belong to: 1 to 4094 (0 is no VLAN, 4095 is reserved).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VlanId(u16);

/// A number that is no VLAN id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is no VLAN id: use 1 to 4094")]
pub struct VlanIdError(pub u16);

impl VlanId {
    /// Errors: `VlanIdError` outside 1 to 4094.
    pub const fn new(id: u16) -> Result<Self, VlanIdError> {
        if id == 0 || id > 4094 { Err(VlanIdError(id)) } else { Ok(Self(id)) }
    }

    /// The number.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// Why a tag is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The frame ends inside the tag.
    #[error("the frame ends inside its VLAN tag")]
    Truncated,
}

/// Tag control information, and the type of what follows the tag.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Tag {
    control: U16,
    ether_type: U16,
}

impl Tag {
    /// A tag of the low 3 bits of `priority`, drop eligibility, and the low 12 bits of `id`.
    #[must_use]
    pub fn new(priority: u8, drop_eligible: bool, id: u16, ether_type: EtherType) -> Self {
        let control =
            u16::from(priority & 7) << 13 | u16::from(drop_eligible) << 12 | (id & 0x0fff);
        Self { control: U16::new(control), ether_type: U16::new(ether_type.0) }
    }

    /// The tag and the bytes behind it. Errors: `Truncated`.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<(&Self, &[u8]), Malformed> {
        Self::ref_from_prefix(bytes).map_err(|_| Malformed::Truncated)
    }

    /// The 12-bit VLAN id; 0: the tag carries a priority only.
    #[inline]
    #[must_use]
    pub fn id(&self) -> u16 {
        self.control.get() & 0x0fff
    }

    /// Priority code point, 0 to 7.
    #[inline]
    #[must_use]
    pub fn priority(&self) -> u8 {
        (self.control.get() >> 13) as u8
    }

    /// Drop eligible indicator.
    #[inline]
    #[must_use]
    pub fn drop_eligible(&self) -> bool {
        self.control.get() & 0x1000 != 0
    }

    /// The type of what follows.
    #[inline]
    #[must_use]
    pub fn ether_type(&self) -> EtherType {
        EtherType(self.ether_type.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_a_known_tag() {
        let (tag, rest) = Tag::parse(&[0xb0, 0x64, 0x08, 0x00, 0x45]).unwrap();
        assert_eq!((tag.id(), tag.priority(), tag.drop_eligible()), (100, 5, true));
        assert_eq!(tag.ether_type(), EtherType::IPV4);
        assert_eq!(rest, [0x45]);
        assert_eq!(Tag::parse(&[0xb0, 0x64, 0x08]), Err(Malformed::Truncated));
    }

    #[test]
    fn checks_ids() {
        assert_eq!(VlanId::new(0), Err(VlanIdError(0)));
        assert_eq!(VlanId::new(4095), Err(VlanIdError(4095)));
        assert_eq!(VlanId::new(4094).map(VlanId::get), Ok(4094));
    }

    proptest! {
        #[test]
        fn tag_round_trips(priority in 0..8u8, drop: bool, id in 0..4096u16, kind: u16) {
            let tag = Tag::new(priority, drop, id, EtherType(kind));
            let (parsed, _) = Tag::parse(tag.as_bytes()).unwrap();
            prop_assert_eq!(
                (parsed.priority(), parsed.drop_eligible(), parsed.id(), parsed.ether_type().0),
                (priority, drop, id, kind)
            );
        }
    }
}
