//! What stands for a flow.

use std::net::{IpAddr, SocketAddr};

use wire::siphash::Key;

use crate::session::TransportProtocol;

/// The tag of a flow between these ends, under the key that [`ClaimsPlace`](crate::session::ClaimsPlace) gives. An IPv4
/// address and the IPv6 address that maps it are one; scopes and flow labels do not count.
#[must_use]
pub fn tag(
    key: [u64; 2],
    protocol: TransportProtocol,
    local: SocketAddr,
    remote: SocketAddr,
) -> u64 {
    let [a, b] = halves(local.ip());
    let [c, d] = halves(remote.ip());
    let ports = u64::from(local.port()) << 16 | u64::from(remote.port());
    let protocol = match protocol {
        TransportProtocol::Tcp => 6,
        TransportProtocol::Udp => 17,
    };
    Key(key).hash(&[protocol << 32 | ports, a, b, c, d])
}

fn halves(ip: IpAddr) -> [u64; 2] {
    let bits = match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
    .to_bits();
    [(bits >> 64) as u64, bits as u64]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_flow_counts_and_a_mapped_address_does_not() {
        let end = |text: &str| text.parse::<SocketAddr>().unwrap();
        let (local, remote) = (end("192.0.2.1:80"), end("198.51.100.7:1234"));
        let key = [1, 2];
        let base = tag(key, TransportProtocol::Tcp, local, remote);
        let mapped = end("[::ffff:192.0.2.1]:80");
        assert_eq!(tag(key, TransportProtocol::Tcp, mapped, remote), base);
        let others = [
            tag([1, 3], TransportProtocol::Tcp, local, remote),
            tag(key, TransportProtocol::Udp, local, remote),
            tag(key, TransportProtocol::Tcp, remote, local),
            tag(key, TransportProtocol::Tcp, end("192.0.2.1:81"), remote),
            tag(key, TransportProtocol::Tcp, end("192.0.2.2:80"), remote),
            tag(key, TransportProtocol::Tcp, local, end("198.51.100.7:1235")),
            tag(key, TransportProtocol::Tcp, local, end("198.51.100.8:1234")),
        ];
        assert!(!others.contains(&base));
    }
}
