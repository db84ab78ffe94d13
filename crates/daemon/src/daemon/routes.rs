//! Routes changed part by part, so that a full Internet table stalls neither packets nor the API, and with
//! a way back.

use control::config::{Config, Route};
use forward::rib::{ApplyError, Change, Place, Prefix, RouteError, Source};
use forward::state::VrfId;

use super::Entering;
use crate::routing::{RoutesError, Routing};

/// Routes that are changed in one step: about a millisecond.
const STEP: usize = 512;

/// What was changed, and how it is undone.
#[derive(Debug, Default)]
pub(crate) struct RouteChanges {
    undo: Vec<Change>,
    /// Routes that are new.
    pub(crate) added: usize,
    /// Routes that replaced another of their place.
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
        entering: &Entering,
        config: &Config,
        list: &[Route],
    ) -> Result<(), RoutesError> {
        for (part, first) in list.chunks(STEP).zip((0..).step_by(STEP)) {
            self.add_part(&mut entering.lock().routing, config, part, first)?;
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
            let before = undo_of(routing, new.place);
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

    /// Removes the routes of a source to these prefixes of a VRF, of that distance or all.
    ///
    /// Errors: to one there is none, and nothing was removed.
    pub(crate) async fn remove(
        &mut self,
        entering: &Entering,
        (vrf, source, distance): (VrfId, Source, Option<u8>),
        list: &[Prefix],
    ) -> Result<(), RoutesError> {
        let mut places = Vec::with_capacity(list.len());
        for (part, first) in list.chunks(STEP).zip((0..).step_by(STEP)) {
            {
                let daemon = entering.lock();
                let rib = daemon.routing.rib();
                for (at, prefix) in (first..).zip(part.iter().copied()) {
                    let before = places.len();
                    let there = rib.places_at(vrf, prefix, source).into_iter();
                    places.extend(there.filter(|of| distance.is_none_or(|d| d == of.distance)));
                    if places.len() == before {
                        let distance = distance.unwrap_or_default();
                        let place = Place { vrf, prefix, source, distance };
                        let error = RouteError::NoSuchRoute(place);
                        return Err(ApplyError { at, error }.into());
                    }
                }
            }
            tokio::task::yield_now().await;
        }
        self.remove_present(entering, &places).await
    }

    /// Takes everything away that a source has given to these VRFs. Gives how much that was.
    ///
    /// Errors: as [`Self::add`]; what was gone by then stays away.
    pub(crate) async fn withdraw(
        entering: &Entering,
        vrfs: &[VrfId],
        source: Source,
    ) -> Result<usize, RoutesError> {
        let mut removed = 0;
        for vrf in vrfs {
            loop {
                {
                    let routing = &mut entering.lock().routing;
                    let places = routing.rib().places_of(*vrf, source, STEP);
                    if places.is_empty() {
                        break;
                    }
                    removed += places.len();
                    let changes: Vec<Change> = places.into_iter().map(Change::Remove).collect();
                    routing.change_routes(&changes)?;
                }
                tokio::task::yield_now().await;
            }
        }
        Ok(removed)
    }

    /// Removes those of the routes that are there.
    ///
    /// Errors: as [`Self::add`].
    pub(crate) async fn remove_present(
        &mut self,
        entering: &Entering,
        list: &[Place],
    ) -> Result<(), RoutesError> {
        for part in list.chunks(STEP) {
            {
                let routing = &mut entering.lock().routing;
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
    pub(crate) async fn take_back(mut self, entering: &Entering) {
        self.undo.reverse();
        for part in self.undo.chunks(STEP) {
            // Each was in force before, and what has come since is gone: they fit.
            if let Err(error) = entering.lock().routing.change_routes(part) {
                tracing::error!("{error}");
            }
            tokio::task::yield_now().await;
        }
        // A million of them take so long to free that neighbours would wait.
        drop(tokio::task::spawn_blocking(move || drop(self)));
    }
}

/// What removes a route that is to be added.
fn removal(change: &Change) -> Option<Change> {
    match change {
        Change::Add(route) => Some(Change::Remove(route.place)),
        Change::Remove(..) => None,
    }
}

/// What puts the route of a place back as it is now.
fn undo_of(routing: &Routing, place: Place) -> Change {
    routing.rib().route_at(place).map_or(Change::Remove(place), Change::Add)
}
