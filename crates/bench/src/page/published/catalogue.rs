//! The figures that others have published.

const FORWARDING: &str = "layer-3 forwarding on DPDK (thesis, 2016), 10 GbE";
const NGINX: &str = "NGINX on the VPP host stack (thesis, 2020), 2 x 14-core Xeon, 40 GbE";
const SDB: &str = "network processing development kit (paper, 2016), 10 GbE";
const DMA: &str = "minimum-overhead DMA (paper), one 2.4 GHz socket, 2 x 10 GbE";
const OPERATOR: &str = "DPDK performance white paper V1.2 (telecom operator, 2016)";

/// A published figure.
pub(super) struct Published {
    pub(super) source: &'static str,
    pub(super) what: &'static str,
    pub(super) figure: &'static str,
    /// The least and the most that it is, as a number in the unit of ours.
    pub(super) at: Option<[f64; 2]>,
    pub(super) ours: Option<Ours>,
}

/// Which results of ours are of the same quantity.
pub(super) struct Ours {
    pub(super) name: &'static str,
    /// Parameters that they must have.
    pub(super) with: With,
    pub(super) of: Of,
}

/// What of a result is comparable.
#[derive(Clone, Copy)]
pub(super) enum Of {
    /// Its value times this, in this unit.
    Value(f64, &'static str),
    /// Its ratio to the yardstick.
    Ratio,
    /// The share of the highest load that was carried, which is the line rate or what the tester can do: percent.
    Share,
}

/// Parameters and their values.
type With = &'static [(&'static str, &'static str)];

const fn published(source: &'static str, what: &'static str, figure: &'static str) -> Published {
    Published { source, what, figure, at: None, ours: None }
}

impl Of {
    /// What a figure is in.
    pub(super) fn unit(self) -> &'static str {
        match self {
            Self::Value(_, unit) => unit,
            Self::Ratio => "times the yardstick",
            Self::Share => "% of the top",
        }
    }
}

impl Published {
    const fn beside(self, name: &'static str, with: With, of: Of) -> Self {
        Self { ours: Some(Ours { name, with, of }), ..self }
    }

    const fn at(self, number: f64) -> Self {
        self.between(number, number)
    }

    const fn between(self, least: f64, most: f64) -> Self {
        Self { at: Some([least, most]), ..self }
    }
}

const MPPS: Of = Of::Value(1e-6, "Mpps");

/// Forwarding with the threads on such cores.
const fn cores(what: &'static str, figure: &'static str, with: With) -> Published {
    published(FORWARDING, what, figure).beside("forwarding by cores", with, MPPS)
}

/// Zero-loss load with frames of 66 B, a scenario of the white paper.
const fn operator(what: &'static str, figure: &'static str, with: With) -> Published {
    published(OPERATOR, what, figure).beside("throughput", with, Of::Share)
}

