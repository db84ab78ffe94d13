//! Names of sockets: an index, and the generation of what lives there.

/// Declares a kind of handle, so that one kind cannot be taken for another.
macro_rules! handle {
    ($name:ident, $what:literal) => {
        #[doc = $what]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name {
            index: u32,
            generation: u32,
        }

        impl $name {
            /// Of its parts, as [`to_bits`](Self::to_bits) gave them.
            #[must_use]
            pub const fn from_bits(bits: u64) -> Self {
                Self { index: bits as u32, generation: (bits >> 32) as u32 }
            }

            /// Both parts in one word: the generation above the index.
            #[must_use]
            pub const fn to_bits(self) -> u64 {
                (self.generation as u64) << 32 | self.index as u64
            }

            /// Its place: small numbers, used again when the socket is gone.
            #[must_use]
            pub const fn index(self) -> u32 {
                self.index
            }

            /// Of its parts. A made-up handle names no socket, or somebody's by chance.
            #[must_use]
            pub const fn new(index: u32, generation: u32) -> Self {
                Self { index, generation }
            }

            /// How often its place was taken before.
            #[must_use]
            pub const fn generation(self) -> u32 {
                self.generation
            }
        }
    };
}

handle!(
    ConnectionId,
    "A TCP connection. A handle outlives its connection: calls with it then fail."
);
handle!(ListenerId, "A TCP socket that is bound to an address, listening or not yet.");
handle!(UdpId, "A UDP socket.");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_the_way_through_a_word() {
        let id = ConnectionId::new(7, 9);
        assert_eq!(ConnectionId::from_bits(id.to_bits()), id);
        assert_eq!((id.index(), id.generation()), (7, 9));
    }
}
