//! A process that may not stay is told to go.

use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;

/// Of one process: its connection's task waits for it, whoever has a clone may send the process away.
#[derive(Debug, Clone, Default)]
pub(super) struct Dismissal(Arc<Told>);

#[derive(Debug, Default)]
struct Told {
    why: OnceLock<&'static str>,
    notify: Notify,
}

impl Dismissal {
    /// The process has to go; the first reason counts. Never blocks.
    pub(super) fn dismiss(&self, why: &'static str) {
        let _ = self.0.why.set(why);
        self.0.notify.notify_one();
    }

    /// Waits until it has to go. Gives why.
    pub(super) async fn why(&self) -> &'static str {
        loop {
            if let Some(why) = self.0.why.get().copied() {
                return why;
            }
            self.0.notify.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::time::Duration;

    use tokio::time::timeout;

    #[tokio::test]
    async fn who_waits_hears_the_first_reason_before_and_after_it_is_said() {
        let dismissal = Dismissal::default();
        let early = tokio::spawn({
            let dismissal = dismissal.clone();
            async move { dismissal.why().await }
        });
        tokio::task::yield_now().await;
        assert!(!early.is_finished());
        dismissal.dismiss("one");
        dismissal.dismiss("two");
        let both = async { (early.await.unwrap(), dismissal.why().await) };
        assert_eq!(timeout(Duration::from_secs(20), both).await.unwrap(), ("one", "one"));
    }
}
