//! TCP sockets that listen, as the kernel tells.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader};

/// Where the kernel lists TCP sockets, those that listen first.
const TABLES: [&str; 2] = ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"];
/// Where the state stands in a line, and the socket's number (Linux, `net/ipv4/tcp_ipv4.c`, `tcp4_seq_show`).
const STATE: usize = 3;
const INODE: usize = 9;
/// The state of one that listens.
const LISTEN: &str = "0A";

/// Numbers of the TCP sockets that listen, in this thread's network namespace. None where the kernel does not tell.
pub(crate) fn listening() -> BTreeSet<u64> {
    let mut all = BTreeSet::new();
    for file in TABLES.iter().filter_map(|table| File::open(table).ok()) {
        if let Err(error) = read(BufReader::new(file), &mut all) {
            tracing::debug!("the kernel's sockets cannot be read: {error}");
        }
    }
    all
}

/// Those of one table.
fn read(table: impl BufRead, all: &mut BTreeSet<u64>) -> io::Result<()> {
    for line in table.lines().skip(1) {
        let line = line?;
        let mut fields = line.split_ascii_whitespace();
        if fields.nth(STATE) != Some(LISTEN) {
            return Ok(());
        }
        let inode = fields.nth(INODE - STATE - 1);
        all.extend(inode.and_then(|number| number.parse::<u64>().ok()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread::sleep;
    use std::time::Duration;

    use shm::session::examine;

    #[test]
    fn the_kernel_tells_which_sockets_listen() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let copy = socket.try_clone().unwrap();
        let inode = examine(&socket).unwrap().inode;
        drop(socket);
        assert!(listening().contains(&inode), "another has it");
        drop(copy);
        // A process that another test starts has all files for a moment.
        let is_over = (0..2000).any(|_| {
            sleep(Duration::from_millis(1));
            !listening().contains(&inode)
        });
        assert!(is_over);
    }

    #[test]
    fn a_table_is_read_up_to_the_first_socket_that_does_not_listen() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
                     0: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 101 1 0\n   \
                     1: 0100007F:0051 00000000:0000 0A 00000000:00000000 00:00000000 00000000    33        0 102 1 0\n   \
                     2: 0100007F:0050 0100007F:9C40 01 00000000:00000000 00:00000000 00000000    33        0 103 1 0\n   \
                     3: 0100007F:0052 00000000:0000 0A 00000000:00000000 00:00000000 00000000    33        0 104 1 0\n";
        let mut all = BTreeSet::new();
        read(table.as_bytes(), &mut all).unwrap();
        assert!(all.into_iter().eq([101, 102]));
        let mut none = BTreeSet::new();
        read(&b"header\nnonsense\n"[..], &mut none).unwrap();
        assert_eq!(none, BTreeSet::new());
    }
}
