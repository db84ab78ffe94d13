//! Which flow each frame belongs to.

/// In which order the flows take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// One after the other.
    Sequential,
    /// Far from each other, each as often as any other: what a cache of tables likes least.
    Scattered,
}

/// The flows of a stream, one frame after the other.
#[derive(Debug, Clone)]
pub struct Flows {
    count: u32,
    step: u32,
    next: u32,
}

impl Flows {
    /// `count` flows, at least one, which take turns in this order.
    #[must_use]
    pub fn new(count: u32, order: Order) -> Self {
        let count = count.max(1);
        let step = match order {
            Order::Sequential => 1 % count,
            Order::Scattered => stride(count),
        };
        Self { count, step, next: 0 }
    }

    /// The flow of the next frame.
    #[inline]
    pub fn next_flow(&mut self) -> u32 {
        let flow = self.next;
        let next = u64::from(flow) + u64::from(self.step);
        let count = u64::from(self.count);
        self.next = if next >= count { next - count } else { next } as u32;
        flow
    }
}

/// The step closest to the golden section of `count` that visits all before it comes back: the multiples of the golden ratio
/// are spread most evenly (three-distance theorem).
fn stride(count: u32) -> u32 {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    let best = (f64::from(count) * GOLDEN) as u32;
    (best..count).chain(1..best).find(|step| gcd(*step, count) == 1).unwrap_or(0)
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_flow_has_its_turn_in_each_cycle(count in 1..5000_u32, scattered: bool) {
            let order = if scattered { Order::Scattered } else { Order::Sequential };
            let mut flows = Flows::new(count, order);
            for _ in 0..2 {
                let mut cycle: Vec<u32> = (0..count).map(|_| flows.next_flow()).collect();
                prop_assert!(scattered || cycle.is_sorted());
                cycle.sort_unstable();
                prop_assert!(cycle.into_iter().eq(0..count));
            }
        }
    }

    #[test]
    fn neighbours_are_far_apart() {
        let mut flows = Flows::new(1 << 24, Order::Scattered);
        let mut last = flows.next_flow();
        for _ in 0..1000 {
            let next = flows.next_flow();
            let apart = last.abs_diff(next);
            assert!(apart.min((1 << 24) - apart) > 1 << 22, "{last} {next}");
            last = next;
        }
        assert_eq!(Flows::new(0, Order::Sequential).next_flow(), 0);
    }
}
