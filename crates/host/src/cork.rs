//! Datagrams written in several pieces (`MSG_MORE`, `UDP_CORK`).

use std::io::IoSlice;
use std::net::SocketAddr;

use crate::errno::Errno;
use crate::message::{Corked, Outgoing};
use crate::session::Id;
use crate::sessions::Sessions;

/// Bytes of data of a datagram over IPv4 (`ip_append_data`): IPv6 takes 20 more.
const LONGEST: usize = 65_507;

impl Sessions {
    /// Whether a datagram has begun.
    pub(crate) fn is_corked(&self, id: Id) -> bool {
        let rare = self.get(id).ok().and_then(|session| session.rare.as_ref());
        rare.is_some_and(|rare| rare.corked.is_some())
    }

    /// Adds to the datagram, or begins one.
    pub(crate) fn append(
        &mut self,
        id: Id,
        data: &[IoSlice<'_>],
        to: Option<SocketAddr>,
        outgoing: Outgoing,
    ) -> Result<(), Errno> {
        let session = self.get_mut(id)?;
        let before = session.begun();
        let first = || Box::new(Corked { bytes: Vec::new(), to, outgoing });
        let corked = session.rare().corked.get_or_insert_with(first);
        let more: usize = data.iter().map(|piece| piece.len()).sum();
        if corked.bytes.len() + more > LONGEST {
            return Err(Errno::MSGSIZE);
        }
        data.iter().for_each(|piece| corked.bytes.extend_from_slice(piece));
        let grown = corked.bytes.capacity() - before;
        self.begun += grown;
        Ok(())
    }

    /// Takes the datagram out.
    pub(crate) fn uncork(&mut self, id: Id) -> Option<Corked> {
        let corked = self.get_mut(id).ok()?.rare.as_mut()?.corked.take()?;
        self.begun -= corked.bytes.capacity();
        Some(*corked)
    }
}
