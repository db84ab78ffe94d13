//! How long a datagram may be: whole, or cut into fragments on its way (`ip_append_data`, `__ip6_append_data`).

use std::net::IpAddr;

use transport::Fragmentation;
use wire::{ipv4, ipv6, udp};

use crate::errno::Errno;
use crate::session::Id;
use crate::sessions::Sessions;

/// What a fragment takes of `SO_SNDBUF` beyond its bytes: those of the smallest buffer that Linux has (`truesize`).
const COST: usize = 768;
/// Datagrams of one call (`UDP_MAX_SEGMENTS`).
const SEGMENTS: usize = 128;

impl Sessions {
    /// Whether so many bytes can be sent to `remote`, as one datagram or, if `segment` is not 0, as datagrams of so many bytes.
    ///
    /// # Errors
    /// [`Errno::MSGSIZE`]: too long for the path, and it may not be cut. [`Errno::NOBUFS`]: its fragments are too much for
    /// `SO_SNDBUF`. [`Errno::INVAL`]: too many datagrams.
    pub(crate) fn admit(
        &self,
        id: Id,
        length: usize,
        segment: u16,
        remote: IpAddr,
    ) -> Result<(), Errno> {
        let settings = &self.get(id)?.settings;
        let four = remote.is_ipv4();
        let header = if four { ipv4::HEADER_LENGTH } else { ipv6::HEADER_LENGTH };
        let path = usize::from(self.fragment_size(id, remote));
        let size = if segment == 0 { length } else { length.min(segment.into()) };
        if header + udp::HEADER_LENGTH + size <= path {
            // udp_send_skb
            let too_many = segment != 0 && length > usize::from(segment) * SEGMENTS;
            return if too_many { Err(Errno::INVAL) } else { Ok(()) };
        }
        let header = if four { header } else { header + ipv6::Fragment::HEADER_LENGTH };
        let fragmentation = settings.datagrams.fragmentation;
        let may_be_cut = size <= usize::from(u16::MAX) - header - udp::HEADER_LENGTH
            && matches!(fragmentation, Fragmentation::Allowed | Fragmentation::BeyondPath);
        if segment != 0 || !may_be_cut {
            return Err(Errno::MSGSIZE);
        }
        let each = (path.saturating_sub(header) & !7).max(8);
        let fragments = (udp::HEADER_LENGTH + size).div_ceil(each);
        let ahead = fragments.saturating_sub(1) * (path + COST);
        let room = 2 * settings.buffers.1 as usize;
        // The first one waits for room, the others do not: whether the last finds some.
        if self.outbox.bytes_of(id) + ahead > room { Err(Errno::NOBUFS) } else { Ok(()) }
    }

    /// Bytes of a packet to `remote` that goes whole.
    pub(crate) fn fragment_size(&self, id: Id, remote: IpAddr) -> u16 {
        let settings = self.get(id).ok().map(|session| &session.settings.datagrams);
        match settings.map(|settings| settings.fragmentation) {
            Some(Fragmentation::Probing) => self.mtu,
            _ => self.stack.path_mtu(remote),
        }
    }
}