/// The figures as they were published; `beside` names ours where the quantity is the same, and `at` is the figure in its unit.
pub(super) const PUBLISHED: &[Published] = &[
    published(FORWARDING, "64 B, IPv4 routes, one core for each port", "14.5 of 14.88 Mpps")
        .beside("throughput", &[("frame", "64")], MPPS)
        .at(14.5),
    cores(
        "receiver, forwarder and transmitter on cores of one node",
        "14.5 Mpps",
        &[
            ("receive_worker", "same L3"),
            ("worker_transmit", "same L3"),
            ("receive_transmit", "same L3"),
        ],
    )
    .at(14.5),
    cores(
        "the same, forwarder on another node",
        "13.5 Mpps",
        &[("receive_worker", "other node"), ("receive_transmit", "same L3")],
    )
    .at(13.5),
    cores(
        "the same, forwarder on the transmit core's hyper-twin",
        "10.5 Mpps",
        &[("worker_transmit", "SMT sibling"), ("receive_worker", "same L3")],
    )
    .at(10.5),
    cores(
        "the same, forwarder and transmitter on one logical core",
        "7.1 Mpps",
        &[("worker_transmit", "same core"), ("receive_worker", "same L3")],
    )
    .at(7.1),
    published(FORWARDING, "the same, 256 to 2048 MB of hugepages", "no effect above 128 MB")
        .beside("forwarding by pages", &[("pages", "2 MB")], MPPS),
    published(FORWARDING, "the same, 1 to 4 memory channels", "no effect").beside(
        "forwarding by channels",
        &[],
        MPPS,
    ),
    published(
        NGINX,
        "requests/s, bodies of 64 B and 1 KB",
        "3.33 times the kernel, 1.5 times F-Stack",
    )
    .beside("requests", &[("path", "inline"), ("body", "64")], Of::Ratio)
    .at(3.33),
    published(NGINX, "latency", "55 us; kernel 70, VPP LDP 83, F-Stack 105")
        .beside("latency, p50", &[("path", "inline"), ("body", "64")], Of::Value(1.0, "us"))
        .at(55.0),
    published(NGINX, "CPU when idle", "0 %")
        .beside(
            "idle CPU of NGINX and daemon",
            &[("path", "inline")],
            Of::Value(100.0, "% of a core"),
        )
        .at(0.0),
    published(SDB, "64 B, one thread", "4.9 Gbit/s; four threads 7.49")
        .beside(
            "throughput",
            &[("frame", "64")],
            // Bits of the frames alone: 14.88 Mpps of 64 B are 7.62 Gbit/s.
            Of::Value(64.0 * 8.0 / 1e9, "Gbit/s"),
        )
        .at(4.9),
    published(DMA, "PCIe bytes for a received packet of 64 B", "128, instead of 192")
        .beside(
            "units of 64 B",
            &[("direction", "receive"), ("size", "64")],
            Of::Value(1.0, "bytes"),
        )
        .at(128.0),
    published(DMA, "the same, less than with descriptors written back", "33.3 % less")
        .beside("units of 64 B", &[("direction", "receive"), ("size", "64")], Of::Ratio)
        .at(1.5),
    published(DMA, "forwarding, 64 B; random lengths", "13.3 Gbit/s; 18.7 Gbit/s"),
    operator(
        "zero-loss load, 1 core",
        "74 % of line rate",
        &[("scenario", "1.2 one core and two, 1 core"), ("frame", "66")],
    )
    .at(74.0),
    operator(
        "zero-loss load, 2 cores",
        "93 %",
        &[("scenario", "1.2 one core and two, 2 cores"), ("frame", "66")],
    )
    .at(93.0),
    operator(
        "zero-loss load, core on the other node",
        "65 %",
        &[
            ("scenario", "1.3 NUMA placement, bare machine, core on the other node"),
            ("frame", "66"),
        ],
    )
    .at(65.0),
    operator(
        "zero-loss load, card on the other node",
        "77 %",
        &[
            ("scenario", "1.3 NUMA placement, bare machine, card on the other node"),
            ("frame", "66"),
        ],
    )
    .at(77.0),
    operator(
        "zero-loss load, 120 Gbit/s",
        "63 %",
        &[("scenario", "1.7 load from 20 to 120 Gbit/s, 120 Gbit/s"), ("frame", "66")],
    )
    .at(63.0),
    operator(
        "zero-loss load, 20,000 flows each way",
        "79.5 %",
        &[("scenario", "1.8 size of the flow table, 20,000 flows each way"), ("frame", "66")],
    )
    .at(79.5),
    operator(
        "zero-loss load, 16,777,216 flows each way",
        "64 %",
        &[("scenario", "1.8 size of the flow table, 16,777,216 flows each way"), ("frame", "66")],
    )
    .at(64.0),
    operator(
        "zero-loss load in a guest (SR-IOV), 20,000 flows each way",
        "80 %",
        &[
            ("scenario", "2.7 size of the flow table, SR-IOV, 20,000 flows each way"),
            ("frame", "66"),
        ],
    )
    .at(80.0),
    operator(
        "zero-loss load in a guest (SR-IOV), 16,777,216 flows each way",
        "51 %",
        &[
            ("scenario", "2.7 size of the flow table, SR-IOV, 16,777,216 flows each way"),
            ("frame", "66"),
        ],
    )
    .at(51.0),
    operator(
        "zero-loss load of a virtual switch",
        "43 to 60 %",
        &[("scenario", "3.4 NUMA placement, virtual switch, all on one node"), ("frame", "66")],
    )
    .between(43.0, 60.0),
    operator(
        "zero-loss load of a virtual switch, card on the other node",
        "5 %",
        &[
            ("scenario", "3.4 NUMA placement, virtual switch, card on the other node"),
            ("frame", "66"),
        ],
    )
    .at(5.0),
];
