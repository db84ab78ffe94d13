//! Cache lines that cross between two cores for a packet, by arithmetic.

use super::{CHECK, Layout};

/// Bytes of a line, of a descriptor and of a mark.
const LINE: f64 = 64.0;
const DESCRIPTOR: f64 = 16.0;
const MARK: f64 = 4.0;

/// Lines of one packet when both sides keep pace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Lines {
    /// Whose contents go to the other core: it reads what this one wrote.
    pub(crate) carried: f64,
    /// That a core has to ask for before it writes, because the other one has read them.
    pub(crate) claimed: f64,
}

impl Lines {
    /// For frames of `size` bytes, check sequence included.
    pub(crate) fn of(layout: Layout, size: u64) -> Self {
        let bytes = size.saturating_sub(CHECK) as f64;
        match layout {
            Layout::Descriptors { batch } => {
                // The packet's lines and its share of a line of descriptors there, the indexes' lines
                // there and back; each is written again by who wrote it first.
                let lines = (bytes / LINE).ceil() + DESCRIPTOR / LINE + 2.0 / batch as f64;
                Self { carried: lines, claimed: lines }
            }
            Layout::Marks | Layout::Queue => {
                // The mark is in the packet's first line, which goes back too: it is returned.
                let lines = ((MARK + bytes) / LINE).ceil() + 1.0;
                Self { carried: lines, claimed: lines }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_of_minimum_size_and_its_mark_are_one_line() {
        let lines = |layout, size| Lines::of(layout, size).carried;
        // There and back.
        assert_eq!(lines(Layout::Marks, 64), 2.0);
        assert_eq!(lines(Layout::Queue, 65), 3.0);
        // A packet, a quarter of a line of descriptors, two indexes.
        assert_eq!(lines(Layout::Descriptors { batch: 1 }, 64), 3.25);
        assert_eq!(lines(Layout::Descriptors { batch: 32 }, 64), 1.3125);
        assert_eq!(lines(Layout::Descriptors { batch: 1 }, 1518), 26.25);
        assert_eq!(lines(Layout::Marks, 1518), 25.0);
    }
}
