//! `millrace restart`

use std::time::{Duration, Instant};

use control::api::{Restarting, Version};
use control::client::Client;

use crate::failure::Failure;
use crate::output;

/// Between two looks whether it is back.
const LOOK: Duration = Duration::from_millis(50);

pub(crate) async fn run(client: &Client, json: bool, patience: Duration) -> Result<(), Failure> {
    let wanted: Restarting = client.post("/v1/restart", &()).await?;
    let begun = Instant::now();
    while begun.elapsed() < patience {
        // While it is not there nobody answers, and the one that ends is not the one that is waited for.
        let version = client.get::<Version>("/v1/version").await.ok();
        let back = version.filter(|version| version.restarts == wanted.restarts);
        if let Some((version, standstill)) =
            back.and_then(|back| Some((back.clone(), back.standstill?)))
        {
            if json {
                return output::json(&version);
            }
            let milliseconds = standstill.div_ceil(1000);
            return output::line(format!(
                "restarted; forwarding stood still for {milliseconds} ms"
            ));
        }
        tokio::time::sleep(LOOK).await;
    }
    Err(Failure::NotBack(patience.as_secs()))
}
