//! Cores of the tester, and of a device that names none.

/// Cores that nobody has named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seats {
    pub(super) tester: usize,
    /// The device's: the first core.
    pub(super) device: usize,
    /// Of what the device needs besides: yet another one if there are three.
    pub(super) second: usize,
    /// A core of another NUMA node than the tester's; `None`: all are on one.
    pub(super) far: Option<usize>,
}

impl Seats {
    /// Of the cores that may be used, in their order, and the NUMA node of each. Tester and device are on one node, so that frames
    /// do not cross from node to node unless that is to be measured; if the first core's node has no other, they have a core each all
    /// the same.
    pub(super) fn of(cores: &[usize], node: impl Fn(usize) -> u16) -> Self {
        let device = cores.first().copied().unwrap_or(0);
        let mut near: Vec<usize> =
            cores.iter().copied().filter(|core| node(*core) == node(device)).collect();
        if near.len() < 2 {
            near = cores.to_vec();
        }
        let tester = near.last().copied().unwrap_or(device);
        let second = if near.len() > 2 { near.get(1) } else { near.first() };
        let far = cores.iter().copied().find(|core| node(*core) != node(tester));
        Self { tester, device, second: second.copied().unwrap_or(device), far }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seats(cores: &[usize], per_node: usize) -> [usize; 3] {
        let Seats { tester, device, second, .. } =
            Seats::of(cores, |core| (core / per_node) as u16);
        [device, second, tester]
    }

    #[test]
    fn tester_and_device_are_on_one_node() {
        assert_eq!(seats(&[0, 1, 2, 3, 4, 5, 6, 7], 4), [0, 1, 3]);
        assert_eq!(seats(&[3, 4, 5], 4), [3, 4, 5], "rather on another node than on one core");
        assert_eq!(seats(&[5, 6, 7], 4), [5, 6, 7]);
        assert_eq!((seats(&[0, 1], 4), seats(&[0], 4)), ([0, 0, 1], [0, 0, 0]));
        assert_eq!(seats(&[], 4), [0, 0, 0]);
    }

    #[test]
    fn a_far_core_is_far_from_the_tester() {
        let far = |cores: &[usize]| Seats::of(cores, |core| (core / 4) as u16).far;
        assert_eq!(far(&[0, 1, 4, 5]), Some(4));
        assert_eq!((far(&[0, 1, 2]), far(&[])), (None, None));
        // The tester is on the second node.
        assert_eq!(far(&[3, 4]), Some(3));
    }
}
