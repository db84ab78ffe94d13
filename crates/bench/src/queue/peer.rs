//! The other process: this program again, which takes orders from its standard input.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use super::carry::{Meter, Packets, Wait, carry, drain};
use super::look;
use super::memory::{self, Ends};
use super::orders::{Answer, Line, Order};
use super::wake;
use crate::environment;
use crate::failure::Failure;

/// Serves on a core until its orders end.
pub(crate) fn run(core: usize) -> Result<(), Failure> {
    environment::pin(core)?;
    let stream = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let mut ends = memory::take(&stream)?;
    let mut line = Line::new(stream, None)?;
    while let Some(order) = line.hear()? {
        line.say(&Answer::Ready)?;
        let answer = obey(&order, &mut ends)?;
        line.say(&answer)?;
    }
    Ok(())
}

fn obey(order: &Order, ends: &mut Ends) -> Result<Answer, Failure> {
    match *order {
        Order::Drain { bytes, burst, sample } => {
            let (mut into, mut meter) = (Packets::new(bytes, burst), Meter::new(sample));
            drain(&mut ends.back, &mut into, &mut meter)?;
            let (packets, cycles) = meter.finish();
            Ok(Answer::Drained { packets, cycles })
        }
        Order::Read { burst, sample } => {
            let mut meter = Meter::new(sample);
            let sum = look::read(&mut ends.back, burst, &mut meter)?;
            let (packets, cycles) = meter.finish();
            Ok(Answer::Read { packets, cycles, sum })
        }
        Order::Carry { bytes, burst } => {
            let (mut scratch, mut wait) = (Packets::new(bytes, burst), Wait::default());
            while !carry(ends, &mut scratch, &mut wait)?.1 {}
            Ok(Answer::Carried)
        }
        Order::Sleep { packets } => {
            let (cycles, sleeps) = wake::sleep(ends, packets, wake::LONGEST)?;
            Ok(Answer::Woken { cycles, sleeps })
        }
    }
}
