//! Stacks' connections and UDP sockets, for people: read out of the stacks' memory while nobody waits for the daemon.

use std::iter;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use control::Prefix;
use control::api::{self, ConnectionPage, ConnectionState, Listener, StackTcp, Transport};
use forward::steering::Bind;
use shm::connections::{ConnectionsReader, Count, Record, SocketRecord, State};
use shm::session::TransportProtocol;
use tokio::time::sleep;

use super::Sessions;
use super::parking::Parking;
use crate::clock;

/// How long stacks may take to bring their tables up to date: they look every 100 ms.
const PATIENCE: Duration = Duration::from_millis(250);
/// Between two looks whether they have.
const BREATH: Duration = Duration::from_millis(5);

/// A stack whose connections and UDP sockets are looked at.
struct Subject {
    number: u32,
    name: String,
    pid: i32,
    uid: u32,
    connections: Arc<ConnectionsReader>,
}

/// The stacks at one moment.
pub(crate) struct Look {
    subjects: Vec<Subject>,
    /// The daemon's own stack, if it is there: it sleeps until it is told something.
    own: Option<Parking>,
}

/// Which connections and UDP sockets are wanted: those that meet all that is said.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    /// None: both.
    pub(crate) protocol: Option<Transport>,
    pub(crate) port: Option<u16>,
    pub(crate) address: Option<Prefix>,
    /// None: all.
    pub(crate) states: Vec<ConnectionState>,
    /// A name, or a number.
    pub(crate) process: Option<String>,
    pub(crate) stack: Option<u32>,
    /// Of connections, and of UDP sockets.
    pub(crate) limit: usize,
}

impl Sessions {
    /// What a look at connections needs.
    pub(crate) fn look(&self) -> Look {
        let stacks = self.list.values().flat_map(|session| {
            let started = session.stacks.iter().filter(|(_, stack)| stack.is_started());
            started.map(move |(number, stack)| Subject {
                number: *number,
                name: session.name.clone(),
                pid: session.process.credentials.pid,
                uid: session.uid(),
                connections: Arc::clone(&stack.connections),
            })
        });
        let own = self.own_stack().ok().map(|(parking, _)| parking);
        Look { subjects: stacks.collect(), own }
    }
}

