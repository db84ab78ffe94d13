//! Where a node sends packets.

/// The next nodes of a node: a field-less enum, its variants numbered from 0 in order.
///
/// Write it with [`edges!`](crate::edges), which derives this trait.
pub trait Edge: Copy + Send + 'static {
    /// Names of the nodes that the variants lead to, in the order of the variants.
    const TARGETS: &'static [&'static str];

    /// The variant's number.
    fn index(self) -> usize;
}

/// For nodes that send nothing on.
#[derive(Debug, Clone, Copy)]
pub enum NoEdge {}

impl Edge for NoEdge {
    const TARGETS: &'static [&'static str] = &[];

    fn index(self) -> usize {
        match self {}
    }
}

/// Declares the next nodes of a node: `edges! { pub Next { Lookup => "ip4-lookup", ... } }`.
#[macro_export]
macro_rules! edges {
    ($(#[$meta:meta])* $visibility:vis $name:ident { $($(#[$about:meta])* $variant:ident => $target:expr),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        $visibility enum $name { $($(#[$about])* #[doc = concat!("To `", $target, "`.")] $variant),+ }

        impl $crate::Edge for $name {
            const TARGETS: &'static [&'static str] = &[$($target),+];

            #[inline(always)]
            fn index(self) -> usize {
                self as usize
            }
        }
    };
}
