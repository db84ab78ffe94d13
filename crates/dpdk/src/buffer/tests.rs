//! Chains without a pool.

use std::mem::ManuallyDrop;
use std::ptr::null_mut;

use super::*;

/// A segment without bytes, in memory of its own. `count`: segments that it tells of.
fn segment(count: u16, next: *mut Mbuf) -> *mut Mbuf {
    // SAFETY: integers and pointers, for which zero is valid.
    let mut mbuf: Mbuf = unsafe { std::mem::zeroed() };
    (mbuf.nb_segs, mbuf.next) = (count, next);
    mbuf.buf_addr = NonNull::dangling().as_ptr();
    Box::into_raw(Box::new(mbuf))
}

#[test]
fn what_is_cut_off_has_all_its_segments() {
    // As drivers leave it: the first one tells of all, the others of none.
    let chain = segment(4, segment(1, segment(1, segment(1, null_mut()))));
    // SAFETY: nobody else has the chain; it is never freed, as no pool has it.
    let buffer = unsafe { Buffer::from_raw(NonNull::new(chain).unwrap()) };
    let mut buffer = ManuallyDrop::new(buffer);
    let mut rest = ManuallyDrop::new(buffer.cut().unwrap());
    assert_eq!((buffer.segment_count(), buffer.segments().count()), (1, 1));
    assert_eq!((rest.segment_count(), rest.segments().count()), (3, 3));
    let last = ManuallyDrop::new(rest.cut().unwrap());
    assert_eq!((rest.segments().count(), last.segments().count()), (1, 2));
    assert!(buffer.cut().is_none());
}
