//! The other process: this program again, attached as a client, which takes orders from its standard input.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use client::Channel;

use super::args::Peer;
use super::carry::{Meter, Packets, drain, reflect};
use super::look;
use super::memory;
use super::orders::{Answer, Line, Order};
use super::wake;
use crate::failure::Failure;
use crate::machine;

/// Serves on its core until its orders end.
pub(crate) fn run(args: &Peer) -> Result<(), Failure> {
    machine::pin(args.core)?;
    let stream = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let mut channel = memory::attach(&args.attach)?;
    let mut line = Line::new(stream, None)?;
    while let Some(order) = line.hear()? {
        line.say(&Answer::Ready)?;
        let answer = obey(&order, &mut channel)?;
        line.say(&answer)?;
    }
    Ok(())
}

fn obey(order: &Order, channel: &mut Channel) -> Result<Answer, Failure> {
    match *order {
        Order::Drain { bytes, burst, sample } => {
            let (mut into, mut meter) = (Packets::new(bytes, burst), Meter::new(sample));
            drain(channel, &mut into, &mut meter)?;
            let (packets, cycles) = meter.finish();
            Ok(Answer::Drained { packets, cycles })
        }
        Order::Read { burst, sample } => {
            let mut meter = Meter::new(sample);
            let sum = look::read(channel, burst, &mut meter)?;
            let (packets, cycles) = meter.finish();
            Ok(Answer::Read { packets, cycles, sum })
        }
        Order::Carry { burst } => {
            reflect(channel, burst)?;
            Ok(Answer::Carried)
        }
        Order::Sleep { packets } => {
            let (cycles, sleeps) = wake::sleep(channel, packets, wake::LONGEST)?;
            Ok(Answer::Woken { cycles, sleeps })
        }
    }
}
