//! What was kept, checked as a whole before anything of it is used, and put in force part by part.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufReader, Seek as _, SeekFrom};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use control::api::FunctionAdd;
use control::config::{Config, Flow, Route, StaticNeighbor};
use control::net::MacAddr;
use control::state::{KeptLease, KeptNeighbor, KeptPort, Reader, Record, StateError};
use tokio::sync::mpsc;
use tokio::task::yield_now;

use super::place::{self, Place};
use crate::daemon::{Changing, Entering, RouteChanges};
use crate::flows::Names;

/// Records that are put in force in one step.
const STEP: usize = 512;
/// Parts that wait.
const WAITING: usize = 2;
/// What does not fit is told in so many lines of the log; the rest is counted.
const TOLD: u64 = 10;

/// A file of kept state whose every line makes sense.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    file: Option<(PathBuf, File)>,
    macs: HashMap<(String, String), MacAddr>,
    leases: Vec<KeptLease>,
}

impl Kept {
    /// Finds what was kept, and reads all of it. What is refused is put aside with a line in the log: the daemon starts
    /// without it.
    pub(crate) fn find(place: &Place) -> Self {
        let Some(path) = place.to_recall() else { return Self::default() };
        let opened = place::open(path).map_err(StateError::from);
        let checked = opened.and_then(|file| file.map(|file| Self::check(path, file)).transpose());
        match checked {
            Ok(kept) => kept.unwrap_or_default(),
            Err(error) => {
                let aside = match place::put_aside(path) {
                    Ok(aside) => format!("was renamed to {}", aside.display()),
                    Err(error) => format!("could not be renamed: {error}"),
                };
                let path = path.display();
                tracing::error!("{path}: {error}; the file is ignored, and {aside}");
                Self::default()
            }
        }
    }

    fn check(path: &Path, file: File) -> Result<Self, StateError> {
        let (mut macs, mut leases) = (HashMap::new(), Vec::new());
        for record in Reader::new(BufReader::new(&file))? {
            match record? {
                Record::Port(KeptPort { name, device, mac }) => {
                    macs.insert((name, device), mac);
                }
                Record::Lease(lease) => leases.push(lease),
                _ => {}
            }
        }
        Ok(Self { file: Some((path.to_owned(), file)), macs, leases })
    }

    /// The MAC address that a port with this name and device had.
    pub(crate) fn mac(&self, name: &str, device: &str) -> Option<MacAddr> {
        self.macs.get(&(name.to_owned(), device.to_owned())).copied()
    }

    /// Local ports that processes leased.
    pub(crate) fn leases(&self) -> &[KeptLease] {
        &self.leases
    }

    /// The file.
    pub(super) fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(|(path, _)| path.as_path())
    }

    /// Puts everything in force that fits and that the configuration and its files do not say otherwise. Gives how much
    /// did not fit.
    pub(super) async fn put_in_force(self, changing: &Changing, entering: &Entering) -> u64 {
        let Some((path, file)) = self.file else { return 0 };
        let (sender, mut parts) = mpsc::channel(WAITING);
        let read = move || read(file, &sender);
        let reading = tokio::task::spawn_blocking(read);
        let mut recall = Recall::of(entering);
        while let Some(part) = parts.recv().await {
            recall.part((changing, entering), part).await;
        }
        match reading.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!("{}: {error}", path.display()),
            Err(error) => tracing::error!("{}: {error}", path.display()),
        }
        let Recall { done, beside, left_out, .. } = recall;
        tracing::info!(
            left_out,
            beside,
            "{}: {done} routes, neighbours, flows and functions are back in force",
            path.display()
        );
        left_out
    }
}

/// Reads the records once more, part by part. It is the file that was checked: nothing here writes to one that has its name.
fn read(mut file: File, parts: &mpsc::Sender<Vec<Record>>) -> Result<(), StateError> {
    file.seek(SeekFrom::Start(0))?;
    let mut records = Reader::new(BufReader::new(file))?;
    loop {
        let part: Vec<Record> = records.by_ref().take(STEP).collect::<Result<_, _>>()?;
        if part.is_empty() || parts.blocking_send(part).is_err() {
            return Ok(());
        }
    }
}

/// State that is being put in force.
struct Recall {
    config: Config,
    fixed: HashSet<(String, IpAddr)>,
    done: u64,
    /// Of what the configuration or its files say something else.
    beside: u64,
    /// What does not fit any more.
    left_out: u64,
}

