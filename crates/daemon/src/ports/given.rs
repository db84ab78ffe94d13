//! The ids that ports get: their devices' numbers, which DPDK gives out again.

use graph::PortId;

/// Which of the ports that had a number is the last one.
#[derive(Debug)]
pub(super) struct Given([Option<PortId>; PortId::NUMBERS]);

impl Default for Given {
    fn default() -> Self {
        Self([None; PortId::NUMBERS])
    }
}

impl Given {
    /// The id of the port whose device was opened just now.
    pub(super) fn next(&mut self, number: u16) -> PortId {
        let Some(last) = self.0.get_mut(usize::from(number)) else { return PortId::NONE };
        let generation = last.map_or(0, |last| last.generation().wrapping_add(1));
        *last.insert(PortId::with_generation(number, generation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_given_out_again_makes_another_id() {
        let mut given = Given::default();
        let ids = [2, 3, 2, 2].map(|number| given.next(number));
        let expected = [(2, 0), (3, 0), (2, 1), (2, 2)];
        assert_eq!(ids, expected.map(|(number, g)| PortId::with_generation(number, g)));
        assert_eq!(given.next(256), PortId::NONE);
    }
}
