//! A stack worker's thread.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use graph::Doorbell;
use shm::Spin;

use super::exchange::Exchange;
use super::turns::Turns;
use super::{Job, Tenant};
use crate::clock;
use crate::processes::Sparing;
use crate::service::Pulse;

/// The longest sleep while there are processes: what `show sessions` says is no older.
const LONGEST: Duration = Duration::from_millis(100);
/// The longest while there are none. Nothing depends on it.
const IDLE: Duration = Duration::from_secs(60);
/// The longest while a process waits for something of which nobody rings.
const WAITING: Duration = Duration::from_millis(5);
/// How long it looks for work before it leaves its core to others between two looks: ns. What it waits for may be made by one of
/// them.
///
/// It always does. Other threads that look no longer do for a while once they were away for long ([`shm::Courtesy`]); a stack worker
/// may have been away because a program had much to do for it, and with that rule, short connections were 15 to 30 % fewer
/// (`millrace-bench serve --paths shared --bodies 64 --connections 50 --close`: 31.7 and 38.2 in place of 45.1 thousand; AMD Zen 5,
/// two cores).
const ALONE: u64 = 2_000;

/// The thread's state.
struct Thread {
    tenants: Vec<Tenant>,
    /// Between them.
    exchange: Exchange,
    turns: Turns,
    jobs: Receiver<Job>,
    bell: Arc<Doorbell>,
    spin: Spin,
    pulse: Pulse,
    /// What the log says of processes: each may come again as often as it likes.
    log: Sparing,
}

/// Starts one.
///
/// Errors: no thread.
pub(super) fn start(
    number: u16,
    jobs: Receiver<Job>,
    bell: Arc<Doorbell>,
    pulse: Pulse,
) -> io::Result<()> {
    let thread = std::thread::Builder::new().name(format!("stack-{number}"));
    let run = move || {
        let (tenants, exchange, turns) = (Vec::new(), Exchange::default(), Turns::default());
        let (spin, log) = (Spin::default(), Sparing::default());
        Thread { tenants, exchange, turns, jobs, bell, spin, pulse, log }.run();
    };
    thread.spawn(run).map(drop)
}

impl Thread {
    /// Until the daemon ends.
    fn run(mut self) {
        loop {
            self.pulse.works();
            let Ok(mut work) = self.obey() else { return };
            let now = clock::now();
            work += self.round(now);
            work += usize::from(self.exchange.take_busy());
            self.evict();
            if work == 0 && !self.look() && self.sleep(now).is_err() {
                return;
            }
        }
    }

    /// The processes have their turns, as far as their users have time left. Gives how much there was to do.
    fn round(&mut self, mut now: u64) -> usize {
        let Self { tenants, exchange, turns, .. } = self;
        let mut work = 0;
        for place in turns.begin(tenants.len()) {
            let Some(tenant) = tenants.get_mut(place) else { continue };
            let uid = tenant.uid();
            if !turns.has(place, uid) {
                // It may have something to do: there is no sleep before the next round.
                work += 1;
                continue;
            }
            work += tenant.round(now, exchange);
            let after = clock::now();
            turns.spend(uid, after.saturating_sub(now));
            now = after;
        }
        work
    }

    /// Does what it was told. Gives how much there was; an error when nobody can tell it anything any more.
    fn obey(&mut self) -> Result<usize, ()> {
        let mut count = 0;
        loop {
            match self.jobs.try_recv() {
                Ok(Job::Come(arrival)) => {
                    let dismissal = arrival.dismissal.clone();
                    match Tenant::new(*arrival, &mut self.exchange) {
                        Some(tenant) => self.tenants.push(tenant),
                        None => dismissal.dismiss("its stack worker has no room for it"),
                    }
                }
                Ok(Job::Go(number, heir)) => {
                    let mut all = self.tenants.iter_mut();
                    // Of one that is not here nothing is left.
                    if let Some(tenant) = all.find(|tenant| tenant.number() == number) {
                        tenant.leave_to(heir);
                        self.exchange.shut(tenant.path());
                    }
                }
                Err(TryRecvError::Empty) => return Ok(count),
                Err(TryRecvError::Disconnected) => return Err(()),
            }
            count += 1;
        }
    }

    /// Those who do not keep to the protocol go: their connections are reset when the control thread hears of it. So do those whose
    /// process is gone, when somebody has all that it has left.
    fn evict(&mut self) {
        let Self { tenants, log, .. } = self;
        for tenant in tenants.iter().filter(|tenant| tenant.is_broken()) {
            log.say("processes that break the protocol", || {
                tracing::warn!("stack {}: its process breaks the protocol", tenant.number());
            });
            tenant.dismiss();
        }
        self.end(|tenant| tenant.is_broken() || tenant.has_left());
    }

    /// Some leave: what others have sent them and will send goes by the network.
    fn end(&mut self, leaves: impl Fn(&Tenant) -> bool) {
        let Self { tenants, exchange, .. } = self;
        while let Some(at) = tenants.iter().position(&leaves) {
            let path = tenants.remove(at).path();
            exchange.leave(path);
            tenants.iter_mut().for_each(|other| other.end_path(path, exchange));
        }
    }

    /// Looks for work for as long as that has paid so far. Gives whether there is some.
    fn look(&mut self) -> bool {
        let budget = self.spin.budget();
        if budget == 0 {
            return false;
        }
        let begin = clock::now();
        let mut now = begin;
        while now < begin + budget {
            if self.tenants.iter().any(Tenant::has_work) {
                self.spin.found();
                return true;
            }
            if now < begin + ALONE {
                (0..8).for_each(|_| std::hint::spin_loop());
            } else {
                std::thread::yield_now();
            }
            now = clock::now();
        }
        false
    }

    /// Sleeps until there is something to do. An error when nobody can tell it anything any more.
    fn sleep(&mut self, now: u64) -> Result<(), ()> {
        self.bell.announce();
        let told = self.obey()? > 0;
        let cycles = dpdk::tsc();
        let mut idle = !told;
        for tenant in &mut self.tenants {
            idle &= tenant.arm(cycles);
        }
        if idle {
            let waits = self.tenants.iter_mut().any(Tenant::is_waiting);
            let longest = match () {
                () if waits => WAITING,
                () if self.tenants.is_empty() => IDLE,
                () => LONGEST,
            };
            let due = self.tenants.iter_mut().filter_map(Tenant::deadline).min();
            let due = due.map_or(longest, |due| Duration::from_nanos(due.saturating_sub(now)));
            let doors: Vec<_> = self.tenants.iter().flat_map(Tenant::doors).collect();
            let begin = clock::now();
            self.pulse.rests();
            self.bell.wait(&doors, due.min(longest));
            self.pulse.works();
            let is_work = self.tenants.iter().any(Tenant::has_work);
            self.spin.slept(if is_work { clock::now() - begin } else { u64::MAX });
        }
        self.bell.awake();
        let cycles = dpdk::tsc();
        self.tenants.iter_mut().for_each(|tenant| tenant.awake(cycles));
        Ok(())
    }
}
