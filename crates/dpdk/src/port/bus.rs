//! DPDK's buses: adding and removing a device is not safe to call from several threads, and takes as long as its driver likes.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One device's at a time.
pub(super) struct Bus {
    state: Mutex<State>,
    free: Condvar,
}

struct State {
    /// Which device has it, and since when.
    holder: Option<(String, Instant)>,
    /// Ports that have a handle.
    open: Vec<u16>,
}

impl Bus {
    pub(super) const fn new() -> Self {
        let state = State { holder: None, open: Vec::new() };
        Self { state: Mutex::new(state), free: Condvar::new() }
    }

    /// Takes it for a device, however long another one has it.
    pub(super) fn take(&self, device: String) -> Turn<'_> {
        let mut state = self.state();
        while state.holder.is_some() {
            state = self.free.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        self.begin(state, device)
    }

    /// Takes it for a device, unless another one has it for longer than `patience`.
    ///
    /// Errors: which.
    pub(super) fn take_within(
        &self,
        patience: Duration,
        device: String,
    ) -> Result<Turn<'_>, String> {
        let mut state = self.state();
        while let Some((holder, since)) = &state.holder {
            let rest = patience.saturating_sub(since.elapsed());
            if rest.is_zero() {
                return Err(holder.clone());
            }
            let waited = self.free.wait_timeout(state, rest);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        Ok(self.begin(state, device))
    }

    /// Which device has it now.
    pub(super) fn holder(&self) -> Option<String> {
        self.state().holder.as_ref().map(|(device, _)| device.clone())
    }

    fn begin(&self, mut state: MutexGuard<'_, State>, device: String) -> Turn<'_> {
        state.holder = Some((device, Instant::now()));
        Turn(self)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to add and remove a device. Dropping it gives the bus back.
pub(super) struct Turn<'a>(&'a Bus);

impl Turn<'_> {
    /// Notes that a port has a handle. `false`: it had one before.
    pub(super) fn open(&self, port: u16) -> bool {
        let mut state = self.0.state();
        let is_new = !state.open.contains(&port);
        if is_new {
            state.open.push(port);
        }
        is_new
    }

    /// Notes that it has none any more.
    pub(super) fn close(&self, port: u16) {
        self.0.state().open.retain(|open| *open != port);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.state().holder = None;
        self.0.free.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::thread;

    const SHORT: Duration = Duration::from_millis(20);
    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn who_is_kept_waiting_hears_by_whom() {
        let bus = Bus::new();
        let turn = bus.take("tap:a".to_owned());
        let refused = bus.take_within(SHORT, "tap:b".to_owned()).err();
        assert_eq!((refused.as_deref(), bus.holder()), (Some("tap:a"), Some("tap:a".to_owned())));
        drop(turn);
        assert_eq!(bus.holder(), None);
        assert!(bus.take_within(SHORT, "tap:b".to_owned()).is_ok());
    }

    #[test]
    fn devices_take_turns() {
        let bus = Bus::new();
        let turn = bus.take("tap:a".to_owned());
        thread::scope(|scope| {
            let patient = scope.spawn(|| bus.take("tap:b".to_owned()).open(3));
            let hasty = scope.spawn(|| {
                let turn = bus.take_within(PATIENCE, "tap:c".to_owned());
                turn.map(|turn| turn.open(4))
            });
            thread::sleep(SHORT);
            assert!(!patient.is_finished() && !hasty.is_finished());
            assert!(turn.open(3));
            drop(turn);
            assert!(!patient.join().unwrap(), "it has a handle already");
            assert_eq!(hasty.join().unwrap(), Ok(true));
        });
        let turn = bus.take("tap:a".to_owned());
        turn.close(3);
        assert!(turn.open(3) && !turn.open(4));
    }
}
