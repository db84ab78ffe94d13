//! Which phase a virtual machine is in: the way between two cores changes while it runs.

use crate::results::Samples;

/// Two probes that differ by less see the machine in the same phase.
const ALIKE: f64 = 1.5;

/// Whether all probes saw the machine in one phase.
pub(crate) fn same_phase(probes: &Samples) -> bool {
    probes.max() <= ALIKE * probes.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_told_apart() {
        let same = |probes: &[f64]| same_phase(&Samples(probes.to_vec()));
        assert!(same(&[330.0, 400.0, 350.0]));
        assert!(!same(&[330.0, 1000.0]) && !same(&[900.0, 330.0, 340.0]));
        assert!(!same(&[]));
    }
}
