//! Places of connections: hot and cold parts side by side.

use crate::handle::ConnectionId;
use crate::tcp::cold::Cold;
use crate::tcp::hot::Hot;

/// A connection's place: whole cache lines, one behind the other.
#[derive(Debug)]
#[repr(C)]
struct Place<F> {
    hot: Hot,
    cold: Option<Cold<F>>,
}

/// Connections by index.
#[derive(Debug)]
pub(crate) struct Slab<F> {
    places: Vec<Place<F>>,
    free: Vec<u32>,
}

impl<F> Slab<F> {
    /// For so many connections: addresses are reserved for all of them now, so that none is ever copied; memory
    /// comes a page at a time, as the kernel gives it.
    pub(crate) fn new(connections: usize) -> Self {
        Self { places: reserved(connections), free: reserved(connections) }
    }

    /// Connections held.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Places that are or were taken.
    pub(crate) fn places(&self) -> u32 {
        self.places.len() as u32
    }

    /// Who has a place, and its hot part.
    pub(crate) fn look(&self, index: u32) -> Option<(ConnectionId, &Hot)> {
        let place = self.places.get(index as usize).filter(|place| place.cold.is_some())?;
        Some((ConnectionId::new(index, place.hot.generation), &place.hot))
    }

    /// All of them.
    pub(crate) fn ids(&self) -> impl Iterator<Item = ConnectionId> {
        self.places.iter().zip(0..).filter_map(|(place, index)| {
            place.cold.as_ref().map(|_| ConnectionId::new(index, place.hot.generation))
        })
    }

    /// Bytes of memory of a place.
    pub(crate) const PLACE: usize = size_of::<Place<F>>();

    pub(crate) fn add(&mut self, cold: Cold<F>) -> ConnectionId {
        if let Some(index) = self.free.pop() {
            if let Some(place) = self.places.get_mut(index as usize) {
                place.cold = Some(cold);
                return ConnectionId::new(index, place.hot.generation);
            }
        }
        let index = self.places.len() as u32;
        self.places.push(Place { hot: Hot::vacant(0), cold: Some(cold) });
        ConnectionId::new(index, 0)
    }

    pub(crate) fn free(&mut self, index: u32) {
        if let Some(place) = self.places.get_mut(index as usize) {
            if place.cold.take().is_some() {
                place.hot = Hot::vacant(place.hot.generation.wrapping_add(1));
                self.free.push(index);
            }
        }
    }

    #[inline]
    pub(crate) fn at(&mut self, index: u32) -> Option<(&mut Hot, &mut Cold<F>)> {
        let place = self.places.get_mut(index as usize)?;
        Some((&mut place.hot, place.cold.as_mut()?))
    }

    /// Asks the cache for a place.
    #[inline]
    pub(crate) fn prefetch(&self, index: u32) {
        if let Some(place) = self.places.get(index as usize) {
            tables::prefetch(place);
        }
    }

    /// Asks the cache for what a place points to; the place itself should be near.
    #[inline]
    pub(crate) fn prefetch_far(&self, index: u32)
    where
        F: crate::fifo::ByteFifo,
    {
        if let Some(cold) = self.places.get(index as usize).and_then(|place| place.cold.as_ref()) {
            cold.prefetch();
        }
    }

    /// All connections.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Hot, &Cold<F>)> {
        self.places.iter().filter_map(|place| Some((&place.hot, place.cold.as_ref()?)))
    }

    pub(crate) fn get_mut(&mut self, id: ConnectionId) -> Option<(&mut Hot, &mut Cold<F>)> {
        let (hot, cold) = self.at(id.index())?;
        (hot.generation == id.generation()).then_some((hot, cold))
    }

    pub(crate) fn get(&self, id: ConnectionId) -> Option<(&Hot, &Cold<F>)> {
        let place = self.places.get(id.index() as usize)?;
        let (hot, cold) = (&place.hot, place.cold.as_ref()?);
        (hot.generation == id.generation()).then_some((hot, cold))
    }
}

/// Room for so many entries; where that many addresses cannot be had, it grows when it must.
pub(crate) fn reserved<T>(count: usize) -> Vec<T> {
    let mut entries = Vec::new();
    // An error leaves it as it was.
    let _ = entries.try_reserve_exact(count);
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ends::Ends;
    use crate::fifo::Ring;
    use std::sync::Arc;

    #[test]
    fn a_stale_handle_finds_nothing() {
        let ends = Ends { local: ([1, 1, 1, 1], 1).into(), remote: ([2, 2, 2, 2], 2).into() };
        let cold = || Cold::<Ring>::new(ends, Arc::default(), 1500);
        let mut slab = Slab::new(2);
        let first = slab.add(cold());
        slab.free(first.index());
        slab.free(first.index());
        let second = slab.add(cold());
        assert_eq!((first.index(), slab.len()), (second.index(), 1));
        assert!(slab.get(first).is_none() && slab.get_mut(second).is_some());
    }

    #[test]
    fn places_stay_where_they_are() {
        let ends = Ends { local: ([1, 1, 1, 1], 1).into(), remote: ([2, 2, 2, 2], 2).into() };
        let mut slab = Slab::new(1000);
        let start = slab.places.as_ptr();
        for _ in 0..1000 {
            slab.add(Cold::<Ring>::new(ends, Arc::default(), 1500));
        }
        assert_eq!((slab.places.as_ptr(), slab.len()), (start, 1000));
    }

    #[test]
    fn a_place_fits_the_budget() {
        // Without the FIFOs (here two rings) and the boxed congestion control, which has 80 bytes.
        let fifos = size_of::<Option<crate::fifo::Pair<Ring>>>();
        assert!(Slab::<Ring>::PLACE - fifos <= 416, "{}", Slab::<Ring>::PLACE - fifos);
    }
}
