//! What the client's thread does.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::{Errno, pwrite};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, send, sendmsg};
use shm::Meta;

use super::conduct::Conduct;
use crate::client_ends::{Channel, Ends};
use crate::failure::Failure;
use crate::load::Random;

/// Packets taken from or put into a channel at once.
const BURST: usize = 64;
/// A port that no client has.
const NO_PORT: Meta = Meta { port: 255, flags: 0 };
/// Garbage: bytes, and those that are written at once.
const GARBAGE: usize = 1 << 20;
const WRITE: usize = 1 << 16;
/// A UDP datagram without data from 192.0.2.1, which is no address of the router's, and the headers of one of 1,500 bytes.
const FOREIGN: [u8; 28] = [
    0x45, 0, 0, 28, 0, 0, 0x40, 0, 64, 17, 0x4e, 0x9b, 192, 0, 2, 1, 198, 51, 100, 1, 0x14, 0xe9,
    0, 53, 0, 8, 0, 0,
];
const FOREIGN_LONG: [u8; 28] = [
    0x45, 0, 5, 220, 0, 0, 0x40, 0, 64, 17, 0x48, 219, 192, 0, 2, 1, 198, 51, 100, 1, 0x14, 0xe9,
    0, 53, 5, 200, 0, 0,
];
/// How long one who does nothing looks away.
const NAP: Duration = Duration::from_millis(1);

/// Does what the conduct says until `stop`. Returns how often: packets read or sent, bytes of garbage, times
/// that taking pages was refused, rings. Says when it has done the first.
pub(super) fn run(
    conduct: Conduct,
    all: &mut [Ends],
    stop: &AtomicBool,
    begun: &AtomicBool,
) -> Result<u64, Failure> {
    let mut means = Means::new(conduct);
    let mut done = 0;
    while !stop.load(Ordering::Relaxed) {
        for ends in &mut *all {
            done += step(conduct, ends, &mut means)?;
        }
        begun.store(true, Ordering::Relaxed);
    }
    Ok(done)
}

/// What it has prepared.
pub(super) struct Means {
    scratch: Vec<u8>,
    random: Random,
}

impl Means {
    pub(super) fn new(conduct: Conduct) -> Self {
        let mut random = Random::new(7);
        let mut noise = |bytes: usize| (0..bytes).map(|_| random.next() as u8).collect();
        let scratch = match conduct {
            Conduct::StacksThatSend => FOREIGN.to_vec(),
            Conduct::StacksThatSendLong => [&FOREIGN_LONG[..], &[0; 1472]].concat(),
            Conduct::Garbage => noise(GARBAGE),
            Conduct::Refused => noise(60),
            Conduct::RefusedLong => noise(1514),
            // A packet of any length: the longest that a ring takes.
            _ => noise(usize::from(u16::MAX)),
        };
        Self { scratch, random }
    }
}

/// Does it once.
pub(super) fn step(conduct: Conduct, ends: &mut Ends, means: &mut Means) -> Result<u64, Failure> {
    let Means { scratch, random } = means;
    let channels = ends.channels.iter_mut();
    Ok(match conduct {
        Conduct::Nobody
        | Conduct::Bystander
        | Conduct::Filters
        | Conduct::ManyFilters
        | Conduct::Stacks
        | Conduct::Deaf => {
            thread::sleep(NAP);
            0
        }
        Conduct::Reader => channels.map(|channel| read(channel, scratch)).sum(),
        Conduct::Sleeper | Conduct::Everything | Conduct::Connections => channels.map(take).sum(),
        Conduct::Refused
        | Conduct::RefusedLong
        | Conduct::Absurd
        | Conduct::StacksThatSend
        | Conduct::StacksThatSendLong => channels.map(|channel| flood(channel, scratch)).sum(),
        Conduct::Ringer => {
            let rung = send(&ends.wake, &[1], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
            // A full socket is as good as a rung bell.
            rung.map(drop)
                .or_else(|error| if error == Errno::AGAIN { Ok(()) } else { Err(error) })
                .map_err(io::Error::from)?;
            1
        }
        Conduct::Descriptors => {
            let files = [ends.wake.as_fd()];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut ancillary = SendAncillaryBuffer::new(&mut space);
            ancillary.push(SendAncillaryMessage::ScmRights(&files));
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            // It is refused, or finds the socket full.
            let _ = sendmsg(&ends.wake, &[IoSlice::new(&[1])], &mut ancillary, flags);
            1
        }
        Conduct::Garbage => write_garbage(ends, scratch, random)?,
        Conduct::Holes => {
            let holes = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let length = ends.segment.length() as u64;
            let refused = fallocate(&ends.segment, holes, 0, length) == Err(Errno::PERM);
            u64::from(refused)
        }
    })
}

fn read(channel: &mut Channel, scratch: &mut [u8]) -> u64 {
    let mut count = 0;
    while let Some(taken) = (count < BURST as u64).then(|| channel.receive.next()).flatten() {
        channel.receive.copy(&taken, scratch);
        channel.receive.release(taken);
        count += 1;
    }
    count
}

fn take(channel: &mut Channel) -> u64 {
    channel.receive.sleeps().announce();
    let taken = channel.receive.next();
    let count = u64::from(taken.is_some());
    taken.into_iter().for_each(|taken| channel.receive.release(taken));
    count
}

fn flood(channel: &mut Channel, packet: &[u8]) -> u64 {
    channel.transmit.push_burst(BURST, |_| (packet, NO_PORT)) as u64
}

/// Once over the whole segment.
fn write_garbage(ends: &Ends, garbage: &[u8], random: &mut Random) -> Result<u64, Failure> {
    let length = ends.segment.length();
    for offset in (0..length).step_by(WRITE) {
        let from = random.below(garbage.len() - WRITE);
        let bytes = garbage.get(from..from + WRITE.min(length - offset)).unwrap_or_default();
        pwrite(&ends.segment, bytes, offset as u64).map_err(io::Error::from)?;
    }
    Ok(length as u64)
}
