//! Waiting for sessions, whose events are in memory, and for files of the kernel's: polling both all the time, sleeping at
//! once, and looking for as long as it pays before sleeping where either wakes.

use std::hint::{black_box, spin_loop};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::time::{ClockId, clock_gettime};
use shm::{Doorbell, SleepWord, Spin};

use crate::failure::Failure;
use crate::machine;
use crate::results::{Better, Outcome, Samples};
use crate::terminal::Parts;
use crate::turns::Rounds;

use super::Extent;

/// Events per second.
const RATES: [u32; 4] = [0, 1_000, 10_000, 100_000];
/// Above so many, the sender does not sleep between two.
const SLEEPLESS: u32 = 5_000;
/// The longest sleep.
const LONGEST: Duration = Duration::from_millis(50);
/// Checks that are timed.
const CHECKS: u32 = 20_000;

/// How a worker waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Polls,
    Sleeps,
    Unified,
}

impl Way {
    const ALL: [Self; 3] = [Self::Polls, Self::Sleeps, Self::Unified];

    fn name(self) -> &'static str {
        match self {
            Self::Polls => "polling",
            Self::Sleeps => "sleeping at once",
            Self::Unified => "unified blocking",
        }
    }
}

/// What worker and sender share.
struct Shared {
    /// Events so far, and when the last one was made: TSC cycles.
    count: AtomicU64,
    made: AtomicU64,
    word: AtomicU32,
    bell: Doorbell,
    stop: AtomicBool,
}

/// A turn: CPU time per second of the worker, and latency: us.
struct Turn {
    cpu: f64,
    latency: Samples,
}

/// Steps of the bar: turns.
pub(super) fn steps(extent: Extent) -> usize {
    RATES.len() * Way::ALL.len() * extent.rounds as usize
}

pub(super) fn measure(extent: Extent, bar: &Parts) -> Result<Vec<Outcome>, Failure> {
    let mut outcomes = checks(extent)?;
    for rate in RATES {
        let rounds = Rounds::take(&Way::ALL, extent.rounds, |way| {
            let turn = turn(way, rate, extent.time);
            bar.step();
            turn
        })?;
        let polling = rounds.samples(Way::Polls, |turn| turn.cpu);
        for (way, turns) in rounds.into_turns() {
            let parameters = [("way", way.name().into()), ("events/s", rate.into())];
            let cpu = Samples(turns.iter().map(|turn| turn.cpu).collect());
            let cpu = Outcome::new("CPU of a waiting worker", "cores", cpu).with(&parameters);
            outcomes.push(match way {
                Way::Polls => cpu,
                _ => cpu.beside(Way::Polls.name(), &polling, Better::Less),
            });
            let latency = Samples(turns.into_iter().flat_map(|turn| turn.latency.0).collect());
            if !latency.0.is_empty() {
                outcomes
                    .push(Outcome::new("from event to worker", "us", latency).with(&parameters));
            }
        }
    }
    Ok(outcomes)
}

/// What a check for events of the kernel's files costs.
fn checks(extent: Extent) -> Result<Vec<Outcome>, Failure> {
    let (epoll, _file) = kernel_side()?;
    let flag = AtomicU32::new(0);
    let (mut calls, mut loads) = (Samples::default(), Samples::default());
    let each = |begin: Instant| begin.elapsed().as_nanos() as f64 / f64::from(CHECKS);
    for _ in 0..extent.rounds {
        let begin = Instant::now();
        for _ in 0..CHECKS {
            has_kernel_events(&epoll)?;
        }
        calls.0.push(each(begin));
        let begin = Instant::now();
        for _ in 0..CHECKS {
            black_box(black_box(&flag).load(Ordering::Acquire));
        }
        loads.0.push(each(begin));
    }
    let outcome = Outcome::new("check for kernel events, a word in memory", "ns", loads);
    Ok(vec![outcome.beside("epoll_wait without waiting", &calls, Better::Less)])
}

