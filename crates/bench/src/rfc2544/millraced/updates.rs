//! Changes of the daemon's routes while frames pass: each route leads to other next hops in turn, all of which are the tester.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use control::client::{Client, ClientError};
use serde_json::{Value, json};

use super::tables::{Route, all_routes};
use crate::failure::Failure;
use crate::machine;
use crate::rfc2544::scenario::{Millraced, Scenario};

/// Routes that are changed at once.
const MOST: usize = 10_000;
/// Between two changes.
const PAUSE: Duration = Duration::from_millis(10);
/// How long the daemon may take for one.
const PATIENCE: Duration = Duration::from_secs(30);

/// A thread that changes routes until it is dropped.
#[derive(Debug)]
pub(in crate::rfc2544) struct Updates {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    /// Routes changed so far.
    changed: AtomicU64,
    failed: Mutex<Option<String>>,
}

impl Updates {
    /// Begins, at a core, by the daemon's API.
    pub(in crate::rfc2544) fn start(
        scenario: &Scenario,
        daemon: &Millraced,
        socket: PathBuf,
        core: usize,
    ) -> Result<Self, Failure> {
        let routes = [1, 0].map(|first| all_routes(scenario, daemon, first).collect::<Vec<_>>());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (shared, rate) = (Arc::<Shared>::default(), f64::from(daemon.updates));
        let client = Client::new(socket).with_timeout(PATIENCE);
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("updates".into()).spawn(move || {
            // Where it is not let, it changes routes on another core.
            let _ = machine::pin(core);
            if let Err(error) = runtime.block_on(change(&client, &routes, rate, &theirs)) {
                *theirs.failed.lock().unwrap_or_else(PoisonError::into_inner) =
                    Some(error.to_string());
            }
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Routes changed so far.
    ///
    /// # Errors
    /// Why no more are changed.
    pub(in crate::rfc2544) fn changed(&self) -> Result<u64, Failure> {
        let failed = self.shared.failed.lock().unwrap_or_else(PoisonError::into_inner);
        match &*failed {
            Some(why) => Err(Failure::UnderTest(format!("its routes cannot be changed: {why}"))),
            None => Ok(self.shared.changed.load(Ordering::Relaxed)),
        }
    }
}

impl Drop for Updates {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It has said why, if it has failed.
            let _ = thread.join();
        }
    }
}

/// Changes so many routes in a second, or as many as the daemon can.
async fn change(
    client: &Client,
    sets: &[Vec<Route>; 2],
    rate: f64,
    shared: &Shared,
) -> Result<(), ClientError> {
    let mut all = sets.iter().flatten().cycle();
    let mut last = Instant::now();
    while !shared.stop.load(Ordering::Relaxed) {
        tokio::time::sleep(PAUSE).await;
        let due = (last.elapsed().as_secs_f64() * rate) as usize;
        if due == 0 {
            continue;
        }
        last = Instant::now();
        let changes: Vec<Value> = all.by_ref().take(due.min(MOST)).map(as_json).collect();
        let _: Value = client.post("/v1/routes", &changes).await?;
        shared.changed.fetch_add(changes.len() as u64, Ordering::Relaxed);
    }
    Ok(())
}

fn as_json(route: &Route) -> Value {
    let via: Vec<Value> = route.next_hops.iter().map(|hop| json!({ "address": hop })).collect();
    json!({ "prefix": route.prefix, "via": via })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_written_as_the_api_takes_it() {
        let next_hops = ["192.0.2.2", "192.0.2.3"].map(|hop| hop.parse().unwrap()).to_vec();
        let route = Route { prefix: "198.19.0.0/16".into(), next_hops };
        let expected = json!({"prefix": "198.19.0.0/16", "via": [{"address": "192.0.2.2"}, {"address": "192.0.2.3"}]});
        assert_eq!(as_json(&route), expected);
    }

    #[test]
    fn a_daemon_that_is_gone_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("scenario.toml");
        std::fs::write(
            &file,
            "title = \"x\"\ndevice = { kind = \"millraced\", updates = 100000 }\n",
        )
        .unwrap();
        let scenario = Scenario::read(&file).unwrap().remove(0);
        let daemon = scenario.device.millraced().unwrap();
        let socket = folder.path().join("none");
        let updates = Updates::start(&scenario, daemon, socket, machine::cores()[0]).unwrap();
        let begin = Instant::now();
        let why = loop {
            match updates.changed() {
                Err(why) => break why.to_string(),
                Ok(changed) => assert_eq!(changed, 0),
            }
            assert!(begin.elapsed() < Duration::from_secs(60));
            std::thread::sleep(PAUSE);
        };
        assert!(why.contains("no socket"), "{why}");
    }
}
