//! What is to be kept, gathered part by part: packets and the API have their turns meanwhile.

use std::collections::HashSet;
use std::io;
use std::net::IpAddr;

use control::api::{NeighborState, Saved};
use control::state::{KeptNeighbor, KeptPort, Record, Writer};
use forward::rib::Place;
use forward::state::VrfId;
use tokio::task::yield_now;

use crate::daemon::{Daemon, Entering};

/// Entries that are looked at in one step: about a millisecond.
const STEP: usize = 512;

/// State that is being gathered.
struct Gathering {
    writer: Writer<Vec<u8>>,
    counts: Saved,
    too_long: u64,
}

/// Gathers everything. Nothing of it is changed meanwhile, as `entering` shows.
///
/// Errors: a value that can't be written as text.
pub(super) async fn gather(entering: &Entering) -> io::Result<(Vec<u8>, Saved)> {
    let writer = Writer::new(Vec::new())?;
    let mut gathering = Gathering { writer, counts: Saved::default(), too_long: 0 };
    gathering.small(&entering.lock())?;
    gathering.neighbors(entering).await?;
    gathering.routes(entering).await?;
    gathering.flows(entering).await?;
    if gathering.too_long > 0 {
        tracing::warn!("{} entries are too long to be kept", gathering.too_long);
    }
    let bytes = gathering.writer.finish()?;
    let counts = Saved { bytes: bytes.len() as u64, ..gathering.counts };
    Ok((bytes, counts))
}

impl Gathering {
    fn record(&mut self, record: &Record) -> io::Result<()> {
        if !self.writer.record(record)? {
            self.too_long += 1;
            return Ok(());
        }
        let Saved { routes, neighbors, learned, flows, functions, .. } = &mut self.counts;
        match record {
            Record::Port(_) | Record::Lease(_) => {}
            Record::Neighbor(neighbor) if neighbor.learned => *learned += 1,
            Record::Neighbor(_) => *neighbors += 1,
            Record::Route(_) => *routes += 1,
            Record::Flow(_) => *flows += 1,
            Record::Function(_) => *functions += 1,
        }
        Ok(())
    }

    /// Of what there are few: ports, functions, leases.
    fn small(&mut self, daemon: &Daemon) -> io::Result<()> {
        for port in daemon.ports.iter() {
            let Some(mac) = port.mac_to_keep() else { continue };
            let name = port.config.name.clone();
            let device = port.config.device.as_str().to_owned();
            self.record(&Record::Port(KeptPort { name, device, mac }))?;
        }
        for asked in daemon.functions.asked() {
            self.record(&Record::Function(asked.clone()))?;
        }
        for lease in daemon.sessions.kept_leases() {
            self.record(&Record::Lease(lease))?;
        }
        Ok(())
    }

    async fn neighbors(&mut self, entering: &Entering) -> io::Result<()> {
        let (list, configured) = {
            let daemon = entering.lock();
            let fixed = daemon.config.static_neighbors.iter();
            let fixed: HashSet<(String, IpAddr)> =
                fixed.map(|one| (one.interface.clone(), one.address)).collect();
            (daemon.routing.neighbors(), fixed)
        };
        for part in list.chunks(STEP) {
            for neighbor in part {
                let Some(mac) = neighbor.mac else { continue };
                let learned = neighbor.state != NeighborState::Static;
                let key = (neighbor.interface.clone(), neighbor.address);
                if learned || !configured.contains(&key) {
                    let (interface, address) = key;
                    let kept = KeptNeighbor { interface, address, mac, learned };
                    self.record(&Record::Neighbor(kept))?;
                }
            }
            yield_now().await;
        }
        Ok(())
    }

    async fn routes(&mut self, entering: &Entering) -> io::Result<()> {
        let (configured, vrfs): (HashSet<Place>, Vec<VrfId>) = {
            let daemon = entering.lock();
            let routing = &daemon.routing;
            let routes = daemon.config.static_routes.iter();
            let places = routes.map(|route| routing.place(route));
            (places.flatten().collect(), routing.rib().vrfs().collect())
        };
        for (vrf, six) in vrfs.into_iter().flat_map(|vrf| [(vrf, false), (vrf, true)]) {
            let mut after = None;
            loop {
                let routes = {
                    let daemon = entering.lock();
                    let found = daemon.routing.rib().routes((vrf, None), six, after, STEP);
                    let Some(last) = found.last() else { break };
                    after = Some(last.place.prefix);
                    let asked = found.iter().filter(|route| {
                        let place = &route.place;
                        !place.source.is_implied()
                            && !configured.contains(place)
                            && !daemon.routing.is_from_file(place)
                    });
                    asked.filter_map(|route| daemon.routing.shown(route)).collect::<Vec<_>>()
                };
                for route in routes {
                    self.record(&Record::Route(route))?;
                }
                yield_now().await;
            }
        }
        Ok(())
    }

    async fn flows(&mut self, entering: &Entering) -> io::Result<()> {
        let mut after = None;
        loop {
            let (flows, last) = {
                let daemon = entering.lock();
                let names = (&daemon.config, &daemon.ports, &daemon.routing);
                daemon.flows.asked(names, after, STEP)
            };
            for flow in flows {
                self.record(&Record::Flow(flow))?;
            }
            if last.is_none() {
                return Ok(());
            }
            after = last;
            yield_now().await;
        }
    }
}
