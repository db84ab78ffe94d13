//! What is left of a process that is gone: connections whose peers do not know it yet.

use std::net::IpAddr;
use std::sync::Arc;

use forward::steering::{Flow, SteeringReader};
use graph::StackId;
use shm::connections::{ConnectionsReader, Record, State};
use shm::session::TransportProtocol;

use super::{LastWords, Lent, own_addresses};

/// A process's stacks while packets still find them, with what says whose a packet is.
pub(super) struct Remains {
    steering: SteeringReader,
    /// The router's own.
    addresses: Vec<IpAddr>,
    stacks: Vec<(StackId, Arc<ConnectionsReader>)>,
}

impl Lent<'_> {
    /// What a process will leave.
    pub(super) fn remains(&mut self, id: u32) -> Remains {
        let stacks = self.sessions.session(id).map(|session| {
            let stacks = session.stacks.values();
            stacks.map(|stack| (stack.id, Arc::clone(&stack.connections))).collect()
        });
        Remains {
            steering: self.sessions.steering.reader(),
            addresses: own_addresses(&self.routing.interfaces()),
            stacks: stacks.unwrap_or_default(),
        }
    }
}

impl Remains {
    /// For all peers who believe that their connection goes on. Only those of flows whose packets come to the very stack
    /// that says it has them: whatever it says, it ends nobody else's connections.
    pub(super) fn last_words(&self) -> Vec<LastWords> {
        let all = self.stacks.iter().flat_map(|(id, table)| {
            table.records().filter(move |record| self.is_to_be_told(*id, record))
        });
        let words =
            |Record { local, remote, sequences, .. }| LastWords::new(local, remote, sequences);
        all.filter_map(words).collect()
    }

    fn is_to_be_told(&self, id: StackId, record: &Record) -> bool {
        let Record { protocol, local, remote, state, .. } = *record;
        // In the other states this side has said that it is done, and hears no more data.
        let open = matches!(
            state,
            State::SynSent
                | State::SynReceived
                | State::Established
                | State::CloseWait
                | State::FinWait1
        );
        let flow = Flow { protocol, local, remote };
        open && protocol == TransportProtocol::Tcp
            && self.addresses.contains(&local.ip())
            && self.steering.find(&flow, false) == Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forward::steering::{Bind, Claims, Steering, SteeringLimits};
    use shm::Segment;
    use shm::claims::{self, ClaimsReader};
    use shm::connections::{CongestionControl, ConnectionsWriter, Sequences, bytes};
    use tables::Epoch;

    const PLACES: u32 = 300;

    fn stack(steering: &mut Steering) -> StackId {
        let length = claims::bytes(16).unwrap();
        let segment = Arc::new(Segment::create("claims", length).unwrap());
        let reader = ClaimsReader::new(segment.region(0, length).unwrap(), 16).unwrap();
        steering.add_stack(Claims { user: 7, process: 1, reader, key: [0, 0] }).unwrap()
    }

    fn record(local: &str, remote: &str, state: State) -> Record {
        Record {
            protocol: TransportProtocol::Tcp,
            local: local.parse().unwrap(),
            remote: remote.parse().unwrap(),
            state,
            opened_here: false,
            waits: false,
            linked: false,
            negotiated: (true, false),
            scales: (7, 7),
            congestion: CongestionControl::Cubic,
            backoff: 0,
            mss: 1448,
            path_mtu: 1500,
            since: 0,
            at: 0,
            sequences: Sequences::default(),
            windows: (1, 1),
            congestion_window: 1,
            threshold: 1,
            in_flight: 0,
            queues: (0, 0),
            rtt: (0, 0),
            least_rtt: 0,
            timeout: 1,
            retransmissions: 0,
            lost: 0,
            bytes_sent: 0,
            bytes_acknowledged: 0,
            bytes_received: 0,
            delivery_rate: 0,
            idle: (0, 0),
            segments: (0, 0),
        }
    }

    /// A table with these records.
    fn table(records: &[Record]) -> Arc<ConnectionsReader> {
        let length = bytes(PLACES).unwrap();
        let segment = Arc::new(Segment::create("connections", length).unwrap());
        let region = segment.region(0, length).unwrap();
        let mut writer = ConnectionsWriter::new(region.clone(), PLACES).unwrap();
        for (place, record) in (0..).zip(records) {
            assert!(writer.write(place, record));
        }
        Arc::new(ConnectionsReader::new(region, PLACES).unwrap())
    }

    #[test]
    fn a_table_ends_only_its_own_stacks_connections() {
        let mut steering = Steering::new(SteeringLimits::default(), 7, &Epoch::new()).unwrap();
        let (one, two) = (stack(&mut steering), stack(&mut steering));
        let bind = Bind {
            protocol: TransportProtocol::Tcp,
            address: "0.0.0.0".parse().unwrap(),
            port: 80,
            only_v6: false,
        };
        for stack in [one, two] {
            steering.listen(stack, bind, 1).unwrap();
        }
        steering.lease(one, 10_240, 256).unwrap();
        steering.lease(two, 10_496, 256).unwrap();
        let told = |stack, records: &[Record]| {
            let remains = Remains {
                steering: steering.reader(),
                addresses: vec!["192.0.2.1".parse().unwrap()],
                stacks: vec![(stack, table(records))],
            };
            remains.last_words().len()
        };
        // Both say that they have all flows of their listener: each flow has one of them.
        let flows: Vec<Record> = (1..=PLACES)
            .map(|port| record("192.0.2.1:80", &format!("198.51.100.7:{port}"), State::Established))
            .collect();
        let (ones, twos) = (told(one, &flows), told(two, &flows));
        assert!(ones > 0 && twos > 0, "{ones} {twos}");
        assert_eq!(ones + twos, flows.len());
        let own = |local: &str, remote: &str, state| told(one, &[record(local, remote, state)]);
        let (leased, peer) = ("192.0.2.1:10240", "198.51.100.7:443");
        assert_eq!(own(leased, peer, State::Established), 1);
        for state in [State::SynSent, State::SynReceived, State::CloseWait, State::FinWait1] {
            assert_eq!(own(leased, peer, state), 1, "{state:?}");
        }
        for state in
            [State::FinWait2, State::Closing, State::LastAck, State::TimeWait, State::Closed]
        {
            assert_eq!(own(leased, peer, state), 0, "{state:?}");
        }
        assert_eq!(own("192.0.2.1:10496", peer, State::Established), 0, "another stack's lease");
        assert_eq!(own("192.0.2.1:81", peer, State::Established), 0, "nobody's port");
        assert_eq!(own("192.0.2.2:10240", peer, State::Established), 0, "not the router's");
        assert_eq!(own("192.0.2.1:10240", "224.0.0.1:443", State::Established), 0, "a group");
        assert_eq!(own("192.0.2.1:10240", "255.255.255.255:9", State::Established), 0);
        assert_eq!(own("192.0.2.1:10240", "[2001:db8::1]:443", State::Established), 0);
    }
}
