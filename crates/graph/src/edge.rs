//! Where a node sends packets.

/// The next nodes of a node: an enum without fields.
///
/// Write it with [`edges!`](crate::edges), which derives this trait.
pub trait Edge: Copy + Send + 'static {
    /// How many there are.
    const COUNT: usize;

    /// Every edge, with the name of the node that it leads to.
    fn edges() -> Vec<(Self, &'static str)>;

    /// The edge's number: from 0, without a gap.
    fn index(self) -> usize;

    /// The name that [`Self::edges`] has for it.
    fn target(self) -> Option<&'static str> {
        let same = |(edge, _): &(Self, &'static str)| edge.index() == self.index();
        Self::edges().into_iter().find(same).map(|(_, name)| name)
    }
}

/// For nodes that send nothing on.
#[derive(Debug, Clone, Copy)]
pub enum NoEdge {}

impl Edge for NoEdge {
    const COUNT: usize = 0;

    fn edges() -> Vec<(Self, &'static str)> {
        Vec::new()
    }

    fn index(self) -> usize {
        match self {}
    }
}

/// The names by the numbers of the edges. `None`: not each edge has one name.
pub(crate) fn by_number<N: Edge>(edges: Vec<(N, &'static str)>) -> Option<Vec<&'static str>> {
    let mut names = vec![None; edges.len()];
    for (edge, name) in edges {
        let place = names.get_mut(edge.index())?;
        if place.replace(name).is_some() {
            return None;
        }
    }
    names.into_iter().collect()
}

/// Declares the next nodes of a node: `edges! { pub Next { Lookup => "ip4-lookup", ... } }`.
#[macro_export]
macro_rules! edges {
    ($(#[$meta:meta])* $visibility:vis $name:ident { $($(#[$about:meta])* $variant:ident => $target:expr),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        $visibility enum $name { $($(#[$about])* #[doc = concat!("To `", $target, "`.")] $variant),+ }

        impl $crate::Edge for $name {
            const COUNT: usize = [$($target),+].len();

            fn edges() -> Vec<(Self, &'static str)> {
                vec![$((Self::$variant, $target)),+]
            }

            #[inline(always)]
            fn index(self) -> usize {
                self as usize
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::edges! {
        Next { One => "one", Two => "two", Three => "three" }
    }

    #[test]
    fn the_order_in_which_edges_are_named_does_not_matter() {
        assert_eq!(by_number(Next::edges()), Some(vec!["one", "two", "three"]));
        let named = vec![(Next::Three, "c"), (Next::One, "a"), (Next::Two, "b")];
        assert_eq!(by_number(named), Some(vec!["a", "b", "c"]));
        assert_eq!((Next::Two.target(), Next::COUNT), (Some("two"), 3));
    }

    #[test]
    fn an_edge_has_one_name() {
        let twice = vec![(Next::One, "a"), (Next::Two, "b"), (Next::Two, "c")];
        assert_eq!(by_number(twice), None);
        let gap = vec![(Next::One, "a"), (Next::Three, "c")];
        assert_eq!(by_number(gap), None);
    }
}