impl Recall {
    fn of(entering: &Entering) -> Self {
        let config = entering.lock().config.clone();
        let fixed = config.static_neighbors.iter();
        let fixed = fixed.map(|one| (one.interface.clone(), one.address)).collect();
        Self { config, fixed, done: 0, beside: 0, left_out: 0 }
    }

    async fn part(&mut self, (changing, entering): (&Changing, &Entering), part: Vec<Record>) {
        let (mut routes, mut flows, mut functions) = (Vec::new(), Vec::new(), Vec::new());
        {
            let mut daemon = entering.lock();
            for record in part {
                match record {
                    Record::Port(_) | Record::Lease(_) => {}
                    Record::Neighbor(neighbor) => self.neighbor(&mut daemon.routing, neighbor),
                    Record::Route(route) => routes.push(route),
                    Record::Flow(flow) => flows.push(flow),
                    Record::Function(function) => functions.push(function),
                }
            }
        }
        self.routes(entering, routes).await;
        self.flows(entering, &flows);
        for function in functions {
            self.function(changing, function).await;
        }
        yield_now().await;
    }

    fn neighbor(&mut self, routing: &mut crate::routing::Routing, kept: KeptNeighbor) {
        let KeptNeighbor { interface, address, mac, learned } = kept;
        if self.fixed.contains(&(interface.clone(), address)) {
            self.beside += 1;
            return;
        }
        let neighbor = StaticNeighbor { interface, address, mac };
        let recalled = if learned {
            // One that has made itself known already is known better than by the file.
            let fits = self.config.check_neighbor(&neighbor).map_err(Into::into);
            fits.and_then(|()| routing.recall_neighbor(&neighbor.interface, address, mac)).map(drop)
        } else {
            routing.add_neighbor(&self.config, &neighbor)
        };
        match recalled {
            Ok(()) => self.done += 1,
            Err(error) => self.leave_out(&format!("neighbour {address}"), &error),
        }
    }

    async fn routes(&mut self, entering: &Entering, routes: Vec<Route>) {
        let (beside, routes): (Vec<Route>, Vec<Route>) = {
            let daemon = entering.lock();
            let has = |route: &Route| {
                let place = daemon.routing.place(route);
                place.is_some_and(|place| daemon.routing.rib().has(place))
            };
            routes.into_iter().partition(has)
        };
        self.beside += beside.len() as u64;
        let mut changes = RouteChanges::default();
        if changes.add(entering, &self.config, &routes).await.is_ok() {
            self.done += routes.len() as u64;
            return;
        }
        // One of them does not fit: each for itself.
        changes.take_back(entering).await;
        for route in routes {
            let mut changes = RouteChanges::default();
            match changes.add(entering, &self.config, std::slice::from_ref(&route)).await {
                Ok(()) => self.done += 1,
                Err(error) => self.leave_out(&format!("route {route}"), &error),
            }
        }
    }

    fn flows(&mut self, entering: &Entering, flows: &[Flow]) {
        let mut daemon = entering.lock();
        let daemon = &mut *daemon;
        for flow in flows {
            let tuple = crate::flows::tuple(&flow.key());
            if tuple.is_some_and(|tuple| daemon.flows.has(&tuple)) {
                self.beside += 1;
                continue;
            }
            let names =
                Names { config: &self.config, ports: &daemon.ports, routing: &daemon.routing };
            match daemon.flows.add(names, std::slice::from_ref(flow)) {
                Ok(entered) => {
                    daemon.flows.asked_for(&entered);
                    self.done += 1;
                }
                Err(error) => {
                    self.leave_out(
                        &format!("flow {} to {}", flow.source, flow.destination),
                        &error,
                    );
                }
            }
        }
    }

    async fn function(&mut self, changing: &Changing, function: FunctionAdd) {
        let file = function.file.escape_debug().to_string();
        match changing.add_function(function).await {
            Ok(_) => self.done += 1,
            Err(error) => self.leave_out(&format!("function {file}"), &error),
        }
    }

    fn leave_out(&mut self, what: &str, error: &dyn std::fmt::Display) {
        self.left_out += 1;
        if self.left_out <= TOLD {
            tracing::warn!("kept {what}: {error}; it is left out");
        }
    }
}
