//! Feature arcs: stages that only packets of some interfaces go through, in a fixed order, on their way from one node to
//! another. Nobody else pays for them.

use crate::Edge;

/// Features of one arc, by their places in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FeatureSet(u32);

impl FeatureSet {
    /// Places that an arc has.
    pub const PLACES: u8 = 32;

    /// This set and one more. A place beyond [`Self::PLACES`] is nobody's.
    #[must_use]
    pub const fn with(self, place: u8) -> Self {
        if place < Self::PLACES { Self(self.0 | 1 << place) } else { self }
    }

    /// Whether there is none.
    #[inline]
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The place of the first one from `place` on.
    #[inline]
    #[must_use]
    pub fn from(self, place: u8) -> Option<u8> {
        let rest = self.0 & u32::MAX.checked_shl(place.into()).unwrap_or(0);
        (rest != 0).then(|| rest.trailing_zeros() as u8)
    }

    /// All of them, in order.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..Self::PLACES).filter(move |place| self.0 >> place & 1 == 1)
    }
}

/// Where a feature sends packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Onward<N> {
    /// Off the arc.
    Aside(N),
    /// To the feature at that place.
    Feature(u8),
}

impl<N: Edge> Onward<N> {
    /// The edges of a node on an arc with these features: (place, name of the node).
    #[must_use]
    pub fn on(arc: &[(u8, &'static str)]) -> Vec<(Self, &'static str)> {
        let features = arc.iter().map(|(place, name)| (Self::Feature(*place), *name));
        features.chain(Self::edges()).collect()
    }
}

impl<N: Edge> Edge for Onward<N> {
    const COUNT: usize = N::COUNT;

    /// Those off the arc: which features it has, the node knows ([`Self::on`]).
    fn edges() -> Vec<(Self, &'static str)> {
        N::edges().into_iter().map(|(next, name)| (Self::Aside(next), name)).collect()
    }

    #[inline]
    fn index(self) -> usize {
        match self {
            Self::Aside(next) => next.index(),
            Self::Feature(place) => N::COUNT + usize::from(place),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_met_in_the_order_of_their_places() {
        let none = FeatureSet::default();
        assert!(none.is_empty() && none.from(0).is_none() && none.with(32).is_empty());
        let set = none.with(31).with(0).with(7);
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 7, 31]);
        let mut met = Vec::new();
        let mut at = set.from(0);
        while let Some(place) = at {
            met.push(place);
            at = set.from(place + 1);
        }
        assert_eq!(met, [0, 7, 31]);
    }

    crate::edges! {
        Next { One => "one", Two => "two" }
    }

    #[test]
    fn an_arc_has_its_features_and_what_is_off_it() {
        let edges = Onward::<Next>::on(&[(1, "later"), (0, "first")]);
        let names = crate::edge::by_number(edges).unwrap();
        let of = |edge: Onward<Next>| names[edge.index()];
        assert_eq!([0, 1].map(|place| of(Onward::Feature(place))), ["first", "later"]);
        assert_eq!([Next::One, Next::Two].map(|next| of(Onward::Aside(next))), ["one", "two"]);
    }
}