/// An epoll instance with a file that never has an event.
fn kernel_side() -> Result<(rustix::fd::OwnedFd, rustix::fd::OwnedFd), Failure> {
    let make = || {
        let file = eventfd(0, EventfdFlags::CLOEXEC)?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &file, EventData::new_u64(0), EventFlags::IN)?;
        Ok((epoll, file))
    };
    make().map_err(|error: rustix::io::Errno| std::io::Error::from(error).into())
}

fn has_kernel_events(epoll: &rustix::fd::OwnedFd) -> Result<bool, Failure> {
    let mut events = [const { std::mem::MaybeUninit::uninit() }; 1];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let found = epoll::wait(epoll, &mut events, Some(&now)).map_err(std::io::Error::from)?;
    Ok(!found.0.is_empty())
}

fn turn(way: Way, rate: u32, time: Duration) -> Result<Turn, Failure> {
    let [first, last] = machine::outermost();
    let shared = Shared {
        count: AtomicU64::new(0),
        made: AtomicU64::new(0),
        word: AtomicU32::new(0),
        bell: Doorbell::new()?,
        stop: AtomicBool::new(false),
    };
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            machine::pin(last)?;
            work(&shared, way)
        });
        let sent = machine::on(first, || {
            send(&shared, rate, time);
            Ok(())
        });
        shared.stop.store(true, Ordering::Release);
        let turn = worker.join().map_err(|_| Failure::Thread)??;
        sent.map(|()| turn)
    })
}

/// Makes events for so long, as many as it should by then.
fn send(shared: &Shared, rate: u32, time: Duration) {
    let begin = Instant::now();
    let mut made = 0.0;
    while begin.elapsed() < time {
        if begin.elapsed().as_secs_f64() * f64::from(rate) >= made + 1.0 {
            made += 1.0;
            shared.made.store(dpdk::tsc(), Ordering::Relaxed);
            shared.count.fetch_add(1, Ordering::Release);
            shared.bell.ring(SleepWord::new(&shared.word));
        } else if rate < SLEEPLESS {
            thread::sleep(Duration::from_micros(100));
        } else {
            spin_loop();
        }
    }
}

fn work(shared: &Shared, way: Way) -> Result<Turn, Failure> {
    let (epoll, _file) = kernel_side()?;
    let word = SleepWord::new(&shared.word);
    let per_us = dpdk::tsc_hz() as f64 / 1e6;
    let (mut seen, mut latency, mut spin) = (0, Samples::default(), Spin::default());
    let has_more = |seen| shared.count.load(Ordering::Acquire) != seen;
    let (begin, before) = (Instant::now(), cpu_time());
    while !shared.stop.load(Ordering::Acquire) {
        if has_more(seen) {
            let cycles = dpdk::tsc().wrapping_sub(shared.made.load(Ordering::Relaxed));
            latency.0.push(cycles as f64 / per_us);
            seen = shared.count.load(Ordering::Acquire);
            continue;
        }
        match way {
            Way::Polls => {
                has_kernel_events(&epoll)?;
            }
            Way::Sleeps => sleep(shared, word, &epoll, || has_more(seen)),
            Way::Unified => {
                if look(spin.budget(), || has_more(seen)) {
                    spin.found();
                } else {
                    let begin = Instant::now();
                    sleep(shared, word, &epoll, || has_more(seen));
                    spin.slept(begin.elapsed().as_nanos() as u64);
                }
            }
        }
    }
    let cpu = (cpu_time() - before) / begin.elapsed().as_secs_f64();
    Ok(Turn { cpu, latency })
}

/// Looks for so long: ns.
fn look(budget: u64, has_more: impl Fn() -> bool) -> bool {
    let begin = Instant::now();
    while budget > 0 && (begin.elapsed().as_nanos() as u64) < budget {
        if has_more() {
            return true;
        }
        spin_loop();
    }
    false
}

fn sleep(
    shared: &Shared,
    word: SleepWord<'_>,
    epoll: &rustix::fd::OwnedFd,
    has_more: impl Fn() -> bool,
) {
    word.announce();
    if !has_more() {
        shared.bell.wait(&[epoll.as_fd()], LONGEST);
    }
    word.withdraw();
}

/// Of this thread: s.
fn cpu_time() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}
