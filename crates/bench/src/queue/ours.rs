//! Our packet queues, between this process and another.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::carry::{self, Meter, Packets, Wait};
use super::cases::{Case, Way};
use super::look;
use super::memory::{Ends, Offer};
use super::orders::{Answer, Line, Order};
use super::rounds::{Contestant, Turn};
use super::wake;
use crate::failure::Failure;
use crate::machine;
use crate::process::apart;
use crate::results::Samples;

/// How long the other process may take to answer, a turn aside.
const PATIENCE: Duration = Duration::from_secs(10);
/// Round trips of one packet that are timed one by one.
const TRIPS: u32 = 20_000;

/// What waking a process has given.
pub(super) struct WakeUps {
    /// Time between two packets.
    pub(super) pause: Duration,
    /// From push to look: nanoseconds.
    pub(super) samples: Samples,
    /// Share of packets that found a sleeper.
    pub(super) slept: f64,
    /// What the kernel alone takes to wake a thread: nanoseconds.
    pub(super) bare: Samples,
}

/// This side of the queues, and the process at the other.
pub(super) struct Ours {
    ends: Ends,
    /// Ends with the process's orders.
    line: Option<Line>,
    child: Child,
    cores: [usize; 2],
}

impl Ours {
    /// Starts the other process; each keeps to a core of its own while it works.
    pub(super) fn start(cores: [usize; 2]) -> Result<Self, Failure> {
        let [_, other] = cores;
        let (stream, theirs) = UnixStream::pair()?;
        let offer = Offer::new(PATIENCE)?;
        let child = apart(&mut Command::new(std::env::current_exe()?))
            .args(["queue-peer", &other.to_string()])
            .arg(offer.path())
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .spawn()?;
        let ends = offer.serve()?;
        let line = Some(Line::new(stream, Some(PATIENCE))?);
        Ok(Self { ends, line, child, cores })
    }

    fn order(&mut self, order: &Order) -> Result<(), Failure> {
        let line = self.line.as_mut().ok_or(Failure::OtherProcess("it has ended"))?;
        line.say(order)?;
        self.answer().map(drop)
    }

    fn answer(&mut self) -> Result<Answer, Failure> {
        let line = self.line.as_mut().ok_or(Failure::OtherProcess("it has ended"))?;
        line.hear()?.ok_or(Failure::OtherProcess("it has ended early"))
    }

    /// TSC cycles per packet, measured where the packets are taken.
    fn one_way(&mut self, case: Case, turn: Turn) -> Result<Samples, Failure> {
        let (bytes, burst) = (case.bytes(), case.burst);
        let sample = turn.sample_cycles();
        self.order(&match case.way {
            Way::InPlace => Order::Read { burst, sample },
            _ => Order::Drain { bytes, burst, sample },
        })?;
        // One sample more to warm up, and a bit for what is lost at the ends.
        let length = sample * u64::from(turn.samples + 1) + sample / 2;
        let until = dpdk::tsc().wrapping_add(length);
        let packets = Packets::new(bytes, burst);
        let sent = carry::fill(&mut self.ends.out, &packets, until)?;
        carry::end(&mut self.ends.out)?;
        let each = packets.all().map(look::sum).fold(0, u32::wrapping_add);
        let all = each.wrapping_mul((sent / u64::from(burst)) as u32);
        match self.answer()? {
            Answer::Drained { packets, cycles } if packets == sent => Ok(Samples(cycles)),
            Answer::Read { packets, cycles, sum } if (packets, sum) == (sent, all) => {
                Ok(Samples(cycles))
            }
            _ => Err(Failure::OtherProcess("it has not taken what was sent")),
        }
    }

    /// TSC cycles per packet that came back.
    fn around(&mut self, case: Case, turn: Turn) -> Result<Samples, Failure> {
        let (bytes, burst) = (case.bytes(), case.burst);
        self.order(&Order::Carry { burst })?;
        let (mut packets, mut wait) = (Packets::new(bytes, burst), Wait::default());
        let mut meter = Meter::new(turn.sample_cycles());
        carry::burst(&mut self.ends.out, &packets)?;
        while meter.samples() <= turn.samples as usize {
            meter.add(carry::carry(&mut self.ends, &mut packets, &mut wait)?);
        }
        carry::collect(&mut self.ends.back, burst.into())?;
        self.end()?;
        Ok(Samples(meter.finish().1))
    }

    fn end(&mut self) -> Result<(), Failure> {
        carry::end(&mut self.ends.out)?;
        match self.answer()? {
            Answer::Carried => Ok(()),
            _ => Err(Failure::OtherProcess("it answers something else")),
        }
    }

    /// Nanoseconds of round trips of one packet.
    pub(super) fn trips(&mut self, size: u16) -> Result<Samples, Failure> {
        machine::on(self.cores[0], || {
            let bytes = Case { way: Way::Around, size, burst: 1 }.bytes();
            self.order(&Order::Carry { burst: 1 })?;
            let packets = Packets::new(bytes, 1);
            let mut samples = Samples::default();
            for _ in 0..TRIPS {
                let begin = dpdk::tsc();
                carry::burst(&mut self.ends.out, &packets)?;
                carry::collect(&mut self.ends.back, 1)?;
                samples.0.push(nanoseconds(dpdk::tsc().wrapping_sub(begin)));
            }
            self.end()?;
            Ok(samples)
        })
    }

    /// From the push of packets, so far apart, to the look of a process that slept.
    pub(super) fn wake_ups(&mut self, packets: u32, pause: Duration) -> Result<WakeUps, Failure> {
        let [core, other] = self.cores;
        let bare = wake::bare([core, other], packets, pause)?;
        let bare = Samples(bare.into_iter().map(nanoseconds).collect());
        machine::on(core, || {
            self.order(&Order::Sleep { packets })?;
            wake::send(&mut self.ends, packets, pause)?;
            let Answer::Woken { cycles, sleeps } = self.answer()? else {
                return Err(Failure::OtherProcess("it answers something else"));
            };
            let samples = Samples(cycles.into_iter().map(nanoseconds).collect());
            Ok(WakeUps { pause, samples, bare, slept: f64::from(sleeps) / f64::from(packets) })
        })
    }
}

impl Contestant for Ours {
    fn turn(&mut self, case: Case, turn: Turn) -> Result<f64, Failure> {
        let cycles = machine::on(self.cores[0], || match case.way {
            Way::Copied | Way::InPlace => self.one_way(case, turn),
            Way::Around => self.around(case, turn),
        })?;
        Ok(dpdk::tsc_hz() as f64 / cycles.median())
    }
}

fn nanoseconds(cycles: u64) -> f64 {
    cycles as f64 * 1e9 / dpdk::tsc_hz() as f64
}

impl Drop for Ours {
    fn drop(&mut self) {
        // Without orders it ends by itself; one that is stuck gives up after a while.
        self.line = None;
        let _ = self.child.wait();
    }
}
