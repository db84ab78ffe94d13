//! The process whose threads sleep, in every way that there is.

use std::ffi::c_int;
use std::io::{IoSlice, IoSliceMut};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use host::{Domain, Errno, Incoming, Mask, Outgoing};
use libc::{epoll_event, pollfd};

use super::{END, PATIENCE, PORT, READY, Random, SLEEPERS};
use crate::address::id;
use crate::clock::Alarm;
use crate::hooks::{epoll, poll};
use crate::process::{self, Shared};
use crate::sleeping::wait_ready;
use crate::state::Place;

/// Wake-ups for nothing.
static SPURIOUS: AtomicU64 = AtomicU64::new(0);
/// Sleeps, and those that their own time ended.
static SLEEPS: AtomicU64 = AtomicU64::new(0);
static TIMES: AtomicU64 = AtomicU64::new(0);
/// Events of the kernel's files: made and seen.
static MADE: AtomicU64 = AtomicU64::new(0);
static SEEN: AtomicU64 = AtomicU64::new(0);

pub(super) fn run(steps: u64) {
    let shared = process::attached().expect("the daemon's place is taken");
    let ended = AtomicBool::new(false);
    let sleepers = (0..SLEEPERS).map(|number| Sleeper::open(shared, number as u16));
    let sleepers: Vec<Sleeper> = sleepers.collect();
    // However late the thread that makes the others gets a core.
    sleepers.iter().for_each(|sleeper| make_kernel_event(sleeper.file));
    thread::scope(|scope| {
        let files: Vec<c_int> = sleepers.iter().map(|sleeper| sleeper.file).collect();
        let answer = |sleeper: Sleeper| scope.spawn(|| sleeper.answer());
        let sleepers: Vec<_> = sleepers.into_iter().map(answer).collect();
        let maker = scope.spawn(|| make_kernel_events(files, &ended));
        let answered: Vec<_> = sleepers.into_iter().map(|sleeper| sleeper.join()).collect();
        ended.store(true, Ordering::Relaxed);
        maker.join().unwrap();
        let answered: u64 = answered.into_iter().map(|answered| answered.unwrap()).sum();
        assert_eq!(answered, steps);
    });
    let [spurious, sleeps, times, made, seen] =
        [&SPURIOUS, &SLEEPS, &TIMES, &MADE, &SEEN].map(|count| count.load(Ordering::Relaxed));
    println!(
        "{sleeps} waits, {times} of them ended by their own time; {made} events of the kernel's files, {seen} seen; \
         {spurious} wake-ups for nothing"
    );
    assert_eq!(spurious, 0);
    assert!(seen > 0);
}

/// Something happens to a file of the kernel's.
fn make_kernel_event(file: c_int) {
    // SAFETY: no memory is involved.
    unsafe { libc::eventfd_write(file, 1) };
    MADE.fetch_add(1, Ordering::Relaxed);
}

/// At random times something happens to the files of the kernel's that sleepers watch as well.
fn make_kernel_events(files: Vec<c_int>, ended: &AtomicBool) {
    let mut random = Random(77);
    while !ended.load(Ordering::Relaxed) {
        make_kernel_event(files[random.below(files.len() as u64) as usize]);
        thread::sleep(Duration::from_micros(50 + random.below(2_000)));
    }
}

struct Sleeper {
    shared: &'static Shared,
    /// Of the session.
    fd: c_int,
    epoll: c_int,
    /// Of the kernel's.
    file: c_int,
    random: Random,
}

impl Sleeper {
    fn open(shared: &'static Shared, number: u16) -> Self {
        let mut state = shared.lock();
        let fd = state.placeholder().unwrap();
        state.sessions.open_datagrams(id(fd), Domain::V4, &[]).unwrap();
        let local = format!("192.0.2.1:{}", PORT + number).parse().unwrap();
        state.sessions.bind(id(fd), local).unwrap();
        state.occupy(fd, Place { flags: libc::O_NONBLOCK, ..Place::default() });
        drop(state);
        // SAFETY: events that live until the calls return.
        let (epoll, file) = unsafe {
            let file = libc::eventfd(0, libc::EFD_NONBLOCK);
            let instance = epoll::epoll_create1(0);
            for (fd, word) in [(fd, 1), (file, 2)] {
                let mut event = epoll_event { events: libc::EPOLLIN as u32, u64: word };
                let added = epoll::epoll_ctl(instance, libc::EPOLL_CTL_ADD, fd, &raw mut event);
                assert_eq!(added, 0);
            }
            (instance, file)
        };
        Self { shared, fd, epoll, file, random: Random(u64::from(number) + 1) }
    }

