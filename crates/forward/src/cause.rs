//! Why a worker hands a packet to the control thread.

/// Number in [`graph::Punt::cause`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Cause {
    /// A valid ARP packet.
    Arp = 1,
    /// A neighbour discovery message.
    Nd = 2,
    /// The MAC address of its next hop (`next_hop`) is not known.
    Unresolved = 3,
    /// Its destination is itself a neighbour, not known yet, behind the interface of the connected
    /// network's `next_hop`.
    Glean = 4,
    /// It opens a connection to a listener that nobody serves at the moment, and somebody may.
    Early = 5,
}

/// A number that is no cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is no cause for a punt: causes are 1 to 5")]
pub struct CauseError(pub u16);

impl TryFrom<u16> for Cause {
    type Error = CauseError;

    fn try_from(number: u16) -> Result<Self, CauseError> {
        match number {
            1 => Ok(Self::Arp),
            2 => Ok(Self::Nd),
            3 => Ok(Self::Unresolved),
            4 => Ok(Self::Glean),
            5 => Ok(Self::Early),
            other => Err(CauseError(other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_survives_its_number() {
        for cause in [Cause::Arp, Cause::Nd, Cause::Unresolved, Cause::Glean, Cause::Early] {
            assert_eq!(Cause::try_from(cause as u16), Ok(cause));
        }
        assert_eq!(Cause::try_from(0), Err(CauseError(0)));
        assert_eq!(Cause::try_from(6), Err(CauseError(6)));
    }
}
