//! Tables that refresh and show what happened in between.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde_json::Value;

use control::client::Client;

use crate::args::Watch;
use crate::failure::Failure;
use crate::output;

/// Clears a terminal (ECMA-48 CUP, ED).
const CLEAR: &[u8] = b"\x1b[H\x1b[2J";

/// Counters that can be shown since the start, or between two moments.
pub(super) trait Watched {
    /// One line of the API's list.
    type Row: DeserializeOwned;
    /// Where the API has it.
    const PATH: &'static str;

    /// Prints what was counted since the start.
    fn totals(&self, rows: &[Self::Row]) -> Result<(), Failure>;

    /// Prints what was counted within `seconds`.
    fn rates(&self, before: &[Self::Row], now: &[Self::Row], seconds: f64) -> Result<(), Failure>;
}

/// Prints once, or again and again.
pub(super) async fn run<W: Watched>(
    client: &Client,
    json: bool,
    watch: Watch,
    watched: &W,
) -> Result<(), Failure> {
    let Some(every) = watch.every else {
        return super::table(client, json, W::PATH, |rows: Vec<W::Row>| watched.totals(&rows))
            .await;
    };
    let pause = Duration::from_secs_f64(every);
    let mut left = watch.rounds.unwrap_or(u64::MAX);
    let mut before: (Vec<W::Row>, Instant) = (client.get(W::PATH).await?, Instant::now());
    while left > 0 {
        tokio::time::sleep(pause).await;
        left -= 1;
        if json {
            output::json(&client.get::<Value>(W::PATH).await?)?;
            continue;
        }
        let now: (Vec<W::Row>, Instant) = (client.get(W::PATH).await?, Instant::now());
        if std::io::stdout().is_terminal() {
            output::bytes(CLEAR)?;
        }
        watched.rates(&before.0, &now.0, (now.1 - before.1).as_secs_f64())?;
        before = now;
    }
    Ok(())
}
