//! `millrace save`

use control::api::Saved;
use control::client::Client;

use crate::failure::Failure;
use crate::output::{self, printable};
use crate::units::{bytes, count};

pub(crate) async fn run(client: &Client, json: bool) -> Result<(), Failure> {
    let saved: Saved = client.post("/v1/save", &()).await?;
    if json {
        return output::json(&saved);
    }
    let parts = [
        (saved.routes, "routes"),
        (saved.neighbors, "neighbours"),
        (saved.learned, "learned neighbours"),
        (saved.flows, "flows"),
        (saved.functions, "functions"),
    ];
    let parts: Vec<_> = parts.iter().map(|(n, what)| format!("{} {what}", count(*n))).collect();
    let file = printable(&saved.file);
    output::line(format!("{file}: {}; {}", parts.join(", "), bytes(saved.bytes)))
}
