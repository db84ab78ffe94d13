use super::*;
use crate::hooks::{data, descriptors, sockets};

#[test]
fn a_length_that_is_not_there_is_not_looked_at() {
    let (mut byte, mut from) = (0_u8, [0_u8; 16]);
    let (target, name) = ((&raw mut byte).cast(), from.as_mut_ptr().cast());
    let nowhere = std::ptr::without_provenance_mut(4);
    // SAFETY: room for a byte and for an address; a length that is not there is not looked at.
    let (done, error) = unsafe {
        let fd = sockets::socket(libc::AF_INET, libc::SOCK_DGRAM, 0);
        let done = data::recvfrom(fd, target, 1, libc::MSG_DONTWAIT, name, nowhere);
        let error = errno::get();
        descriptors::close(fd);
        (done, error)
    };
    assert_eq!((done, error), (-1, Errno::AGAIN));
}
