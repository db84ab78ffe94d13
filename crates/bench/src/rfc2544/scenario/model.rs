//! What a scenario file can say, and what it means where it says nothing.

use measure::frame::{CHECK_SEQUENCE, FrameError, LONGEST, Layout, Transport, Vary};
use measure::load::{Mix, Order, Sizes};
use measure::search::Strategy;
use serde::{Deserialize, Serialize};
use wire::vlan::TAG_LENGTH;

use super::device::Device;
use super::needs::Needs;
use super::wrong::Wrong;

/// RFC 2544 9.1, and the white paper's 66 bytes.
const STANDARD: [u16; 8] = [64, 66, 128, 256, 512, 1024, 1280, 1518];

/// DPDK's default for memif: slots.
pub(super) const USUAL_RINGS: u32 = 1024;

/// What links carry unless they are told otherwise: bytes of an IP packet.
const USUAL_MTU: u16 = 1500;

/// A scenario.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(in crate::rfc2544) struct Scenario {
    /// What it is called in reports.
    #[serde(skip_serializing)]
    pub(in crate::rfc2544) title: String,
    /// Its number in the carriers' white paper, such as 1.3.
    pub(in crate::rfc2544) case: Option<String>,
    /// What it shows.
    #[serde(default, skip_serializing)]
    pub(in crate::rfc2544) about: String,
    /// Which of the file's variants it is.
    #[serde(skip)]
    pub(in crate::rfc2544) variant: Option<String>,
    #[serde(default, skip_serializing)]
    pub(in crate::rfc2544) needs: Needs,
    pub(in crate::rfc2544) device: Device,
    #[serde(default)]
    pub(in crate::rfc2544) frames: Frames,
    #[serde(default)]
    pub(in crate::rfc2544) flows: Flows,
    #[serde(default)]
    pub(in crate::rfc2544) trials: Trials,
}

/// Frames.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(in crate::rfc2544) struct Frames {
    /// Bytes, frame check sequence included; `operator` and `imix` are mixes. All of RFC 2544's if not given.
    sizes: Option<Vec<Size>>,
    pub(super) ipv6: bool,
    /// The share of frames that are IPv6, where there are both.
    pub(super) ipv6_share: Option<f64>,
    tcp: bool,
    /// VLAN of the device's ports.
    pub(in crate::rfc2544) vlan: Option<u16>,
}

/// A size in a file.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(untagged, expecting = "a frame size is expected: bytes, `operator` or `imix`")]
enum Size {
    Bytes(u16),
    Mix(String),
}

