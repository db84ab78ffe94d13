//! The other process of `serve` that holds connections: for each number on its standard input it opens as many as are
//! missing and asks once on each; it keeps them until its standard input ends.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::args::Hold;
use crate::failure::Failure;
use crate::terminal::say;

/// What it says when so many are open.
pub(super) const READY: &str = "ready";

/// Holds connections to the address that it is told.
pub(crate) fn run(args: &Hold) -> Result<(), Failure> {
    let most = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most })
        .map_err(std::io::Error::from)?;
    let mut all = Vec::new();
    for line in std::io::stdin().lines() {
        let count = line?.parse().unwrap_or_default();
        while all.len() < count {
            all.push(connection(args.address)?);
        }
        say!("{READY}");
    }
    Ok(())
}

fn connection(address: SocketAddr) -> Result<TcpStream, Failure> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"GET /64 HTTP/1.1\r\nHost: bench\r\n\r\n")?;
    if stream.read(&mut [0; 512])? == 0 {
        return Err(Failure::Serve(format!("{address} closes a connection")));
    }
    Ok(stream)
}
