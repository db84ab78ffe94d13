//! What frames are filled up with: bytes that depend on their place, so that a shifted or torn frame shows.

use super::LONGEST;

/// The byte at each place behind the signature. 251 is prime, so no power of two repeats it.
static FILLER: [u8; LONGEST as usize] = {
    let mut filler = [0; LONGEST as usize];
    let mut at = 0;
    while at < filler.len() {
        filler[at] = (at % 251) as u8 ^ (at / 251) as u8;
        at += 1;
    }
    filler
};

/// The first so many bytes; all there are if that is more.
pub(super) fn filler(length: usize) -> &'static [u8] {
    FILLER.get(..length).unwrap_or(&FILLER)
}
