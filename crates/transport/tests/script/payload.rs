//! What data is made of. Each byte of a stream has a value by its place, so that data sent from a wrong
//! place shows.

/// Who sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    Host,
    Peer,
}

/// `length` bytes from `offset` on of the stream from one side to the other; `port`: the peer's.
pub(crate) fn stream(from: From, port: u16, offset: u32, length: usize) -> Vec<u8> {
    let start = u32::from(port) << 13 | u32::from(from == From::Host) << 29;
    // Multiples of the golden ratio: the top bits of neighbours lie far apart.
    let value = |at: u32| (start.wrapping_add(at).wrapping_mul(2_654_435_769) >> 24) as u8;
    (0..length as u32).map(|at| value(offset.wrapping_add(at))).collect()
}

/// Where `data` is not what the stream has from `offset` on.
pub(crate) fn difference(from: From, port: u16, offset: u32, data: &[u8]) -> Result<(), String> {
    let wanted = stream(from, port, offset, data.len());
    let Some(at) = data.iter().zip(&wanted).position(|(is, wanted)| is != wanted) else {
        return Ok(());
    };
    let place = offset.wrapping_add(at as u32);
    Err(format!("the data is wrong from byte {place} of the stream on, {at} bytes into it"))
}
