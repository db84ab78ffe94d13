//! The kinds of devices, with their drivers and options, as one table.

use std::fmt;

/// What drives a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeviceKind {
    /// A network card or a virtual function of one, by PCI address.
    Pci,
    /// A kernel interface through AF_XDP sockets.
    AfXdp,
    /// A kernel interface through AF_PACKET sockets.
    AfPacket,
    /// A kernel tap interface that the port makes.
    Tap,
    /// Shared memory with another process, both ends in user space.
    Memif,
    /// The host's end of virtio: a virtual machine or `virtio-user` is the peer.
    VhostUser,
    /// The guest's end of virtio, towards a vhost-user socket.
    VirtioUser,
    /// Packets from, and to, capture files.
    Pcap,
    /// Sends into the void; receives zeroed packets.
    Null,
}

/// What an option's value must be.
#[derive(Debug, Clone, Copy)]
pub(super) enum Takes {
    Number(u32, u32),
    Word(&'static [&'static str]),
    Mac,
    Path,
    Text,
}

pub(super) struct OptionSpec {
    /// In the device string.
    pub(super) name: &'static str,
    /// In the driver's arguments.
    pub(super) key: &'static str,
    pub(super) takes: Takes,
}

pub(super) struct KindSpec {
    pub(super) name: &'static str,
    pub(super) example: &'static str,
    /// DPDK's driver name; virtual devices are named after it.
    pub(super) driver: &'static str,
    /// Driver argument that holds the device string's argument.
    pub(super) argument_key: Option<&'static str>,
    /// Driver argument that holds the number of queue pairs.
    pub(super) queues_key: Option<&'static str>,
    pub(super) options: &'static [OptionSpec],
}

const FLAG: Takes = Takes::Word(&["0", "1"]);

const fn option(name: &'static str, takes: Takes) -> OptionSpec {
    OptionSpec { name, key: name, takes }
}

const fn renamed(name: &'static str, key: &'static str, takes: Takes) -> OptionSpec {
    OptionSpec { name, key, takes }
}

static SPECS: [KindSpec; 9] = [
    KindSpec {
        name: "pci",
        example: "pci:0000:81:00.0",
        driver: "",
        argument_key: None,
        queues_key: None,
        options: &[],
    },
    KindSpec {
        name: "afxdp",
        example: "afxdp:eth1",
        driver: "net_af_xdp",
        argument_key: Some("iface"),
        queues_key: Some("queue_count"),
        options: &[
            option("start_queue", Takes::Number(0, 1023)),
            renamed("queues", "queue_count", Takes::Number(1, 64)),
            option("busy_budget", Takes::Number(0, 65535)),
            option("force_copy", FLAG),
            option("shared_umem", FLAG),
        ],
    },
    KindSpec {
        name: "afpacket",
        example: "afpacket:eth1",
        driver: "net_af_packet",
        argument_key: Some("iface"),
        queues_key: Some("qpairs"),
        options: &[
            renamed("queues", "qpairs", Takes::Number(1, 16)),
            option("blocksz", Takes::Number(4096, 1 << 22)),
            option("framesz", Takes::Number(512, 65536)),
            option("framecnt", Takes::Number(16, 65536)),
            option("qdisc_bypass", FLAG),
        ],
    },
    KindSpec {
        name: "tap",
        example: "tap:mr0",
        driver: "net_tap",
        argument_key: Some("iface"),
        queues_key: None,
        options: &[option("mac", Takes::Mac)],
    },
    KindSpec {
        name: "memif",
        example: "memif:/run/peer.sock,role=server,id=0",
        driver: "net_memif",
        argument_key: Some("socket"),
        queues_key: None,
        options: &[
            option("role", Takes::Word(&["server", "client"])),
            option("id", Takes::Number(0, u32::MAX)),
            option("bsize", Takes::Number(64, 65535)),
            option("rsize", Takes::Number(1, 14)),
            option("mac", Takes::Mac),
            option("secret", Takes::Text),
        ],
    },
    KindSpec {
        name: "vhost-user",
        example: "vhost-user:/run/vm.sock",
        driver: "net_vhost",
        argument_key: Some("iface"),
        queues_key: Some("queues"),
        options: &[
            option("queues", Takes::Number(1, 128)),
            option("client", FLAG),
            option("iommu-support", FLAG),
            option("postcopy-support", FLAG),
            option("tso", FLAG),
        ],
    },
    KindSpec {
        name: "virtio-user",
        example: "virtio-user:/run/vm.sock",
        driver: "net_virtio_user",
        argument_key: Some("path"),
        queues_key: Some("queues"),
        options: &[
            option("queues", Takes::Number(1, 128)),
            option("queue_size", Takes::Number(64, 4096)),
            option("mac", Takes::Mac),
            option("server", FLAG),
            option("mrg_rxbuf", FLAG),
            option("in_order", FLAG),
            option("packed_vq", FLAG),
        ],
    },
    KindSpec {
        name: "pcap",
        example: "pcap:in.pcap,out=out.pcap",
        driver: "net_pcap",
        argument_key: Some("rx_pcap"),
        queues_key: None,
        options: &[
            renamed("out", "tx_pcap", Takes::Path),
            renamed("infinite", "infinite_rx", FLAG),
        ],
    },
    KindSpec {
        name: "null",
        example: "null",
        driver: "net_null",
        argument_key: None,
        queues_key: None,
        options: &[
            option("size", Takes::Number(64, 9000)),
            option("copy", FLAG),
            option("no-rx", FLAG),
        ],
    },
];

