//! The memory that both processes have: two queues in a segment, and a doorbell.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use shm::{Consumer, Doorbell, Layout, Producer, Segment, Trusting};

use crate::failure::Failure;

/// Slots of a queue, as many as memif has in a ring, and bytes of each.
const SLOTS: u32 = 1024;
const CAPACITY: u32 = 2048;

/// What one process has of it.
pub(super) struct Ends {
    /// To the other process.
    pub(super) out: Producer,
    /// From the other process.
    pub(super) back: Trusting,
    /// Wakes the other process.
    pub(super) bell: Doorbell,
}

/// Makes the memory, hands it over to the other process, and gives this one's ends.
pub(super) fn make(other: &UnixStream) -> Result<Ends, Failure> {
    let layout = Layout::new(SLOTS, CAPACITY)?;
    let segment = Segment::create("millrace-bench", 2 * layout.bytes())?;
    let (bell, theirs) = Doorbell::pair()?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = [segment.as_fd(), theirs.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&files));
    sendmsg(other, &[IoSlice::new(b"\n")], &mut control, SendFlags::empty())
        .map_err(io::Error::from)?;
    ends(segment, bell, [0, 1])
}

/// Takes over the memory that the process at the other end of `from` made.
pub(super) fn take(from: &UnixStream) -> Result<Ends, Failure> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut data = [IoSliceMut::new(&mut byte)];
    recvmsg(from, &mut data, &mut control, RecvFlags::CMSG_CLOEXEC).map_err(io::Error::from)?;
    let mut files: Vec<OwnedFd> = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            files.extend(rights);
        }
    }
    let (Some(bell), Some(segment)) = (files.pop(), files.pop()) else {
        return Err(Failure::OtherProcess("it hands no memory over"));
    };
    ends(Segment::from_file(segment)?, Doorbell::from_file(bell)?, [1, 0])
}

#[expect(unsafe_code, reason = "what a client of the daemon does is measured, and it trusts")]
fn ends(segment: Segment, bell: Doorbell, which: [usize; 2]) -> Result<Ends, Failure> {
    let layout = Layout::new(SLOTS, CAPACITY)?;
    let segment = Arc::new(segment);
    let [out, back] = which.map(|at| segment.region(at * layout.bytes(), layout.bytes()));
    let (Some(out), Some(back)) = (out, back) else {
        return Err(Failure::OtherProcess("its memory is too short"));
    };
    let back = Consumer::new(back, layout)?;
    // SAFETY: the producer is this program in the other process. Its end is a `Producer` too, the only one of
    // this region, and nothing else writes there.
    let back = unsafe { back.trust() };
    Ok(Ends { out: Producer::new(out, layout)?, back, bell })
}

#[cfg(test)]
mod tests {
    use shm::Meta;

    use super::*;

    #[test]
    fn what_one_side_sends_the_other_takes() {
        let (near, far) = UnixStream::pair().unwrap();
        let mut ours = make(&near).unwrap();
        let mut theirs = take(&far).unwrap();
        for (out, back, value) in
            [(&mut ours.out, &mut theirs.back, 1), (&mut theirs.out, &mut ours.back, 2)]
        {
            out.push(&[value; 60], Meta::default()).unwrap();
            let (taken, mut bytes) = (back.next().unwrap(), [0; 60]);
            assert_eq!((back.copy(&taken, &mut bytes), bytes), (60, [value; 60]));
            back.release(taken);
        }
        ours.bell.clear();
        theirs.back.sleeps().announce();
        ours.bell.ring(ours.out.consumer_sleeps());
        assert!(theirs.bell.wait(&[], std::time::Duration::from_secs(3600)), "it is the same bell");
    }

    #[test]
    fn a_line_without_memory_is_refused() {
        use std::io::Write;
        let (mut near, far) = UnixStream::pair().unwrap();
        near.write_all(b"\n").unwrap();
        assert!(matches!(take(&far), Err(Failure::OtherProcess(_))));
    }
}
