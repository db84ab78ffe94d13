//! `millrace capture`

use std::fs::File;
use std::io::Write;
use std::path::Path;

use control::api::{Capture, Direction};
use control::client::{Client, Stream};

use crate::args::{self, Point};
use crate::failure::Failure;
use crate::output::{json, line};
use crate::units;

pub(crate) async fn run(
    client: &Client,
    json_too: bool,
    options: args::Capture,
) -> Result<(), Failure> {
    let file = options.write.clone();
    let request = Capture {
        count: options.count,
        port: options.port,
        host: options.host,
        protocol: options.protocol,
        transport_port: options.transport_port,
        snaplen: options.snaplen,
        timeout: options.timeout,
        direction: match options.direction {
            Point::Rx => Direction::Rx,
            Point::Tx => Direction::Tx,
            Point::Drop => Direction::Drop,
            Point::Any => Direction::Any,
        },
    };
    let stream = client.stream("/v1/capture", &request).await?;
    if file == Path::new("-") {
        copy(stream, &mut std::io::stdout(), Failure::Output).await?;
        return Ok(());
    }
    // Only now, so that a refused capture leaves an old file as it was.
    let failed = |error| Failure::file(&file, error);
    let mut output = File::create(&file).map_err(failed)?;
    let bytes = copy(stream, &mut output, failed).await?;
    if json_too {
        return json(&serde_json::json!({ "file": file, "bytes": bytes }));
    }
    line(format!("{} written to {}", units::bytes(bytes), file.display()))
}

/// Writes what comes until the end or Ctrl-C; gives the number of bytes.
async fn copy(
    mut stream: Stream,
    output: &mut impl Write,
    failed: impl Fn(std::io::Error) -> Failure,
) -> Result<u64, Failure> {
    let mut written = 0;
    loop {
        let bytes = tokio::select! {
            bytes = stream.next() => bytes?,
            _ = tokio::signal::ctrl_c() => None,
        };
        let Some(bytes) = bytes else { return Ok(written) };
        output.write_all(&bytes).and_then(|()| output.flush()).map_err(&failed)?;
        written += u64::try_from(bytes.len()).unwrap_or_default();
    }
}
