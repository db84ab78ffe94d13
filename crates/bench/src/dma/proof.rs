//! Soft NIC and driver against the model: what was counted must be what was calculated.

use super::Broken;
use super::bus::Bus;
use super::driver::Driver;
use super::frames::Frames;
use super::ledger::Ledger;
use super::memory::Memory;
use super::model::{Direction, Model};
use super::nic::Nic;
use super::registers::registers;

/// What came of a stream of packets.
#[derive(Debug)]
pub(super) struct Proof {
    /// Of all packets.
    pub(super) counted: Ledger,
    /// Of all packets.
    pub(super) modelled: Ledger,
    /// Packets whose transfers were others than the model's.
    pub(super) differing: u64,
}

/// Sends packets from a device to a driver or back, each in a thread of its own. Each packet is checked, byte
/// for byte, where it arrives.
pub(super) fn prove(model: &Model, direction: Direction, frames: &Frames) -> Result<Proof, Broken> {
    let memory = Memory::new();
    let (registers, accesses) = registers();
    let mut nic = Nic::new(Bus::new(&memory, model.link), *model, accesses);
    let mut driver = Driver::new(&memory, *model, registers);
    std::thread::scope(|scope| {
        let device = scope.spawn(|| match direction {
            Direction::Receive => nic.receive(frames),
            Direction::Transmit => nic.transmit(frames),
        });
        let driven = match direction {
            Direction::Receive => driver.receive(frames),
            Direction::Transmit => driver.transmit(frames),
        };
        device.join().map_err(|_| Broken::Silent)?.and(driven)
    })?;
    let mut proof = Proof {
        counted: Ledger::default(),
        modelled: Ledger::default(),
        differing: nic.ledgers.len().abs_diff(frames.count() as usize) as u64,
    };
    for (number, counted) in (0..).zip(&nic.ledgers) {
        let size = frames.size(number);
        let modelled = model.packet(direction, number, frames.count(), size);
        proof.counted += *counted;
        proof.modelled += modelled;
        proof.differing += u64::from(*counted != modelled);
    }
    Ok(proof)
}

#[cfg(test)]
mod tests {
    use super::super::model::Way;
    use super::super::pcie::{Generation, Link};
    use super::*;
    use clap::ValueEnum as _;
    use proptest::prelude::*;

    fn assert_proven(model: &Model, direction: Direction, sizes: Vec<u64>) {
        let proof = prove(model, direction, &Frames::new(sizes, 3)).unwrap();
        assert_eq!(proof.differing, 0, "{model:?} {direction:?}");
        assert_eq!(proof.counted, proof.modelled);
        assert!(proof.counted.total().up.bytes > 0);
    }

    #[test]
    fn every_size_costs_what_the_model_says() {
        for way in [Way::Classic { batch: 1 }, Way::Classic { batch: 4 }, Way::SelfDescribed] {
            let model = Model { link: Link::default(), way, fetch: 32 };
            for direction in Direction::BOTH {
                assert_proven(&model, direction, (64..=1518).collect());
            }
        }
    }

    #[test]
    fn the_document_s_figures_are_counted() {
        let frames = Frames::new(vec![64; 100], 1);
        let count = |way| {
            let model = Model { link: Link::default(), way, fetch: 32 };
            let proof = prove(&model, Direction::Receive, &frames).unwrap();
            proof.counted.document() / 100
        };
        assert_eq!((count(Way::Classic { batch: 1 }), count(Way::SelfDescribed)), (192, 128));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn random_lengths_on_any_link_cost_what_the_model_says(
            sizes in proptest::collection::vec(1..=1518u64, 1..700),
            generation in proptest::sample::select(Generation::value_variants()),
            payload in 7..12u32, request in 7..13u32, completion in 6..9u32,
            wide: bool, fetch in 0..8u32, batch in proptest::option::of(0..8u32), receives: bool,
        ) {
            let completion = 1 << completion.min(payload);
            let (payload, request) = (1 << payload, 1 << request);
            let link = Link { generation, payload, request, completion, wide };
            let way = batch.map_or(Way::SelfDescribed, |batch| Way::Classic { batch: 1 << batch });
            let model = Model { link, way, fetch: 1 << fetch };
            let direction = if receives { Direction::Receive } else { Direction::Transmit };
            assert_proven(&model, direction, sizes);
        }
    }
}
