//! Files of rules as `l3fwd` reads them: `R`, what is matched, the number of the egress port.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use dpdk::yardstick::Template;
use tables::Prefix;
use wire::flow::FiveTuple;

use super::LookUp;
use crate::load::Destination;

/// Length of an Ethernet header: bytes.
const ETHERNET: usize = 14;
/// A rule of the family that no packet has: without any, a file is refused.
const NONE: [[&str; 2]; 2] = [
    ["192.0.2.0/24", "192.0.2.1 192.0.2.2 9 9 17"],
    ["2001:db8::/32", "2001:db8::1 2001:db8::2 9 9 17"],
];
/// Ports that packets leave by: those behind the one by which they come.
const EGRESS: [usize; 2] = [1, 2];

/// Writes the rule of a flow of either family.
macro_rules! exact {
    ($to:ident, $flow:ident, $port:ident) => {
        writeln!(
            $to,
            "R{} {} {} {} {} {}",
            $flow.destination(),
            $flow.source(),
            $flow.destination_port(),
            $flow.source_port(),
            $flow.protocol().0,
            $port
        )?
    };
}

/// What it has to know.
#[derive(Debug)]
pub(crate) struct Rules {
    prefixes: Vec<(IpAddr, u8)>,
    /// The flows of the packets.
    pub(super) flows: Vec<FiveTuple>,
}

impl Rules {
    /// These routes, spread evenly over the egress ports, and the flows of these packets.
    pub(crate) fn new<A: Destination>(routes: &[Prefix<A>], packets: &[Template]) -> Self {
        let prefix = |route: &Prefix<A>| (route.bits().address(), route.len());
        let flow = |packet: &Template| FiveTuple::of(packet.header.get(ETHERNET..)?);
        Self {
            prefixes: routes.iter().map(prefix).collect(),
            flows: packets.iter().filter_map(flow).collect(),
        }
    }

    pub(super) fn is_ipv6(&self) -> bool {
        self.prefixes.first().is_some_and(|(address, _)| address.is_ipv6())
    }

    /// Writes both families' files.
    pub(super) fn write(&self, look_up: LookUp, folder: &Path) -> io::Result<[PathBuf; 2]> {
        let files = ["rules4", "rules6"].map(|name| folder.join(format!("{look_up}-{name}")));
        for (family, file) in files.iter().enumerate() {
            let mut file = BufWriter::new(File::create(file)?);
            let [prefix, flow] = NONE[family];
            if (family == 1) == self.is_ipv6() {
                self.rules(look_up, &mut file)?;
            } else {
                let rule = if look_up == LookUp::Em { flow } else { prefix };
                writeln!(file, "R{rule} {}", EGRESS[0])?;
            }
            file.flush()?;
        }
        Ok(files)
    }

    fn rules(&self, look_up: LookUp, to: &mut impl Write) -> io::Result<()> {
        let ports = EGRESS.iter().cycle();
        if look_up == LookUp::Em {
            for (flow, port) in self.flows.iter().zip(ports) {
                match flow {
                    FiveTuple::V4(flow) => exact!(to, flow, port),
                    FiveTuple::V6(flow) => exact!(to, flow, port),
                }
            }
        } else {
            for ((address, length), port) in self.prefixes.iter().zip(ports) {
                writeln!(to, "R{address}/{length} {port}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Frames, Packets, Prefixes, sample};

    fn lines(file: &Path) -> Vec<String> {
        std::fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn every_route_and_every_flow_has_a_rule() {
        let prefixes = Prefixes::generate(1);
        let mac = wire::MacAddr::new([2, 0, 0, 0, 0, 1]);
        let folder = tempfile::tempdir().unwrap();
        let routes = sample(&prefixes.v4, 30, 1);
        let packets = Packets::new(&routes, 40, Frames::Fixed(64), mac).unwrap();
        let rules = Rules::new(&routes, &packets.templates);
        let [four, six] = rules.write(LookUp::Lpm, folder.path()).unwrap();
        let first = routes[0];
        assert_eq!(lines(&four).len(), 30);
        assert_eq!(lines(&four)[0], format!("R{}/{} 1", first.bits().address(), first.len()));
        assert!(lines(&four)[1].ends_with(" 2"));
        assert_eq!(lines(&six), ["R2001:db8::/32 1"]);
        let [four, six] = rules.write(LookUp::Em, folder.path()).unwrap();
        assert_eq!(lines(&four).len(), 40);
        let words: Vec<String> = lines(&four)[0].split(' ').map(str::to_owned).collect();
        let [_, source, toward, _, protocol, port] = &words[..] else { panic!("{words:?}") };
        assert!(source.starts_with("198.18."), "the sender comes second: {source}");
        assert_eq!([toward, protocol, port].map(String::as_str), ["53", "17", "1"]);
        assert_eq!(lines(&six), ["R2001:db8::1 2001:db8::2 9 9 17 1"]);
        let routes = sample(&prefixes.v6, 3, 1);
        let packets = Packets::new(&routes, 4, Frames::Fixed(64), mac).unwrap();
        let [four, six] =
            Rules::new(&routes, &packets.templates).write(LookUp::Fib, folder.path()).unwrap();
        assert_eq!((lines(&four).len(), lines(&six).len()), (1, 3));
    }
}