/// A state's name, and how many connections are in it.
type StateCount = (&'static str, u64);

impl Look {
    /// Has the stacks bring their tables up to date, and waits a moment for those that do.
    pub(crate) async fn refresh(&self, wanted: &Wanted) {
        let subjects = self.subjects.iter().filter(|subject| wanted.names(subject));
        let asked: Vec<_> =
            subjects.map(|subject| (&subject.connections, subject.connections.ask())).collect();
        if let Some(own) = &self.own {
            own.show();
        }
        let until = Instant::now() + PATIENCE;
        while asked.iter().any(|(table, wish)| !table.has_answered(*wish)) && Instant::now() < until
        {
            sleep(BREATH).await;
        }
    }

    /// What the tables say.
    pub(crate) fn page(&self, wanted: &Wanted) -> ConnectionPage {
        let now = clock::now();
        let mut page = ConnectionPage::default();
        for subject in self.subjects.iter().filter(|subject| wanted.names(subject)) {
            if wanted.protocol != Some(Transport::Udp) {
                add_connections(&mut page, subject, wanted, now);
            }
            if wanted.protocol != Some(Transport::Tcp) {
                add_udp_sockets(&mut page, subject, wanted, now);
            }
        }
        page
    }

    /// Fills in how many connections wait at each listener's members to be accepted.
    pub(crate) fn count_waiting(&self, listeners: &mut [Listener]) {
        for subject in &self.subjects {
            for record in subject.connections.records().filter(|record| record.waits) {
                let serving = listeners
                    .iter_mut()
                    .filter_map(|listener| Some((serves(listener, record.local)?, listener)));
                let listener = serving.min_by_key(|(particularity, _)| *particularity);
                let members = listener.into_iter().flat_map(|(_, listener)| &mut listener.members);
                let mut members = members.filter(|member| member.stack == subject.number);
                if let Some(member) = members.next() {
                    member.waiting += 1;
                }
            }
        }
    }

    /// Connections by stack, its name, and state, of those that there are.
    pub(crate) fn states(&self) -> Vec<(u32, &str, Vec<StateCount>)> {
        let states = |subject: &Subject| {
            let mut states = ConnectionState::ALL.map(|(state, name)| (state, name, 0));
            for record in subject.connections.records() {
                let state = state_of(record.state);
                if let Some((_, _, count)) = states.iter_mut().find(|(one, _, _)| *one == state) {
                    *count += 1;
                }
            }
            let waits = subject.connections.count(Count::TimeWaits);
            let states = states.into_iter().filter(|one| one.0 != ConnectionState::Unconnected);
            let named = states.map(|(state, name, count)| match state {
                ConnectionState::TimeWait => (name, waits.saturating_add(count)),
                _ => (name, count),
            });
            named.collect()
        };
        self.subjects.iter().map(|one| (one.number, one.name.as_str(), states(one))).collect()
    }
}

impl Wanted {
    /// Whether the connections of that stack may be wanted.
    fn names(&self, subject: &Subject) -> bool {
        let process = self.process.as_ref();
        let named =
            |process: &String| *process == subject.name || process.parse() == Ok(subject.pid);
        self.stack.is_none_or(|stack| stack == subject.number) && process.is_none_or(named)
    }

    fn wants(&self, local: SocketAddr, remote: Option<SocketAddr>, state: ConnectionState) -> bool {
        let ends = || iter::once(local).chain(remote);
        self.port.is_none_or(|port| ends().any(|end| end.port() == port))
            && self.address.is_none_or(|prefix| ends().any(|end| prefix.contains(end.ip())))
            && (self.states.is_empty() || self.states.contains(&state))
    }
}

fn add_connections(page: &mut ConnectionPage, subject: &Subject, wanted: &Wanted, now: u64) {
    let count = |count| subject.connections.count(count);
    page.time_wait = page.time_wait.saturating_add(count(Count::TimeWaits));
    page.unlisted = page.unlisted.saturating_add(count(Count::Unlisted));
    for record in subject.connections.records() {
        let state = state_of(record.state);
        // One that a stack cannot keep in its short form is counted like the others.
        if state == ConnectionState::TimeWait {
            page.time_wait = page.time_wait.saturating_add(1);
            continue;
        }
        if !wanted.wants(record.local, Some(record.remote), state) {
            continue;
        }
        page.total += 1;
        if page.connections.len() < wanted.limit {
            page.connections.push(show(subject, &record, now));
        }
    }
}

fn add_udp_sockets(page: &mut ConnectionPage, subject: &Subject, wanted: &Wanted, now: u64) {
    let unlisted = subject.connections.count(Count::UnlistedSockets);
    page.udp_unlisted = page.udp_unlisted.saturating_add(unlisted);
    for record in subject.connections.sockets() {
        let state = match record.remote {
            Some(_) => ConnectionState::Established,
            None => ConnectionState::Unconnected,
        };
        if !wanted.wants(record.local, record.remote, state) {
            continue;
        }
        page.udp_total += 1;
        if page.udp_sockets.len() < wanted.limit {
            page.udp_sockets.push(show_socket(subject, &record, state, now));
        }
    }
}

/// What a stack says that it has counted.
pub(super) fn tcp(table: &ConnectionsReader) -> StackTcp {
    let count = |count| table.count(count);
    StackTcp {
        connections: count(Count::Connections),
        time_wait: count(Count::TimeWaits),
        established: count(Count::Established),
        retransmissions: count(Count::Retransmissions),
        timeouts: count(Count::Timeouts),
        resets: count(Count::Resets),
        accept_queue_full: count(Count::AcceptQueue),
        syn_cookies: count(Count::SynQueue),
        syns_dropped: count(Count::AcceptQueue).saturating_add(count(Count::NoSlot)),
        dropped: count(Count::Dropped),
        link_refused: count(Count::LinkRefused),
    }
}

/// Whether connections to an address may be a listener's, and how particularly it serves them.
fn serves(listener: &Listener, local: SocketAddr) -> Option<usize> {
    if listener.protocol != Transport::Tcp || listener.address.port() != local.port() {
        return None;
    }
    let bind = Bind {
        protocol: TransportProtocol::Tcp,
        address: listener.address.ip(),
        port: local.port(),
        only_v6: listener.only_v6,
    };
    bind.serves(local.ip())
}

/// Milliseconds since a time.
fn since(at: u64, now: u64) -> u64 {
    now.saturating_sub(at) / 1_000_000
}

fn show_socket(
    subject: &Subject,
    record: &SocketRecord,
    state: ConnectionState,
    now: u64,
) -> api::UdpSocket {
    api::UdpSocket {
        stack: subject.number,
        name: subject.name.clone(),
        pid: subject.pid,
        uid: subject.uid,
        local: record.local,
        remote: record.remote,
        state,
        written: since(record.at, now),
        receive_queue: record.queues.0,
        send_queue: record.queues.1,
        dropped: record.dropped,
    }
}

fn show(subject: &Subject, record: &Record, now: u64) -> api::Connection {
    let ago = |ms: u32| (ms != u32::MAX).then_some(ms);
    api::Connection {
        stack: subject.number,
        name: subject.name.clone(),
        pid: subject.pid,
        uid: subject.uid,
        protocol: match record.protocol {
            TransportProtocol::Tcp => Transport::Tcp,
            TransportProtocol::Udp => Transport::Udp,
        },
        local: record.local,
        remote: record.remote,
        state: state_of(record.state),
        outgoing: record.opened_here,
        waits: record.waits,
        linked: record.linked,
        age: since(record.since, now),
        written: since(record.at, now),
        receive_queue: record.queues.0,
        send_queue: record.queues.1,
        rtt: record.rtt.0,
        rtt_variation: record.rtt.1,
        least_rtt: record.least_rtt,
        timeout: record.timeout,
        backoff: record.backoff,
        congestion_control: record.congestion.name().to_owned(),
        congestion_window: record.congestion_window,
        threshold: (record.threshold != u32::MAX).then_some(record.threshold),
        in_flight: record.in_flight,
        lost: record.lost,
        retransmissions: record.retransmissions,
        peer_window: record.windows.1,
        own_window: record.windows.0,
        peer_window_shift: record.scales.0,
        own_window_shift: record.scales.1,
        mss: record.mss,
        path_mtu: record.path_mtu,
        timestamps: record.sequences.timestamps.is_some(),
        sack: record.negotiated.0,
        ecn: record.negotiated.1,
        bytes_sent: record.bytes_sent,
        bytes_acknowledged: record.bytes_acknowledged,
        bytes_received: record.bytes_received,
        segments_sent: record.segments.0,
        segments_received: record.segments.1,
        delivery_rate: record.delivery_rate,
        last_sent: ago(record.idle.0),
        last_received: ago(record.idle.1),
    }
}

fn state_of(state: State) -> ConnectionState {
    match state {
        State::SynSent => ConnectionState::SynSent,
        State::SynReceived => ConnectionState::SynReceived,
        State::Established => ConnectionState::Established,
        State::FinWait1 => ConnectionState::FinWait1,
        State::FinWait2 => ConnectionState::FinWait2,
        State::CloseWait => ConnectionState::CloseWait,
        State::Closing => ConnectionState::Closing,
        State::LastAck => ConnectionState::LastAck,
        State::TimeWait => ConnectionState::TimeWait,
        State::Closed => ConnectionState::Closed,
    }
}

#[cfg(test)]
mod tests;
