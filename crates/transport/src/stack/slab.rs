//! Places of connections: hot and cold parts side by side.

use crate::handle::ConnectionId;
use crate::tcp::cold::Cold;
use crate::tcp::hot::Hot;

/// Connections by index.
#[derive(Debug)]
pub(crate) struct Slab<F> {
    hot: Vec<Hot>,
    cold: Vec<Option<Cold<F>>>,
    free: Vec<u32>,
}

impl<F> Default for Slab<F> {
    fn default() -> Self {
        Self { hot: Vec::new(), cold: Vec::new(), free: Vec::new() }
    }
}

impl<F> Slab<F> {
    /// Connections held.
    pub(crate) fn len(&self) -> usize {
        self.hot.len() - self.free.len()
    }

    /// Bytes of memory of all places.
    pub(crate) const PLACE: usize = size_of::<Hot>() + size_of::<Option<Cold<F>>>();

    pub(crate) fn add(&mut self, cold: Cold<F>) -> ConnectionId {
        if let Some(index) = self.free.pop() {
            let place = index as usize;
            if let (Some(hot), Some(slot)) = (self.hot.get(place), self.cold.get_mut(place)) {
                *slot = Some(cold);
                return ConnectionId::new(index, hot.generation);
            }
        }
        let index = self.hot.len() as u32;
        self.hot.push(Hot::vacant(0));
        self.cold.push(Some(cold));
        ConnectionId::new(index, 0)
    }

    pub(crate) fn free(&mut self, index: u32) {
        let place = index as usize;
        if let (Some(hot), Some(cold)) = (self.hot.get_mut(place), self.cold.get_mut(place)) {
            if cold.take().is_some() {
                *hot = Hot::vacant(hot.generation.wrapping_add(1));
                self.free.push(index);
            }
        }
    }

    #[inline]
    pub(crate) fn at(&mut self, index: u32) -> Option<(&mut Hot, &mut Cold<F>)> {
        let place = index as usize;
        Some((self.hot.get_mut(place)?, self.cold.get_mut(place)?.as_mut()?))
    }

    /// Reads what a segment will need of a place; the sum is of no interest.
    #[inline]
    pub(crate) fn touch(&self, index: u32) -> u64 {
        let place = index as usize;
        let hot = self.hot.get(place).map_or(0, |hot| hot.flags ^ u64::from(hot.rto));
        hot ^ self.cold.get(place).and_then(Option::as_ref).map_or(0, Cold::touch)
    }

    /// The same, of what lies elsewhere.
    #[inline]
    pub(crate) fn touch_far(&self, index: u32) -> u64
    where
        F: crate::fifo::ByteFifo,
    {
        self.cold.get(index as usize).and_then(Option::as_ref).map_or(0, Cold::touch_far)
    }

    pub(crate) fn get_mut(&mut self, id: ConnectionId) -> Option<(&mut Hot, &mut Cold<F>)> {
        let (hot, cold) = self.at(id.index())?;
        (hot.generation == id.generation()).then_some((hot, cold))
    }

    pub(crate) fn get(&self, id: ConnectionId) -> Option<(&Hot, &Cold<F>)> {
        let place = id.index() as usize;
        let (hot, cold) = (self.hot.get(place)?, self.cold.get(place)?.as_ref()?);
        (hot.generation == id.generation()).then_some((hot, cold))
    }
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
        let mut slab = Slab::default();
        let first = slab.add(cold());
        slab.free(first.index());
        slab.free(first.index());
        let second = slab.add(cold());
        assert_eq!((first.index(), slab.len()), (second.index(), 1));
        assert!(slab.get(first).is_none() && slab.get_mut(second).is_some());
    }

    #[test]
    fn a_place_fits_the_budget() {
        // Without the FIFOs (here two rings) and the boxed congestion control.
        let fifos = size_of::<Option<crate::fifo::Pair<Ring>>>();
        assert!(Slab::<Ring>::PLACE - fifos <= 512, "{}", Slab::<Ring>::PLACE - fifos);
    }
}
