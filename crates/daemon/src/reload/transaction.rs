//! A configuration applied as a whole.

use std::collections::BTreeSet;

use control::api::Reloaded;
use control::config::Config;

use super::difference::{hold_fixed, other_changes};
use super::ports::{Plan, PortsDone};
use super::{ReloadError, flows, neighbors, routes};
use crate::clients::Host as _;
use crate::daemon::{Changing, Entering};
use crate::routing::NumbersError;

/// Applies the difference between the configuration in force and another one.
///
/// Errors: [`ReloadError`]; all is as it was.
pub(super) async fn apply(changing: &Changing, mut new: Config) -> Result<Reloaded, ReloadError> {
    let (before, topology) = {
        let daemon = changing.lock();
        (daemon.config.clone(), daemon.routing.topology().clone())
    };
    let at_restart = hold_fixed(&before, &mut new);
    let plan = Plan::of(&changing.lock().ports, &new);
    let mut changes = plan.words();
    // What is opened and changed here is not in force yet, or can be put back.
    let mut ports = PortsDone::default();
    if let Err(error) = ports.prepare(changing, &plan, &new).await {
        ports.take_back(changing).await;
        return Err(error.into());
    }
    // Until here others have changed what tables hold.
    let entering = changing.enter().await;
    let switched = {
        let mut daemon = entering.lock();
        let mut next = topology.clone();
        // What the API has added until now counts.
        let numbered = next.renumber(&new, &daemon.in_use()).map_err(NumbersError::from);
        let numbered =
            numbered.and_then(|()| daemon.routing.open_vrfs(&next).map_err(NumbersError::from));
        if numbered.is_ok() {
            daemon.config = new.clone();
            daemon.routing.set_topology(next);
            ports.switch(&mut daemon.ports, &new);
        }
        numbered
    };
    if let Err(error) = switched {
        drop(entering);
        ports.take_back(changing).await;
        return Err(error.into());
    }
    entering.lock().publish();
    let (mut routes_done, mut flows_done) = (routes::Done::default(), flows::Done::default());
    let mut filled = routes::put_in_force(&entering, &before, &new, &mut routes_done).await;
    if filled.is_ok() {
        filled = flows::put_in_force(&entering, &new, &mut flows_done).await;
    }
    let mut neighbors_done = neighbors::Done::default();
    if filled.is_ok() {
        filled = neighbors::put_in_force(&entering, &before, &new, &mut neighbors_done).await;
    }
    if let Err(error) = filled {
        neighbors::withdraw(&entering, &neighbors_done).await;
        flows::take_back(&entering, flows_done).await;
        {
            let mut daemon = entering.lock();
            ports.switch_back(&mut daemon.ports, &before);
            daemon.config = before.clone();
            // The new configuration may have closed what it does not have.
            if let Err(error) = daemon.routing.open_vrfs(&topology) {
                tracing::error!("{error}");
            }
            daemon.routing.set_topology(topology);
            daemon.publish();
        }
        neighbors::restore(&entering, &before, &neighbors_done).await;
        routes::take_back(&entering, routes_done).await;
        drop(entering);
        ports.take_back(changing).await;
        return Err(error);
    }
    // Nothing of what follows can fail.
    for (count, words) in
        [(routes_done.added, "routes added or changed"), (routes_done.removed, "routes removed")]
    {
        if count > 0 {
            changes.push(format!("{count} {words}"));
        }
    }
    routes::finish(routes_done);
    flows::finish(&entering, flows_done).await;
    // What follows waits for workers and devices.
    drop(entering);
    changing.follow_ports().await;
    ports.finish(changing).await;
    changes.extend(neighbors_done.words());
    {
        let mut daemon = changing.lock();
        daemon.lend_to_clients().apply_client_rules();
        daemon.apply_sessions();
    }
    changing.publish().await;
    changes.extend(other_changes(&before, &new));
    changes.extend(changing.waiting(&before, &new));
    Ok(Reloaded { changes, at_restart })
}

/// Puts the routes and flows of the files in force that the configuration names.
///
/// Errors: [`ReloadError`]; what was loaded until then stays.
pub(super) async fn load_files(entering: &Entering) -> Result<(), ReloadError> {
    let config = entering.lock().config.clone();
    let mut done = routes::Done::default();
    let filled = routes::put_in_force(entering, &config, &config, &mut done).await;
    routes::finish(done);
    filled?;
    let mut done = flows::Done::default();
    flows::put_in_force(entering, &config, &mut done).await?;
    flows::finish(entering, done).await;
    Ok(())
}

impl Changing {
    /// Interfaces and VRFs that this change takes away, and that something names still: it waits until they are back.
    fn waiting(&self, before: &Config, after: &Config) -> Vec<String> {
        let daemon = self.lock();
        let in_use = daemon.in_use();
        let topology = daemon.routing.topology();
        let named: BTreeSet<_> = in_use.interfaces.into_iter().collect();
        let names = named.iter().filter_map(|id| topology.interface_name(*id));
        let gone = names
            .filter(|name| after.interface(name).is_none() && before.interface(name).is_some());
        let interfaces =
            gone.map(|name| format!("what names interface {name} waits until it is back"));
        let named: BTreeSet<_> = in_use.vrfs.into_iter().collect();
        let names = named.iter().filter_map(|id| topology.vrf_name(*id));
        let gone = names.filter(|name| !after.has_vrf(name) && before.has_vrf(name));
        let vrfs = gone.map(|name| format!("routes of VRF {name} and to it wait until it is back"));
        interfaces.chain(vrfs).collect()
    }
}