impl DeviceKind {
    /// Every kind.
    pub const ALL: &'static [Self] = &[
        Self::Pci,
        Self::AfXdp,
        Self::AfPacket,
        Self::Tap,
        Self::Memif,
        Self::VhostUser,
        Self::VirtioUser,
        Self::Pcap,
        Self::Null,
    ];

    /// Whether two processes can have a device open at the same time. Each gets every packet then.
    #[must_use]
    pub fn is_shareable(self) -> bool {
        matches!(self, Self::AfPacket | Self::Null)
    }

    pub(super) fn spec(self) -> &'static KindSpec {
        &SPECS[self as usize]
    }

    /// The kind's word in a device string.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.spec().name
    }

    /// A device string of this kind.
    #[must_use]
    pub fn example(self) -> &'static str {
        self.spec().example
    }

    /// DPDK's driver of this kind; empty for `pci`, where DPDK finds it.
    #[must_use]
    pub fn driver(self) -> &'static str {
        self.spec().driver
    }

    /// The options of this kind, in words: `start_queue (0 to 1023), ...`.
    #[must_use]
    pub fn options(self) -> String {
        if self == Self::Pci {
            return "those of the card's DPDK driver".to_owned();
        }
        let list = self.spec().options.iter();
        list.map(|option| format!("{} ({})", option.name, option.takes.words()))
            .collect::<Vec<_>>()
            .join(", ")
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Takes {
    pub(super) fn allows(self, value: &str) -> bool {
        let printable = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_graphic());
        match self {
            Self::Number(low, high) => {
                value.parse::<u32>().is_ok_and(|number| (low..=high).contains(&number))
            }
            Self::Word(words) => words.contains(&value),
            Self::Mac => {
                let mut bytes = value.split(':');
                let byte = |text: &str| text.len() == 2 && u8::from_str_radix(text, 16).is_ok();
                value.len() == 17 && bytes.by_ref().all(byte)
            }
            Self::Path | Self::Text => printable && !value.contains(['[', ']', '"', '\'']),
        }
    }

    pub(super) fn words(self) -> String {
        match self {
            Self::Number(low, high) => format!("{low} to {high}"),
            Self::Word(words) => words.join(" or "),
            Self::Mac => "a MAC address such as 02:00:00:00:00:01".to_owned(),
            Self::Path => "a file name without spaces, quotes and brackets".to_owned(),
            Self::Text => "a word without spaces, quotes and brackets".to_owned(),
        }
    }
}