    /// Answers until it is told to end. Gives how often.
    fn answer(mut self) -> u64 {
        let mut expected = 0;
        self.send(READY);
        loop {
            let Some(number) = self.receive() else {
                self.sleep();
                continue;
            };
            if number == END {
                return expected;
            }
            assert_eq!(number, expected);
            expected += 1;
            self.random.dawdle(200);
            self.send(number);
        }
    }

    fn send(&self, number: u64) {
        let mut state = self.shared.lock();
        let to = Some("192.0.2.9:9".parse().unwrap());
        let source = Some([192, 0, 2, 1].into());
        let outgoing = Outgoing { to, source, ..Outgoing::default() };
        let bytes = number.to_be_bytes();
        state.sessions.send(id(self.fd), &[IoSlice::new(&bytes)], outgoing).unwrap();
        state.turn();
    }

    fn receive(&self) -> Option<u64> {
        let mut bytes = [0; 8];
        let targets = &mut [IoSliceMut::new(&mut bytes)];
        match self.shared.lock().sessions.recv(id(self.fd), targets, Incoming::default()) {
            Ok(_) => Some(u64::from_be_bytes(bytes)),
            Err(error) => {
                assert_eq!(error, Errno::AGAIN);
                None
            }
        }
    }

    /// Sleeps in some way until the session is ready, something else happens, or the time is over.
    fn sleep(&mut self) {
        let is_long = self.random.below(4) > 0;
        let begin = Instant::now();
        SLEEPS.fetch_add(1, Ordering::Relaxed);
        let (woken, time) = match self.random.below(3) {
            0 => self.sleep_in_call(is_long),
            1 => self.sleep_in_epoll(is_long),
            _ => self.sleep_in_poll(is_long),
        };
        if woken {
            return;
        }
        TIMES.fetch_add(1, Ordering::Relaxed);
        assert!(!is_long, "asleep for {PATIENCE} s: a wake-up was lost");
        if begin.elapsed() < time {
            SPURIOUS.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn is_ready(&self) -> bool {
        self.shared.lock().is_ready(self.fd, Mask::IN)
    }

    /// As a call that blocks does.
    fn sleep_in_call(&mut self, is_long: bool) -> (bool, Duration) {
        let time = if is_long { PATIENCE * 1_000_000_000 } else { self.random.below(100_000) };
        let alarm = Alarm::after(time);
        let state = self.shared.lock();
        let (state, waited) = wait_ready(self.shared, state, self.fd, Mask::IN, alarm).unwrap();
        drop(state);
        let woken = waited.unwrap();
        if woken && !self.is_ready() {
            SPURIOUS.fetch_add(1, Ordering::Relaxed);
        }
        (woken, Duration::from_nanos(time))
    }

    fn sleep_in_epoll(&mut self, is_long: bool) -> (bool, Duration) {
        let time = if is_long { PATIENCE * 1000 } else { self.random.below(2) };
        let mut events = [epoll_event { events: 0, u64: 0 }; 4];
        let (to, most) = (events.as_mut_ptr(), self.random.below(3) as c_int + 1);
        // SAFETY: room for so many events.
        let count = unsafe { epoll::epoll_wait(self.epoll, to, most, time as c_int) };
        assert!(count >= 0);
        for event in &events[..count as usize] {
            let word = event.u64;
            let for_nothing = if word == 2 { !self.take_kernel_event() } else { !self.is_ready() };
            SPURIOUS.fetch_add(u64::from(for_nothing), Ordering::Relaxed);
        }
        (count > 0, Duration::from_millis(time))
    }

    fn sleep_in_poll(&mut self, is_long: bool) -> (bool, Duration) {
        let time = if is_long { PATIENCE * 1000 } else { self.random.below(2) };
        let mut files =
            [self.fd, self.file].map(|fd| pollfd { fd, events: libc::POLLIN, revents: 0 });
        // SAFETY: two files.
        let count = unsafe { poll::poll(files.as_mut_ptr(), 2, time as c_int) };
        assert!(count >= 0);
        let for_nothing = (files[0].revents != 0 && !self.is_ready())
            || (files[1].revents != 0 && !self.take_kernel_event());
        SPURIOUS.fetch_add(u64::from(for_nothing), Ordering::Relaxed);
        (count > 0, Duration::from_millis(time))
    }

    fn take_kernel_event(&self) -> bool {
        let mut count = 0;
        // SAFETY: room for the count.
        let taken = unsafe { libc::eventfd_read(self.file, &raw mut count) } == 0;
        SEEN.fetch_add(count, Ordering::Relaxed);
        taken
    }
}
