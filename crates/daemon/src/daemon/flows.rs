//! Flows changed part by part, so that a long list stalls neither packets nor the API, and with a way back.

use control::config::{Flow, FlowKey};
use tokio::task::yield_now;

use super::Entering;
use crate::flows::{Entered, FlowError, Names, tuple};

/// Flows that are changed in one step: a few milliseconds.
const STEP: usize = 2048;

impl Entering {
    /// Enters flows that somebody asks for: all of them or, on an error, none. Gives what was entered.
    pub(crate) async fn add_flows(&self, list: &[Flow]) -> Result<Vec<Entered>, FlowError> {
        let mut entered = Vec::with_capacity(list.len());
        for (part, first) in list.chunks(STEP).zip((0..).step_by(STEP)) {
            let added = {
                let mut daemon = self.lock();
                let daemon = &mut *daemon;
                let (config, ports, routing) = (&daemon.config, &daemon.ports, &daemon.routing);
                daemon.flows.add(Names { config, ports, routing }, part)
            };
            match added {
                Ok(added) => entered.extend(added),
                Err(error) => {
                    self.take_back_flows(entered).await;
                    return Err(error.behind(first));
                }
            }
            yield_now().await;
        }
        for part in entered.chunks(STEP) {
            self.lock().flows.asked_for(part);
            yield_now().await;
        }
        Ok(entered)
    }

    /// Takes back what was entered, the last first.
    pub(crate) async fn take_back_flows(&self, mut entered: Vec<Entered>) {
        while !entered.is_empty() {
            let part = entered.split_off(entered.len().saturating_sub(STEP));
            {
                let mut daemon = self.lock();
                let interfaces = daemon.routing.interfaces();
                daemon.flows.take_back(part, &interfaces);
            }
            yield_now().await;
        }
    }

    /// Removes flows. Gives how many: one may be named twice.
    ///
    /// Errors: the place in the list of one that is not there, and none was removed.
    pub(crate) async fn remove_flows(&self, list: &[FlowKey]) -> Result<u64, usize> {
        for (part, first) in list.chunks(STEP).zip((0..).step_by(STEP)) {
            let missing = {
                let daemon = self.lock();
                let has = |key: &FlowKey| tuple(key).is_some_and(|tuple| daemon.flows.has(&tuple));
                part.iter().position(|key| !has(key))
            };
            if let Some(at) = missing {
                return Err(first + at);
            }
            yield_now().await;
        }
        let mut removed = 0;
        for part in list.chunks(STEP) {
            {
                let flows = &mut self.lock().flows;
                let gone = part.iter().filter_map(tuple);
                removed += gone.map(|tuple| u64::from(flows.remove(&tuple))).sum::<u64>();
            }
            yield_now().await;
        }
        Ok(removed)
    }

    /// Removes every flow. Gives how many there were.
    pub(crate) async fn clear_flows(&self) -> u64 {
        let (mut place, mut removed) = (0, 0);
        loop {
            // A step of its own, so that nobody waits for the lock while others have their turn.
            let step = self.lock().flows.retain(place, STEP, |_| false);
            let Some((behind, gone)) = step else { return removed };
            place = behind;
            removed += gone;
            yield_now().await;
        }
    }
}
