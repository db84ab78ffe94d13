//! What a test frame says of itself: 18 bytes, which fit into an Ethernet frame of 64 bytes with UDP over IPv4.
//!
//! ```text
//!  0 1 | 2      | 3 4 5 6 7 | 8 9 10 11 12 13 | 14 15 16 17
//! trial| stream | sequence  | sent: ns        | check
//! ```

use wire::checksum::Sum;

use super::{Layout, Transport};

/// Of the signature in a TCP segment: what the sequence and acknowledgment numbers hold, ...
const NUMBERS: usize = 8;
/// ... the window, ...
const WINDOW: usize = 2;
/// ... and what begins with the urgent pointer.
const REST: usize = Signature::LENGTH - NUMBERS - WINDOW;
/// Bytes of the signature behind a TCP header.
pub(super) const AFTER_TCP_HEADER: usize = REST - 2;
/// Places of these three from the header's begin.
const NUMBERS_AT: usize = 4;
const WINDOW_AT: usize = 14;
const REST_AT: usize = 18;

/// What a test frame says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature {
    /// Which trial it belongs to.
    pub trial: u16,
    /// Which stream of the trial: the number of the port that sent it.
    pub stream: u8,
    /// Its number in the stream, from 0; the low 40 bits count: at 100 million frames/s they last three hours, and then begin
    /// again.
    pub sequence: u64,
    /// When it was to be sent: ns since the trial began; the low 48 bits count, which last three days.
    pub sent: u64,
}

impl Signature {
    /// Bytes of a signature.
    pub const LENGTH: usize = 18;
    /// Sequence numbers are below this.
    pub const SEQUENCES: u64 = 1 << 40;
    /// Times are below this: ns.
    pub const TIMES: u64 = 1 << 48;

    /// Trial, stream and sequence; time.
    const fn words(&self) -> (u64, u64) {
        let who = (self.trial as u64) << 48 | (self.stream as u64) << 40;
        (who | self.sequence % Self::SEQUENCES, self.sent % Self::TIMES)
    }

    /// The bytes on the wire.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> [u8; Self::LENGTH] {
        let (who, sent) = self.words();
        let [a, b, c, d, e, f, g, h] = who.to_be_bytes();
        let [_, _, i, j, k, l, m, n] = sent.to_be_bytes();
        let [o, p, q, r] = check(who, sent).to_be_bytes();
        [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r]
    }

    /// Reads the bytes; `None` when they are no signature, or a damaged one.
    #[inline]
    #[must_use]
    pub fn read(bytes: &[u8; Self::LENGTH]) -> Option<Self> {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r] = *bytes;
        let who = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        let sent = u64::from_be_bytes([0, 0, i, j, k, l, m, n]);
        (check(who, sent) == u32::from_be_bytes([o, p, q, r])).then_some(Self {
            trial: (who >> 48) as u16,
            stream: (who >> 40) as u8,
            sequence: who % Self::SEQUENCES,
            sent,
        })
    }

    /// Adds the bytes to a checksum; they lie at even places of the packet.
    #[inline]
    pub(super) fn sum(bytes: &[u8; Self::LENGTH], sum: Sum) -> Sum {
        let word = |a, b, c, d| u32::from_be_bytes([a, b, c, d]);
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r] = *bytes;
        let sum = sum.u32(word(a, b, c, d)).u32(word(e, f, g, h)).u32(word(i, j, k, l));
        sum.u32(word(m, n, o, p)).u16(u16::from_be_bytes([q, r]))
    }

    /// Writes the bytes to their places in a frame. `false`: the frame is too short.
    #[inline]
    pub(super) fn place(bytes: &[u8; Self::LENGTH], frame: &mut [u8], layout: Layout) -> bool {
        let header = layout.transport();
        let mut put = |at: usize, part: &[u8]| {
            let to = frame.get_mut(header + at..header + at + part.len());
            to.is_some_and(|to| {
                to.copy_from_slice(part);
                true
            })
        };
        match layout.transport {
            Transport::Udp => put(wire::udp::HEADER_LENGTH, bytes),
            Transport::Tcp => {
                let (numbers, rest) = bytes.split_at(NUMBERS);
                let (window, rest) = rest.split_at(WINDOW);
                put(NUMBERS_AT, numbers) && put(WINDOW_AT, window) && put(REST_AT, rest)
            }
        }
    }

    /// Takes the bytes from their places in a frame; `None`: the frame is too short.
    #[inline]
    pub(super) fn find(frame: &[u8], layout: Layout) -> Option<[u8; Self::LENGTH]> {
        let header = frame.get(layout.transport()..)?;
        match layout.transport {
            Transport::Udp => header.get(wire::udp::HEADER_LENGTH..)?.first_chunk().copied(),
            Transport::Tcp => {
                let mut bytes = [0; Self::LENGTH];
                let (numbers, rest) = bytes.split_at_mut(NUMBERS);
                let (window, rest) = rest.split_at_mut(WINDOW);
                numbers.copy_from_slice(header.get(NUMBERS_AT..NUMBERS_AT + NUMBERS)?);
                window.copy_from_slice(header.get(WINDOW_AT..WINDOW_AT + WINDOW)?);
                rest.copy_from_slice(header.get(REST_AT..REST_AT + REST)?);
                Some(bytes)
            }
        }
    }
}

/// A hash of both words: the two halves of one product (as in wyhash and umash), whose factors are odd numbers without
/// pattern: fractions of the square roots of 2 and 3.
#[inline]
const fn check(who: u64, sent: u64) -> u32 {
    let product = (who ^ 0x6a09_e667_f3bc_c909) as u128 * (sent ^ 0xbb67_ae85_84ca_a73b) as u128;
    let both = product as u64 ^ (product >> 64) as u64;
    (both ^ both >> 32) as u32
}
