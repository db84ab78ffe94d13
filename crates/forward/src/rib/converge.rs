//! Convergence: what a change of interfaces concerns is looked for and shown to the workers again, a few targets and routes at
//! once, many in steps. For routes that are too many, a pass goes over all, and next hops that workers may still find are kept
//! until it is over.
//!
//! Whatever waits sends nothing by an interface that is gone or down, or as it was: all next hops by such an interface are cut
//! off first (`Hops::detach`), and none is used for anything else while a target or a route names it.

use super::Rib;

/// Of the next hops, one in so many may be kept, so that there is room for others. Beyond that, all routes are shown at once.
const KEPT: usize = 4;

/// Targets that wait for a free index and are looked for again at once, beyond as many as there are free ones: others may have
/// what they need by now.
pub(super) const FEW: usize = 16;

impl Rib {
    /// Does more of what changes of interfaces concern: finds the next hops of `most` targets at most anew, and goes over `most`
    /// routes at most. `true`: there is more. Until it returns `false`, some packets may go where they went before those changes,
    /// or are dropped if that was an interface that is gone, down or different now.
    pub fn converge(&mut self, most: usize) -> bool {
        // While passes are under way, half of the routes are theirs.
        let theirs = if self.passes.are_under_way { most / 2 } else { 0 };
        let mut room = most - theirs;
        // Targets with other next hops have more of those of before kept: those go first when they are many.
        if !self.passes.are_under_way || self.kept() <= self.limits.next_hops / KEPT / 2 {
            let due = self.targets.take_due(most);
            self.renew(due, &mut room);
        }
        self.go_over(room + theirs) || self.targets.are_due()
    }

    /// Whether routes are unusable because there was no room for their next hops.
    pub(crate) fn is_starved(&self) -> bool {
        self.targets.are_starved()
    }

    /// Lets [`Self::converge`] look again for next hops that found no room, in turn and about as many as there is room for now.
    /// `false`: there are none.
    pub(crate) fn feed(&mut self) -> bool {
        self.targets.feed(self.hops.free() + FEW);
        self.targets.are_due()
    }

    /// Finds the next hops of targets anew, and shows their routes again, `room` at once, which is lowered by as many.
    pub(super) fn renew(&mut self, targets: Vec<u32>, room: &mut usize) {
        if !targets.is_empty() {
            let (changed, left) = self.targets.resolve(targets, &self.links, &mut self.hops);
            self.show_changed(&changed, left, room);
        }
    }

    /// Goes on with the passes, over `most` routes at most. `true`: they are not over.
    fn go_over(&mut self, most: usize) -> bool {
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

    /// Next hops that are kept for the passes.
    fn kept(&self) -> usize {
        self.passes.kept.len() + self.passes.kept_next.len()
    }

    /// Shows routes again whose targets have changed, `room` at once, which is lowered by as many. `left`: next hops that these
    /// targets had before, each to be released.
    pub(super) fn show_changed(&mut self, changed: &[u32], left: Vec<u32>, room: &mut usize) {
        let mut all_shown = true;
        for vrf in self.vrfs.iter_mut() {
            all_shown &= vrf.show_again(changed, room, &self.targets, &self.hops);
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
        if self.kept() > self.limits.next_hops / KEPT {
            self.go_over(usize::MAX);
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
