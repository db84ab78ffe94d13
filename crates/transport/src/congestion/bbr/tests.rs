use super::*;
use crate::congestion::RateSample;

const MS: u64 = 1_000_000;

/// A path that delivers `rate` bytes/s in order, and acknowledges each segment `rtt` ns later or when
/// its turn comes; what waits beyond `queue` bytes is lost.
struct Path {
    bbr: Bbr,
    now: u64,
    rate: u64,
    rtt: u64,
    queue: u64,
    /// Segments under way: sent at, arrives at, delivered when it was sent, in flight then, lost then.
    flight: std::collections::VecDeque<[u64; 5]>,
    busy_until: u64,
    next_send: u64,
    delivered: u64,
    lost: u64,
    states: Vec<State>,
    longest_rtt: u64,
}

const MSS: u32 = 1000;

impl Path {
    fn new(rate: u64, rtt: u64, queue: u64) -> Self {
        let start = Start { mss: MSS, window: 10 * MSS, threshold: u32::MAX, now: 0, seed: 7 };
        Self {
            bbr: Bbr::new(&start),
            now: 0,
            rate,
            rtt,
            queue,
            flight: std::collections::VecDeque::new(),
            busy_until: 0,
            next_send: 0,
            delivered: 0,
            lost: 0,
            states: vec![State::Startup],
            longest_rtt: 0,
        }
    }

    /// Gives bytes delivered within `duration` ns.
    fn run(&mut self, duration: u64) -> u64 {
        let (until, before) = (self.now + duration, self.delivered);
        self.longest_rtt = 0;
        while self.now < until {
            let in_flight = self.flight.len() as u64 * u64::from(MSS);
            let open = in_flight + u64::from(MSS) <= u64::from(self.bbr.window());
            let arrival = self.flight.front().map_or(u64::MAX, |segment| segment[1]);
            let send = if open { self.next_send.max(self.now) } else { u64::MAX };
            if send <= arrival {
                self.now = send;
                self.send(in_flight);
            } else {
                self.now = arrival;
                self.acknowledge();
            }
        }
        self.delivered - before
    }

    fn send(&mut self, in_flight: u64) {
        let mss = u64::from(MSS);
        self.next_send = self.now + mss * 1_000_000_000 / self.bbr.pacing_rate().unwrap();
        let begin = self.busy_until.max(self.now);
        if (begin - self.now) * self.rate / 1_000_000_000 > self.queue {
            self.lost += mss;
            let loss = Congestion { now: self.now, in_flight: in_flight as u32, lost: MSS };
            self.bbr.on_loss(&loss);
            return;
        }
        self.busy_until = begin + mss * 1_000_000_000 / self.rate;
        let at = self.busy_until + self.rtt;
        self.flight.push_back([self.now, at, self.delivered, in_flight + mss, self.lost]);
    }

    fn acknowledge(&mut self) {
        let [sent_at, at, delivered, tx_in_flight, lost] = self.flight.pop_front().unwrap();
        self.delivered += u64::from(MSS);
        let rtt = at - sent_at;
        self.longest_rtt = self.longest_rtt.max(rtt);
        let newly_lost = if self.lost > lost { MSS } else { 0 };
        let in_flight = self.flight.len() as u32 * MSS;
        self.bbr.on_ack(&Ack {
            now: at,
            acked: MSS,
            delivered: MSS,
            total_delivered: self.delivered,
            prior_in_flight: in_flight + MSS,
            in_flight,
            window_limited: true,
            in_recovery: false,
            srtt: rtt,
            min_rtt: self.rtt,
            sample: RateSample {
                delivered: self.delivered - delivered,
                interval: rtt,
                prior_delivered: delivered,
                rtt: Some(rtt),
                app_limited: false,
                tx_in_flight: tx_in_flight as u32,
                lost: (self.lost - lost) as u32,
                newly_lost,
                heavy: None,
            },
        });
        self.bbr.on_recovered(at);
        if self.states.last() != Some(&self.bbr.state) {
            self.states.push(self.bbr.state);
        }
    }
}

/// 100 Mbit/s, 40 ms, and a queue of four times that.
fn long_queue() -> Path {
    let (rate, rtt) = (12_500_000, 40 * MS);
    Path::new(rate, rtt, 4 * rate * rtt / 1_000_000_000)
}

#[test]
fn finds_rate_and_delay_and_leaves_the_queue_empty() {
    let mut path = long_queue();
    path.run(2_000 * MS);
    assert_eq!(
        path.states.get(..3).unwrap(),
        [State::Startup, State::Drain, State::ProbeBw(Phase::Cruise)]
    );
    let found = path.bbr.model.bandwidth() / path.rate as f64;
    assert!((0.95..1.05).contains(&found), "{found}");
    assert!(path.bbr.model.min_rtt < path.rtt + MS);
    let bytes = path.run(20_000 * MS);
    assert!(bytes > path.rate * 20 * 93 / 100, "{bytes}");
    // A loss-based algorithm would fill the queue: five times the round-trip time.
    assert!(path.longest_rtt < path.rtt * 2, "{}", path.longest_rtt);
    assert_eq!(path.lost, 0);
}

