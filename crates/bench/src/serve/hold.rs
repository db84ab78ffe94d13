//! The other process of `serve` that holds connections: opens them, asks once on each, and keeps them until its standard
//! input ends.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::failure::Failure;
use crate::output::say;

/// What it says when all are open.
pub(super) const READY: &str = "ready";

/// Descriptors besides those of the connections.
const OTHERS: u64 = 64;

/// Holds `count` connections to `address`.
pub(crate) fn run(address: SocketAddr, count: u32) -> Result<(), Failure> {
    let most = getrlimit(Resource::Nofile).maximum;
    let wanted = u64::from(count) + OTHERS;
    let limit =
        Rlimit { current: Some(most.map_or(wanted, |most| most.min(wanted))), maximum: most };
    setrlimit(Resource::Nofile, limit).map_err(std::io::Error::from)?;
    let mut all = Vec::new();
    for _ in 0..count {
        let mut stream = TcpStream::connect(address)?;
        stream.write_all(b"GET /64 HTTP/1.1\r\nHost: bench\r\n\r\n")?;
        let mut answer = [0; 512];
        if stream.read(&mut answer)? == 0 {
            return Err(Failure::Serve(format!("{address} closes connection {}", all.len())));
        }
        all.push(stream);
    }
    say!("{READY}");
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