/// Flows each way.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(in crate::rfc2544) struct Flows {
    pub(in crate::rfc2544) count: u32,
    order: OrderWord,
    pub(super) vary: VaryWord,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum OrderWord {
    Sequential,
    Scattered,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum VaryWord {
    Destination,
    Source,
    Ports,
}

/// Trials.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(in crate::rfc2544) struct Trials {
    /// Length of a trial: s.
    pub(in crate::rfc2544) seconds: f64,
    /// Time for stragglers after it, and for the device to settle: s.
    pub(in crate::rfc2544) settle: f64,
    pub(in crate::rfc2544) both_ways: bool,
    /// Slots of a ring between the tester and a device that shares memory with it (memif).
    pub(in crate::rfc2544) rings: u32,
    /// Line rate: Gbit/s, for links that have none, such as shared memory.
    pub(in crate::rfc2544) line_rate: Option<f64>,
    /// Loss that is tolerated: a share.
    pub(in crate::rfc2544) loss: f64,
    /// Step of loads: a share of the highest.
    pub(in crate::rfc2544) resolution: f64,
    /// How often a trial that lost more is repeated before its load counts as too high.
    pub(in crate::rfc2544) repeats: u32,
    search: StrategyWord,
    /// How often the throughput is searched for.
    pub(in crate::rfc2544) searches: u32,
    pub(in crate::rfc2544) tests: Vec<Test>,
    /// Latency: length of a trial (s), trials, loads as shares of the throughput.
    pub(in crate::rfc2544) latency_seconds: f64,
    pub(in crate::rfc2544) latency_trials: u32,
    pub(in crate::rfc2544) latency_loads: Vec<f64>,
    /// Back-to-back frames: searches, and longest burst (s).
    pub(in crate::rfc2544) burst_searches: u32,
    pub(in crate::rfc2544) burst_seconds: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum StrategyWord {
    Stepwise,
    Bisection,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::rfc2544) enum Test {
    Throughput,
    Latency,
    FrameLoss,
    BackToBack,
}

impl Default for Flows {
    fn default() -> Self {
        Self { count: 1, order: OrderWord::Sequential, vary: VaryWord::Destination }
    }
}

impl Default for Trials {
    fn default() -> Self {
        Self {
            // RFC 2544 24, 23, 26.1, 26.2; RFC 9004 5.3.
            seconds: 60.0,
            settle: 7.0,
            both_ways: true,
            rings: USUAL_RINGS,
            line_rate: None,
            loss: 0.0,
            resolution: 0.01,
            repeats: 0,
            search: StrategyWord::Bisection,
            searches: 1,
            tests: vec![Test::Throughput, Test::Latency],
            latency_seconds: 120.0,
            latency_trials: 20,
            latency_loads: vec![1.0],
            burst_searches: 50,
            burst_seconds: 2.0,
        }
    }
}

impl Frames {
    /// Where things lie in the frames of an IP version.
    pub(in crate::rfc2544) fn layout(&self, ipv6: bool) -> Layout {
        Layout { ipv6, transport: self.transport(), tagged: self.vlan.is_some() }
    }

    /// Tenths of the frames that are IPv6.
    pub(in crate::rfc2544) fn tenths(&self) -> u8 {
        let share = self.ipv6_share.unwrap_or(if self.ipv6 { 1.0 } else { 0.0 });
        (share * 10.0).round() as u8
    }

    /// The IP versions that there are: whether each is IPv6.
    pub(in crate::rfc2544) fn versions(&self) -> Vec<bool> {
        match self.tenths() {
            0 => vec![false],
            10 => vec![true],
            _ => vec![false, true],
        }
    }

    /// The shortest frame that all versions can have: bytes.
    pub(in crate::rfc2544) fn least(&self) -> u16 {
        let all = self.versions().into_iter().map(|ipv6| self.layout(ipv6).least());
        all.max().unwrap_or(64)
    }

    /// What the device's links must carry: the largest IP packet, if it is larger than usual: bytes.
    pub(in crate::rfc2544) fn mtu(&self) -> Option<u16> {
        let least = self.least();
        let sizes = self.sizes().unwrap_or_default();
        let longest = sizes.into_iter().flat_map(|size| size.cycle(least)).max()?;
        let most = longest - self.overhead();
        (most > USUAL_MTU).then_some(most)
    }

    /// What a frame has besides its IP packet: bytes.
    fn overhead(&self) -> u16 {
        let tag = if self.vlan.is_some() { TAG_LENGTH } else { 0 };
        CHECK_SEQUENCE + (wire::ethernet::HEADER_LENGTH + tag) as u16
    }

    pub(in crate::rfc2544) fn transport(&self) -> Transport {
        if self.tcp { Transport::Tcp } else { Transport::Udp }
    }

    /// The sizes: what is named, or all of the standard's, raised to the least that there can be.
    pub(in crate::rfc2544) fn sizes(&self) -> Result<Vec<Sizes>, Wrong> {
        let least = self.least();
        let Some(sizes) = &self.sizes else {
            let mut sizes: Vec<_> =
                STANDARD.iter().map(|size| Sizes::One(*size.max(&least))).collect();
            sizes.dedup();
            sizes.extend([Sizes::Mix(Mix::Operator), Sizes::Mix(Mix::Internet)]);
            return Ok(sizes);
        };
        let read = |size: &Size| match size {
            Size::Bytes(size) => Ok(Sizes::One(*size)),
            Size::Mix(name) => name.parse().map_err(Wrong::Size),
        };
        let one = |size: &Size| match read(size)? {
            Sizes::One(size) if size < least => {
                Err(Wrong::Frame(FrameError::Short { size, least }))
            }
            Sizes::One(size) if size > LONGEST => Err(Wrong::Frame(FrameError::Long { size })),
            size => Ok(size),
        };
        sizes.iter().map(one).collect()
    }
}

impl Flows {
    pub(in crate::rfc2544) fn order(&self) -> Order {
        match self.order {
            OrderWord::Sequential => Order::Sequential,
            OrderWord::Scattered => Order::Scattered,
        }
    }

    pub(in crate::rfc2544) fn vary(&self) -> Vary {
        match self.vary {
            VaryWord::Destination => Vary::Destination,
            VaryWord::Source => Vary::Source,
            VaryWord::Ports => Vary::Ports,
        }
    }
}

impl Trials {
    /// What is measured: each once, and the throughput before what needs it.
    pub(in crate::rfc2544) fn in_order(&self) -> impl Iterator<Item = Test> {
        let all = [Test::Throughput, Test::Latency, Test::FrameLoss, Test::BackToBack];
        all.into_iter().filter(move |test| self.tests.contains(test))
    }

    /// The size of the rings as an argument of memif: the power of two.
    pub(in crate::rfc2544) fn ring_option(&self) -> String {
        format!("rsize={}", self.rings.trailing_zeros())
    }

    /// How many frames the tester may be late and catch up: the rest of the ring is for what waits there already.
    pub(in crate::rfc2544) fn slack(&self) -> u32 {
        self.rings / 4
    }

    pub(in crate::rfc2544) fn strategy(&self) -> Strategy {
        match self.search {
            StrategyWord::Stepwise => Strategy::Stepwise,
            StrategyWord::Bisection => Strategy::Bisection,
        }
    }

    /// A first look in place of a result.
    pub(in crate::rfc2544) fn quicken(&mut self) {
        self.seconds = self.seconds.min(2.0);
        self.settle = self.settle.min(0.3);
        self.latency_seconds = self.latency_seconds.min(2.0);
        self.latency_trials = self.latency_trials.min(1);
        self.searches = 1;
        self.burst_searches = self.burst_searches.min(3);
    }
}
