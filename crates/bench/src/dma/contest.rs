//! Both ways of speaking, and where they are compared.

use super::args::Args;
use super::model::{Direction, Model, Way};
use super::pcie::{Generation, Link};

/// Which way packets go over a link.
pub(super) const COURSES: [(&str, &[Direction]); 3] = [
    ("receive", &[Direction::Receive]),
    ("transmit", &[Direction::Transmit]),
    ("forward", &[Direction::Receive, Direction::Transmit]),
];

/// One way, and its model on each link.
#[derive(Debug, Clone, Copy)]
pub(super) struct Contest {
    pub(super) classic: Model,
    pub(super) own: Model,
}

impl Contest {
    pub(super) fn of(args: &Args, generation: Generation) -> Self {
        let link = Link {
            generation,
            payload: args.payload,
            request: args.read_request,
            completion: args.completion.min(args.payload),
            wide: !args.narrow,
        };
        let of = |way| Model { link, way, fetch: args.fetch };
        let classic = of(Way::Classic { batch: args.write_back });
        Self { classic, own: of(Way::SelfDescribed) }
    }
}

/// Each link, width and size.
pub(super) fn combined<'a>(
    contests: &'a [Contest],
    lanes: &'a [u32],
    sizes: &'a [u64],
) -> impl Iterator<Item = (&'a Contest, u32, u64)> {
    contests.iter().flat_map(move |contest| {
        let of = move |lanes: &u32| {
            let lanes = *lanes;
            sizes.iter().map(move |size| (contest, lanes, *size))
        };
        lanes.iter().flat_map(of)
    })
}
