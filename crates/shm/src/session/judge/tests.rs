use super::*;
use crate::attach::{MESSAGE, Request};

use std::fs::File;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixStream;
use std::thread::{JoinHandle, sleep, spawn};

use rustix::fs::{MemfdFlags, fstat, memfd_create};
use rustix::net::{SendFlags, send};
use rustix::pipe::{PipeFlags, pipe_with};

type Judging = JoinHandle<Result<(), ChannelError>>;

fn started() -> (Judge, Judging) {
    let (judges, orders) = Judge::pair().unwrap();
    (judges, spawn(move || judge(orders)))
}

/// What the daemon gets when a process hands over these.
fn given(files: &[BorrowedFd<'_>]) -> Result<Vec<Brought>, ChannelError> {
    let (mut judge, thread) = started();
    let (theirs, ours) = Channel::pair().unwrap();
    judge.hold(1, ours.as_fd()).unwrap();
    theirs.send(&Request::Ports, files).unwrap();
    let taken = judge.take(1, 2);
    drop(judge);
    thread.join().unwrap().unwrap();
    taken
}

fn until(closed: impl Fn() -> bool) {
    let begun = Instant::now();
    while !closed() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it is still open");
        sleep(Duration::from_millis(1));
    }
}

#[test]
fn memory_is_handed_over_and_of_sockets_only_what_they_are() {
    let memory = memfd_create("harmless", MemfdFlags::CLOEXEC).unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let got = given(&[tcp.as_fd(), memory.as_fd()]).unwrap();
    let [Brought::Socket(bound), Brought::Memory(file)] = &got[..] else { panic!("{got:?}") };
    assert_eq!(*bound, examine(&tcp).unwrap());
    let inode = |file: BorrowedFd<'_>| fstat(file).unwrap().st_ino;
    assert_eq!(inode(file.as_fd()), inode(memory.as_fd()));
    let got = given(&[udp.as_fd()]).unwrap();
    assert!(matches!(&got[..], [Brought::Socket(bound)] if *bound == examine(&udp).unwrap()));
    let three = given(&[memory.as_fd(), tcp.as_fd(), udp.as_fd()]);
    assert!(matches!(three, Err(ChannelError::Malformed(_))), "{three:?}");
}

#[test]
fn nothing_else_is_handed_over() {
    let (pipe, _end) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    let (null, folder) = (File::open("/dev/null").unwrap(), File::open("/").unwrap());
    let status = File::open("/proc/self/status").unwrap();
    // Descriptors of anybody's may wait in it.
    let (socket, _end) = UnixStream::pair().unwrap();
    let says = |file: BorrowedFd<'_>, part: &str| {
        let got = given(&[file]).unwrap();
        let [Brought::Other(why)] = &got[..] else { panic!("{got:?}") };
        assert!(why.contains(part), "{why}");
    };
    for file in [pipe.as_fd(), null.as_fd(), folder.as_fd(), status.as_fd()] {
        says(file, "no socket");
    }
    says(socket.as_fd(), "neither IPv4 nor IPv6");
}

#[test]
fn a_judge_that_does_not_answer_is_asked_nothing_more_until_it_does() {
    let (mut judges, orders) = Judge::pair().unwrap();
    let (theirs, ours) = Channel::pair().unwrap();
    let memory = memfd_create("harmless", MemfdFlags::CLOEXEC).unwrap();
    for _ in 0..2 {
        theirs.send(&Request::Ports, &[memory.as_fd()]).unwrap();
    }
    judges.hold(1, ours.as_fd()).unwrap();
    assert!(matches!(judges.take(1, 1), Err(ChannelError::Unjudged)));
    let begun = Instant::now();
    assert!(judges.is_busy() && matches!(judges.take(1, 1), Err(ChannelError::Unjudged)));
    assert!(matches!(judges.hold(2, ours.as_fd()), Err(ChannelError::Unjudged)));
    assert!(begun.elapsed() < PATIENCE, "it was waited for again");
    let thread = spawn(move || judge(orders));
    // Its first answer comes too late.
    let taken = loop {
        match judges.take(1, 1) {
            Err(ChannelError::Unjudged) => sleep(Duration::from_millis(1)),
            taken => break taken.unwrap(),
        }
    };
    assert!(taken.len() == 1 && !judges.is_busy());
    assert!(matches!(judges.take(1, 1), Err(ChannelError::Unjudged)), "there is none");
    assert!(matches!(judges.take(7, 1), Err(ChannelError::Unjudged)), "nor such a connection");
    drop(judges);
    thread.join().unwrap().unwrap();
}

#[test]
fn an_answer_that_cannot_be_read_keeps_nobody_from_the_next() {
    let (mut judges, orders) = Judge::pair().unwrap();
    let (_theirs, ours) = Channel::pair().unwrap();
    let thread = spawn(move || {
        let orders = Channel::of(orders);
        for _ in 0..2 {
            orders.receive::<Order>().unwrap();
        }
        orders.send(&"nonsense", &[]).unwrap();
        orders
    });
    judges.hold(1, ours.as_fd()).unwrap();
    assert!(matches!(judges.take(1, 1), Err(ChannelError::Unjudged)));
    assert!(!judges.is_busy());
    let _orders = thread.join().unwrap();
    judges.hold(2, ours.as_fd()).unwrap();
}

#[test]
fn an_order_for_which_there_is_no_room_ends_no_judge() {
    let (mut judges, thread) = started();
    let (theirs, ours) = Channel::pair().unwrap();
    judges.hold(1, ours.as_fd()).unwrap();
    send(&judges.orders, &[b' '; MESSAGE + 1], SendFlags::empty()).unwrap();
    let memory = memfd_create("harmless", MemfdFlags::CLOEXEC).unwrap();
    theirs.send(&Request::Ports, &[memory.as_fd()]).unwrap();
    assert_eq!(judges.take(1, 1).unwrap().len(), 1);
    drop(judges);
    thread.join().unwrap().unwrap();
}

#[test]
fn what_it_holds_is_open_until_it_is_told_otherwise() {
    let (mut judge, thread) = started();
    let (theirs, ours) = Channel::pair().unwrap();
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    theirs.send(&Request::Ports, &[writer.as_fd()]).unwrap();
    drop(writer);
    judge.hold(1, ours.as_fd()).unwrap();
    drop((judge.take(1, 1).unwrap(), ours));
    let is_closed = |file: &OwnedFd| {
        let mut polled = [PollFd::new(file, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut polled, Some(&now)).unwrap();
        polled[0].revents().contains(PollFlags::HUP)
    };
    assert!(!theirs.is_closed() && !is_closed(&reader));
    judge.close(1);
    until(|| is_closed(&reader));
    assert!(!theirs.is_closed());
    judge.release(1);
    until(|| theirs.is_closed());
    drop(judge);
    thread.join().unwrap().unwrap();
}

#[test]
fn while_it_waits_all_are_told_that_the_daemon_has_ended() {
    // It obeys nothing more.
    let (mut judges, orders) = Judge::pair().unwrap();
    let farewell = Farewell::default();
    farewell.watch(orders);
    let pairs = [(); 3].map(|()| Channel::pair().unwrap());
    let [(one, held), (other, ours), (late, last)] = pairs;
    let (held, last) = (Arc::new(held.into_socket()), Arc::new(last.into_socket()));
    farewell.add(1, &held);
    judges.hold(2, ours.as_fd()).unwrap();
    drop(ours);
    assert!(!one.is_closed() && !other.is_closed());
    drop(judges);
    until(|| one.is_closed() && other.is_closed());
    farewell.add(3, &last);
    assert!(late.is_closed());
}
