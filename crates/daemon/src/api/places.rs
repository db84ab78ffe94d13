//! How many connections to the API a user may have at once, so that members of `daemon.group` who open them without end take
//! neither the daemon's descriptors nor its memory, nor the way in from others.

use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;

/// Connections of a user other than root: each may hold some 50 KiB of the daemon's memory.
const MOST: usize = 256;

/// Connections by user.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places(Arc<Mutex<HashMap<u32, usize>>>);

impl Places {
    fn lock(&self) -> MutexGuard<'_, HashMap<u32, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for one more. `None`: the user has as many as one may have.
    pub(super) fn take(&self, uid: u32) -> Option<Place> {
        let mut taken = self.lock();
        let count = taken.entry(uid).or_default();
        if uid != 0 && *count >= MOST {
            return None;
        }
        *count += 1;
        Some(Place { places: self.clone(), uid })
    }
}

/// A user's place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Places,
    uid: u32,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        if let Some(count) = taken.get_mut(&self.uid) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                taken.remove(&self.uid);
            }
        }
    }
}

/// A connection, and the place that it takes. One that a user's thread relays was counted there.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(super) stream: UnixStream,
    pub(super) _place: Option<Place>,
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_so_many_and_root_comes_in_all_the_same() {
        let places = Places::default();
        let mut held: Vec<_> = (0..MOST).map(|_| places.take(5).unwrap()).collect();
        assert!(places.take(5).is_none());
        assert!(places.take(6).is_some(), "another user");
        held.pop();
        held.push(places.take(5).unwrap());
        assert!(places.take(5).is_none());
        let root: Vec<_> = (0..=MOST).filter_map(|_| places.take(0)).collect();
        assert_eq!(root.len(), MOST + 1);
        drop((held, root));
        assert!(places.lock().is_empty());
    }
}
