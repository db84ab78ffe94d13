//! What is measured on a machine, and what cannot be, with the reason.

use std::num::NonZeroU8;

use doctor::Machine;
use serde_json::Value;

use super::args::{Args, Vary};
use super::memory::{AMOUNTS, CHANNELS, Hugepages, Memory, Pages};
use super::pair::Place;
use super::places::{Placement, Placements};

/// What is varied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Cores(Placement),
    /// Pages of DPDK's memory, and how many MB of it.
    Pages(Pages, u32),
    /// Memory channels that DPDK is told.
    Channels(NonZeroU8),
}

/// How it is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Setup {
    /// Of receiver, worker and transmitter.
    pub(super) cores: [u16; 3],
    pub(super) memory: Memory,
}

/// A row of the results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) what: What,
    /// `Err`: why this machine cannot.
    pub(super) setup: Result<Setup, String>,
}

impl What {
    /// The result's name.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Cores(_) => "forwarding by cores",
            Self::Pages(..) => "forwarding by pages",
            Self::Channels(_) => "forwarding by channels",
        }
    }

    /// What tells it from others of that name.
    pub(super) fn parameters(&self) -> Vec<(&'static str, Value)> {
        match self {
            Self::Cores(placement) => [
                ("receive_worker", placement.receive_worker),
                ("worker_transmit", placement.worker_transmit),
                ("receive_transmit", placement.receive_transmit),
            ]
            .map(|(name, pair)| (name, Value::from(pair.to_string())))
            .into(),
            Self::Pages(pages, megabytes) => {
                vec![("pages", pages.to_string().into()), ("MB", (*megabytes).into())]
            }
            Self::Channels(channels) => vec![("channels", channels.get().into())],
        }
    }

    /// In words.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Cores(placement) => placement.to_string(),
            Self::Pages(pages, megabytes) => format!("{megabytes} MB in pages of {pages}"),
            Self::Channels(channels) => format!("-n {channels}"),
        }
    }

    /// Whether others are compared with it: all threads on one core.
    pub(super) fn is_yardstick(&self) -> bool {
        *self == Self::Cores(Placement::ONE_CORE)
    }
}

/// All rows of a machine, of whose cores some may be used. What is not varied is that of the yardstick, which is always there.
pub(super) fn rows(machine: &Machine, usable: &[usize], args: &Args) -> Vec<Row> {
    let placements = Placements::on(Place::all(&machine.topology, usable));
    let hugepages = Hugepages::new(&machine.memory.pools, args.run.no_huge);
    let all: Vec<(Placement, Result<[Place; 3], String>)> = Placement::all()
        .into_iter()
        .filter(|placement| args.varies(Vary::Cores) || *placement == Placement::ONE_CORE)
        .map(|placement| (placement, placements.cores(placement)))
        .collect();
    // A receive queue's memory comes from the node of who receives.
    let nodes: Vec<u16> =
        all.iter().flat_map(|(_, cores)| cores).map(|[receive, ..]| receive.node).collect();
    let usual = Memory::usual(hugepages.usual(&nodes));
    let setup = |cores: &[Place; 3], memory| Setup { cores: cores.map(|place| place.core), memory };
    let one = placements.cores(Placement::ONE_CORE);
    let mut rows: Vec<Row> = all
        .into_iter()
        .map(|(placement, cores)| Row {
            what: What::Cores(placement),
            setup: cores.map(|cores| setup(&cores, usual)),
        })
        .collect();
    let on_one = |what, memory: Result<Memory, String>| Row {
        what,
        setup: one.clone().and_then(|cores| Ok(setup(&cores, memory?))),
    };
    if args.varies(Vary::Pages) {
        let huge = hugepages.sizes().into_iter().map(Pages::Huge);
        for pages in std::iter::once(Pages::Ordinary).chain(huge) {
            for megabytes in AMOUNTS {
                let lack = match (pages, &one) {
                    (Pages::Huge(size), Ok([receive, ..])) => {
                        hugepages.lack(size, megabytes, receive.node)
                    }
                    _ => None,
                };
                let memory = Memory { pages, megabytes, channels: None };
                let memory = lack.map_or(Ok(memory), Err);
                rows.push(on_one(What::Pages(pages, megabytes), memory));
            }
        }
    }
    if args.varies(Vary::Channels) {
        for channels in CHANNELS.filter_map(NonZeroU8::new) {
            let memory = Memory { channels: Some(channels), ..usual };
            rows.push(on_one(What::Channels(channels), Ok(memory)));
        }
    }
    rows
}
