//! How sockets share addresses and ports: Linux's `inet_csk_bind_conflict`.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// How a socket is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Binding {
    /// `SO_REUSEADDR`: beside sockets that say so too and do not listen, as those left of a server that
    /// was restarted.
    pub reuse_address: bool,
    /// `SO_REUSEPORT`: beside sockets of the same owner that say so too. Those that listen at one address
    /// are a group, which new connections are spread over.
    pub reuse_port: bool,
    /// How a group's connections are spread; what its first socket says counts.
    pub spread: Spread,
    /// `IPV6_V6ONLY`: `[::]` leaves IPv4 alone.
    pub v6_only: bool,
    /// Who binds, as a user id: `SO_REUSEPORT` lets in nobody else's.
    pub owner: u32,
}

/// Which socket of a group gets a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Spread {
    /// By a hash of addresses and ports, as Linux does.
    #[default]
    Hash,
    /// The one with the fewest connections, those that wait or shake hands included.
    Load,
}

/// A socket as far as its address goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim {
    /// Never a mapped address: see [`canonical`].
    pub(crate) address: SocketAddr,
    pub(crate) binding: Binding,
    pub(crate) listens: bool,
}

impl Claim {
    /// Whether both want the same packets (`inet_rcv_saddr_equal`); the ports are the same.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let (ours, theirs) = (self.address.ip(), other.address.ip());
        ours == theirs || self.covers(theirs) || other.covers(ours)
    }

    /// Whether it stands for any address of this one's version.
    pub(crate) fn covers(&self, other: IpAddr) -> bool {
        match self.address.ip() {
            IpAddr::V4(own) => own.is_unspecified() && other.is_ipv4(),
            IpAddr::V6(own) => own.is_unspecified() && (other.is_ipv6() || !self.binding.v6_only),
        }
    }

    /// Whether it cannot have its address beside the other.
    pub(crate) fn conflicts(&self, other: &Self) -> bool {
        let (ours, theirs) = (&self.binding, &other.binding);
        let restarts = ours.reuse_address && theirs.reuse_address && !other.listens;
        let group = ours.reuse_port && theirs.reuse_port && ours.owner == theirs.owner;
        self.overlaps(other) && !restarts && !group
    }
}

/// An IPv4 address for one that is mapped into IPv6.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// All addresses of both versions.
pub(crate) const ANY: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(ip: &str, binding: Binding, listens: bool) -> Claim {
        Claim { address: SocketAddr::new(ip.parse().unwrap(), 80), binding, listens }
    }

    #[test]
    fn addresses_overlap_as_the_kernel_has_it() {
        let plain = Binding::default();
        let only = Binding { v6_only: true, ..plain };
        for (one, two, expected) in [
            (("0.0.0.0", plain), ("10.0.0.1", plain), true),
            (("10.0.0.2", plain), ("10.0.0.1", plain), false),
            (("::", plain), ("0.0.0.0", plain), true),
            (("::", plain), ("10.0.0.1", plain), true),
            (("::", only), ("10.0.0.1", plain), false),
            (("::", only), ("0.0.0.0", plain), false),
            (("::", only), ("fd00::1", plain), true),
            (("::", plain), ("::", only), true),
            (("0.0.0.0", plain), ("fd00::1", plain), false),
            (("fd00::2", plain), ("fd00::1", plain), false),
        ] {
            let (a, b) = (claim(one.0, one.1, false), claim(two.0, two.1, false));
            assert_eq!((a.overlaps(&b), b.overlaps(&a)), (expected, expected), "{one:?} {two:?}");
        }
    }

    #[test]
    fn who_may_stand_beside_whom() {
        let plain = Binding::default();
        let address = Binding { reuse_address: true, ..plain };
        let port = Binding { reuse_port: true, ..plain };
        let other = Binding { owner: 7, ..port };
        for (new, old, conflict) in [
            ((plain, false), (plain, false), true),
            ((address, false), (plain, false), true),
            ((address, false), (address, false), false),
            ((address, true), (address, false), false),
            ((address, false), (address, true), true),
            ((address, true), (address, true), true),
            ((port, true), (port, true), false),
            ((port, true), (other, true), true),
            ((port, true), (address, false), true),
        ] {
            let (a, b) = (claim("::", new.0, new.1), claim("::", old.0, old.1));
            assert_eq!(a.conflicts(&b), conflict, "{new:?} beside {old:?}");
        }
    }
}
