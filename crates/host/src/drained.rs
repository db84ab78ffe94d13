//! Whether the process may end.

use crate::sessions::Sessions;

impl Sessions {
    /// Whether all that was written has been acknowledged, or given up.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        let all = self.stack.all_connections();
        let mut infos = all.into_iter().filter_map(|connection| self.stack.info(connection));
        infos.all(|info| info.queued == 0)
    }
}
