//! Convergence: routes whose targets have changed are shown to the workers again, a few at once, many in steps. For these, a pass
//! goes over all routes, and next hops that workers may still find are kept until it is over.

use super::Rib;
use super::users::LISTED;

/// Routes that a change shows again at once, at most: as many as one target's list has.
const AT_ONCE: usize = LISTED;

/// Of the next hops, one in so many may be kept, so that there is room for others. Beyond that, all routes are shown at once.
const KEPT: usize = 4;

impl Rib {
    /// Shows the workers more of the routes that changes of interfaces concern: goes over `most` routes at most. `true`: there
    /// are more. Until it returns `false`, some packets may go where they went before those changes, or are dropped if that was
    /// an interface that is gone, down or different now.
    pub fn converge(&mut self, most: usize) -> bool {
        let mut room = most;
        while self.passes.are_under_way {
            let (targets, hops) = (&self.targets, &self.hops);
            if !self.vrfs.iter_mut().all(|vrf| vrf.go_on(&mut room, targets, hops)) {
                return true;
            }
            // Workers found these by no route but those that have been shown again.
            for hop in std::mem::take(&mut self.passes.kept) {
                self.hops.release(hop);
            }
            self.begin_passes();
        }
        false
    }

    /// Shows routes again whose targets have changed. `left`: next hops that these targets had before, each to be released.
    pub(super) fn show_changed(&mut self, changed: &[u32], left: Vec<u32>) {
        let mut room = AT_ONCE;
        let mut all_shown = true;
        for vrf in self.vrfs.iter_mut() {
            all_shown &= vrf.show_again(changed, &mut room, &self.targets, &self.hops);
        }
        if all_shown {
            left.into_iter().for_each(|hop| self.hops.release(hop));
            return;
        }
        for hop in left {
            // One user is enough to keep it.
            if !self.passes.kept_next.insert(hop) {
                self.hops.release(hop);
            }
        }
        if !self.passes.are_under_way {
            self.begin_passes();
        }
        if self.passes.kept.len() + self.passes.kept_next.len() > self.limits.next_hops / KEPT {
            self.converge(usize::MAX);
        }
    }

    /// Begins a pass wherever routes have been left to one.
    fn begin_passes(&mut self) {
        let begun = self.vrfs.iter_mut().fold(false, |begun, vrf| vrf.begin_pass() | begun);
        self.passes.kept = std::mem::take(&mut self.passes.kept_next);
        // A VRF may have gone with what was left to its pass.
        self.passes.are_under_way = begun || !self.passes.kept.is_empty();
    }
}
