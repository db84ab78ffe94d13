//! Random steps of sleeping and waking: a process with the real stack and what waits for it, and this one in the daemon's
//! place. Datagrams go back and forth, which nobody sends again: a wake-up that is lost is lost for good.

mod daemon;
mod mute;
mod news;
mod sleeper;

use std::process::{Child, Command};

use daemon::Daemon;

/// How many steps the other process makes.
const STEPS: &str = "MILLRACE_TEST_STEPS";
/// Threads that sleep, each with a socket of its own.
const SLEEPERS: usize = 3;
/// The port of the first.
const PORT: u16 = 1000;
/// Bytes of headers of a datagram.
const HEADERS: usize = 28;
/// What a sleeper sends when all of them are bound.
const READY: u64 = u64::MAX - 1;
/// What ends a sleeper.
const END: u64 = u64::MAX;
/// After so long a wake-up is lost: s.
const PATIENCE: u64 = 30;

/// What a seed makes of it (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }

    /// Does nothing for up to so many turns of a loop.
    fn dawdle(&mut self, most: u64) {
        (0..self.below(most)).for_each(|_| std::hint::spin_loop());
    }
}

/// The other process, which ends with this test.
struct Other(Child);

impl Drop for Other {
    fn drop(&mut self) {
        // It may have ended, and that is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn make_steps(steps: u64) {
    let path = std::env::temp_dir().join(format!("millrace-wake-{}-{steps}", std::process::id()));
    let daemon = Daemon::listen(&path);
    let mut sleeper = Command::new(std::env::current_exe().unwrap());
    sleeper.args(["--exact", "sleeping::tests::sleeper", "--ignored", "--nocapture"]);
    sleeper.env("MILLRACE_SESSIONS", &path).env(STEPS, steps.to_string());
    let mut sleeper = Other(sleeper.spawn().unwrap());
    let slept = daemon.serve().play(steps);
    std::fs::remove_file(&path).unwrap();
    assert!(sleeper.0.wait().unwrap().success());
    println!("{steps} datagrams answered; this side slept {slept} times");
}

#[test]
fn no_wake_up_is_lost_and_none_comes_for_nothing() {
    make_steps(20_000);
}

/// `cargo test --release -p millrace-preload ten_million -- --ignored --nocapture`
#[test]
#[ignore = "takes minutes"]
fn no_wake_up_is_lost_in_ten_million_steps() {
    make_steps(10_000_000);
}

/// The other process.
#[test]
#[ignore = "started by the tests above"]
fn sleeper() {
    // Nothing to do for who runs all ignored tests.
    if let Ok(steps) = std::env::var(STEPS) {
        sleeper::run(steps.parse().unwrap());
    }
}
