//! The server: NGINX, with bodies of any size.

use std::fs;
use std::path::Path as File;

use crate::failure::Failure;

use super::bed::{Bed, Where};
use super::path::Placement;
use crate::process::Running;

/// Bodies up to so many bytes stand in the configuration; longer ones are files.
const LITERAL: u32 = 2048;
/// Port of one that is started while those of the paths run.
const ANEW: u16 = 8085;

/// An NGINX.
#[derive(Debug)]
pub(super) struct Nginx {
    pub(super) placement: Placement,
    pub(super) port: u16,
    pub(super) running: Running,
}

impl Nginx {
    /// Starts it, with so many workers.
    pub(super) fn start(bed: &Bed, placement: Placement, workers: u32) -> Result<Self, Failure> {
        Self::start_at(bed, placement, workers, port(placement))
    }

    /// Starts one more, with one worker.
    pub(super) fn start_anew(bed: &Bed, placement: Placement) -> Result<Self, Failure> {
        Self::start_at(bed, placement, 1, ANEW)
    }

    fn start_at(bed: &Bed, placement: Placement, workers: u32, port: u16) -> Result<Self, Failure> {
        let folder = bed.folder();
        let path = folder.join(format!("{port}.conf"));
        fs::write(&path, configuration(folder, port, workers))?;
        let path = path.to_string_lossy();
        let prefix = folder.to_string_lossy();
        let words = ["nginx", "-p", &prefix, "-c", &path];
        let place = Where::server(placement);
        let running = bed.start(place, workers as usize, port, &words)?;
        Ok(Self { placement, port, running })
    }
}

/// Its own: two placements may share a namespace.
const fn port(placement: Placement) -> u16 {
    match placement {
        Placement::Loose => 8081,
        Placement::Pinned => 8082,
        Placement::Millrace => 8083,
        Placement::Shared => 8084,
    }
}

/// Makes the file of a body, if it is one.
pub(super) fn body(bed: &Bed, bytes: u32) -> Result<(), Failure> {
    let path = bed.folder().join(bytes.to_string());
    if bytes > LITERAL && !path.exists() {
        fs::write(path, "m".repeat(bytes as usize))?;
    }
    Ok(())
}

fn configuration(folder: &File, port: u16, workers: u32) -> String {
    let folder = folder.display();
    let literals: String = [0, 64, 1024]
        .map(|bytes| format!("location = /{bytes} {{ return 200 \"{}\"; }}\n", "m".repeat(bytes)))
        .concat();
    let temps: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {folder}/{name}-{port};\n"))
        .concat();
    format!(
        "daemon off; user root; pid {folder}/{port}.pid; error_log {folder}/{port}.log;\n\
         worker_processes {workers}; worker_rlimit_nofile 65536;\n\
         events {{ worker_connections 16384; }}\n\
         http {{\naccess_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000;\n\
         keepalive_timeout 600; open_file_cache max=100;\n{temps}\
         server {{ listen {port} backlog=16384; root {folder};\n{literals}}}\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_listen_at_one_port() {
        let all = [Placement::Loose, Placement::Pinned, Placement::Millrace, Placement::Shared];
        let mut ports: Vec<u16> = all.map(port).into_iter().chain([ANEW]).collect();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), all.len() + 1);
    }
}
