//! Static routes changed part by part, so that a full Internet table stalls neither packets nor the API, and with
//! a way back.

use control::config::{Config, Route};
use forward::rib::{self, ApplyError, Change, RouteError, Source};

use super::Changing;
use crate::routing::{Place, RoutesError, Routing};

/// Routes that are changed in one step: about a millisecond.
const STEP: usize = 512;

/// What was changed, and how it is undone.
#[derive(Debug, Default)]
pub(crate) struct RouteChanges {
    undo: Vec<Change>,
    /// Routes that are new.
    pub(crate) added: usize,
    /// Routes that replaced another of their prefix.
    pub(crate) replaced: usize,
    /// Routes that are gone.
    pub(crate) removed: usize,
}

impl RouteChanges {
    /// Adds or replaces routes.
    ///
    /// Errors: [`RoutesError`]; [`Self::take_back`] undoes what was done until then.
    pub(crate) async fn add(
        &mut self,
        changing: &Changing,
        config: &Config,
        list: &[Route],
    ) -> Result<(), RoutesError> {
        for (part, first) in list.chunks(STEP).zip((0..).step_by(STEP)) {
            self.add_part(&mut changing.lock().routing, config, part, first)?;
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    fn add_part(
        &mut self,
        routing: &mut Routing,
        config: &Config,
        part: &[Route],
        first: usize,
    ) -> Result<(), RoutesError> {
        let mut changes = Vec::with_capacity(part.len());
        let mut undo = Vec::with_capacity(part.len());
        for (at, route) in (first..).zip(part) {
            config.check_route(route).map_err(|error| RoutesError::Unfit { at, error })?;
            let new = routing.route(route)?;
            let before = undo_of(routing, (new.vrf, new.prefix));
            let change = Change::Add(new);
            match &before {
                Change::Add(_) => self.replaced += 1,
                Change::Remove(..) => self.added += 1,
            }
            if before != change {
                changes.push(change);
                undo.push(before);
            }
        }
        routing.change_routes(&changes)?;
        self.undo.append(&mut undo);
        Ok(())
    }

    /// Removes routes.
    ///
    /// Errors: one is not there, and nothing was removed.
    pub(crate) async fn remove(
        &mut self,
        changing: &Changing,
        list: &[Place],
    ) -> Result<(), RoutesError> {
        for (at, place) in list.iter().enumerate() {
            if !changing.lock().routing.has_static_route(*place) {
                return Err(ApplyError { at, error: RouteError::NoSuchRoute(place.1) }.into());
            }
            if at % STEP == 0 {
                tokio::task::yield_now().await;
            }
        }
        self.remove_present(changing, list).await
    }

    /// Removes those of the routes that are there.
    ///
    /// Errors: as [`Self::add`].
    pub(crate) async fn remove_present(
        &mut self,
        changing: &Changing,
        list: &[Place],
    ) -> Result<(), RoutesError> {
        for part in list.chunks(STEP) {
            {
                let routing = &mut changing.lock().routing;
                let mut undo: Vec<Change> = part
                    .iter()
                    .map(|place| undo_of(routing, *place))
                    .filter(|undo| matches!(undo, Change::Add(_)))
                    .collect();
                let changes = undo.iter().filter_map(removal);
                routing.change_routes(&changes.collect::<Vec<_>>())?;
                self.removed += undo.len();
                self.undo.append(&mut undo);
            }
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Undoes all of it. The interfaces must be those of before.
    pub(crate) async fn take_back(mut self, changing: &Changing) {
        self.undo.reverse();
        for part in self.undo.chunks(STEP) {
            // Each was in force before, and what has come since is gone: they fit.
            if let Err(error) = changing.lock().routing.change_routes(part) {
                tracing::error!("{error}");
            }
            tokio::task::yield_now().await;
        }
    }
}

/// What removes a route that is to be added.
fn removal(change: &Change) -> Option<Change> {
    match change {
        Change::Add(route) => Some(Change::Remove(route.vrf, route.prefix)),
        Change::Remove(..) => None,
    }
}

/// What puts the static route of a place back as it is now.
fn undo_of(routing: &Routing, (vrf, prefix): Place) -> Change {
    let routes = routing.rib().routes_of(vrf, prefix);
    match routes.into_iter().find(|route| route.source == Source::Static) {
        Some(route) => Change::Add(rib::Route { vrf, prefix, target: route.target }),
        None => Change::Remove(vrf, prefix),
    }
}