#[test]
fn goes_through_its_states() {
    let mut path = long_queue();
    path.run(15_000 * MS);
    let cycle = [Phase::Cruise, Phase::Refill, Phase::Up, Phase::Down, Phase::Cruise];
    let cycle = cycle.map(State::ProbeBw);
    assert!(path.states.windows(5).any(|states| states == cycle), "{:?}", path.states);
    assert!(path.states.contains(&State::ProbeRtt));
}

#[test]
fn a_faster_path_is_noticed_and_a_slower_one_too() {
    let mut path = long_queue();
    path.run(3_000 * MS);
    path.rate *= 4;
    path.run(10_000 * MS);
    assert!(path.run(5_000 * MS) > path.rate * 5 * 85 / 100);
    path.rate /= 8;
    path.run(20_000 * MS);
    assert!(path.longest_rtt < path.rtt * 12);
    path.run(5_000 * MS);
    assert!(path.longest_rtt < path.rtt * 3, "{}", path.longest_rtt);
}

#[test]
fn a_short_queue_bounds_what_is_in_flight() {
    // A quarter of what the path itself holds: what Startup lost must not go on for ever.
    let (rate, rtt) = (12_500_000, 40 * MS);
    let mut path = Path::new(rate, rtt, rate * rtt / 4_000_000_000);
    path.run(10_000 * MS);
    let lost = path.lost;
    let bytes = path.run(20_000 * MS);
    assert!(bytes > rate * 20 * 85 / 100, "{bytes}");
    assert!((path.lost - lost) * 50 < bytes, "{} of {bytes}", path.lost - lost);
}

#[test]
fn a_timeout_begins_with_one_segment_and_can_be_undone() {
    let mut path = long_queue();
    path.run(1_000 * MS);
    let before = path.bbr.window();
    path.bbr.on_rto(&Congestion { now: path.now, in_flight: before, lost: before });
    assert_eq!(path.bbr.window(), MSS);
    path.bbr.undo(path.now);
    assert_eq!(path.bbr.window(), before);
}

/// An acknowledgment of a full round trip of `rtt` ns in which `delivered` bytes arrived, `before` of them before it.
fn round_trip(rtt: u64, delivered: u32, before: u64, interval: u64) -> Ack {
    Ack {
        now: before + rtt,
        acked: delivered,
        delivered,
        total_delivered: before + u64::from(delivered),
        prior_in_flight: delivered,
        in_flight: 0,
        window_limited: true,
        in_recovery: false,
        srtt: rtt,
        min_rtt: rtt,
        sample: RateSample {
            delivered: delivered.into(),
            interval,
            prior_delivered: before,
            rtt: Some(rtt),
            app_limited: false,
            tx_in_flight: delivered,
            lost: 0,
            newly_lost: 0,
            heavy: None,
        },
    }
}

#[test]
fn a_round_trip_that_is_the_shortest_so_far_counts() {
    let mut path = Path::new(1, 1, 1);
    // A SYN that was answered late: a byte in 120 ms.
    path.bbr.on_ack(&round_trip(120 * MS, 1, 0, 120 * MS));
    path.bbr.on_ack(&round_trip(MS, 10_000, 1, MS));
    assert_eq!(path.bbr.model.bandwidth(), 10_000_000.0);
}

#[test]
fn rounds_without_a_measurement_do_not_end_startup() {
    let mut path = Path::new(1, 1, 1);
    path.bbr.on_ack(&round_trip(MS, 1, 0, MS));
    for round in 1..10 {
        // Acknowledgments in a heap: less than a round-trip time passed between them.
        path.bbr.on_ack(&round_trip(MS, 1000, round * 1000, MS / 2));
    }
    assert_eq!((path.bbr.state, path.bbr.full.reached), (State::Startup, false));
}

#[test]
fn nothing_that_a_peer_says_makes_it_stumble() {
    let mut bbr = Bbr::new(&Start { mss: 1, window: 1, threshold: u32::MAX, now: 0, seed: 0 });
    let mut next = crate::tests::pair::random(9);
    for _ in 0..100_000 {
        let mut word = || (next() >> (next() % 64)) as u32;
        let ack = Ack {
            now: u64::from(word()) << (word() % 32),
            acked: word(),
            delivered: word(),
            total_delivered: u64::from(word()) << (word() % 32),
            prior_in_flight: word(),
            in_flight: word(),
            window_limited: word() & 1 == 0,
            in_recovery: word() & 1 == 0,
            srtt: u64::from(word()),
            min_rtt: u64::from(word()),
            sample: RateSample {
                delivered: u64::from(word()) << (word() % 32),
                interval: u64::from(word()),
                prior_delivered: u64::from(word()),
                rtt: Some(u64::from(word())),
                app_limited: word() & 1 == 0,
                tx_in_flight: word(),
                lost: word(),
                newly_lost: word(),
                heavy: None,
            },
        };
        bbr.on_ack(&ack);
        assert!(bbr.window() >= 1 && bbr.pacing_rate() > Some(0));
    }
}

/// Segments of more than half of 64 KB, as a loopback has them: a batch is two of them at least.
#[test]
fn very_large_segments_are_taken() {
    let mss = 65_483;
    let start = Start { mss, window: 10 * mss, threshold: u32::MAX, now: 0, seed: 7 };
    let bbr = Bbr::new(&start);
    assert!(bbr.inflight(1.0) >= 6 * mss);
}
