//! `millrace reload`

use std::path::PathBuf;

use serde_json::Value;

use control::api::{Reload, Reloaded};
use control::client::Client;

use crate::failure::Failure;
use crate::output;

pub(crate) async fn run(client: &Client, json: bool, file: Option<PathBuf>) -> Result<(), Failure> {
    // The daemon has a working directory of its own.
    let config = match file {
        None => None,
        Some(file) => {
            let path = std::path::absolute(&file).map_err(|error| Failure::file(&file, error))?;
            let text = path.to_str().map(str::to_owned);
            Some(text.ok_or_else(|| Failure::Usage(format!("{path:?} is not UTF-8; rename it")))?)
        }
    };
    let request = Reload { config };
    if json {
        return output::json(&client.post::<_, Value>("/v1/reload", &request).await?);
    }
    let done: Reloaded = client.post("/v1/reload", &request).await?;
    if done.changes.is_empty() && done.at_restart.is_empty() {
        return output::line("nothing differs from what is in force");
    }
    done.changes.iter().try_for_each(output::line)?;
    done.at_restart.iter().try_for_each(|text| output::line(format!("at the next start: {text}")))
}
