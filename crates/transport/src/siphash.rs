//! SipHash-2-4 of a connection's ends: the keyed hash behind sequence numbers, ports and cookies.

use wire::siphash::Key;

/// A secret key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Secret(pub [u64; 2]);

impl Secret {
    /// Hash of whole words.
    pub(crate) fn hash(&self, words: &[u64]) -> u64 {
        Key(self.0).hash(words)
    }

    /// Hash of both ends and two more words.
    pub(crate) fn hash_ends(&self, ends: &crate::ends::Ends, more: [u64; 2]) -> u64 {
        let (local, remote) = (ends.local, ends.remote);
        let [a, b] = halves(local.ip());
        let [c, d] = halves(remote.ip());
        let ports = u64::from(local.port()) << 16 | u64::from(remote.port());
        self.hash(&[a, b, c, d, ports, more[0], more[1]])
    }
}

fn halves(ip: std::net::IpAddr) -> [u64; 2] {
    let bits = crate::ends::to_v6(ip).to_bits();
    [(bits >> 64) as u64, bits as u64]
}
