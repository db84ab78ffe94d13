//! What was said about datagrams that a socket has sent, kept for it in order, bounded in bytes.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use super::UdpTrouble;

/// What a report costs beyond the data that it quotes, as a datagram does: bytes.
const COST: usize = 768;

/// What was said about a datagram (`sock_extended_err`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UdpReport {
    /// What it means.
    pub trouble: UdpTrouble,
    /// Where the datagram was sent to.
    pub to: SocketAddr,
    /// The ICMP message that said so; `None`: it was found out here.
    pub message: Option<UdpMessage>,
    /// MTU, or whatever else the message says: `ee_info`.
    pub info: u32,
    /// What is quoted of the datagram's data.
    pub data: Vec<u8>,
    /// When it came: ns.
    pub at: u64,
}

/// An ICMP message about a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdpMessage {
    /// Its type.
    pub kind: u8,
    /// Its code.
    pub code: u8,
    /// Who sent it.
    pub from: IpAddr,
    /// Where it was sent to.
    pub to: IpAddr,
    /// Time to live or hop limit on arrival.
    pub ttl: u8,
    /// DSCP in the upper six bits, ECN in the lower two.
    pub service: u8,
}

/// Reports in order of arrival.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    list: VecDeque<UdpReport>,
    /// Bytes that they count in the receive buffer.
    used: usize,
}

impl Reports {
    /// Keeps one, if there are less than `limit` bytes with it (`sock_queue_err_skb`). Gives whether it did.
    pub(crate) fn push(&mut self, report: UdpReport, limit: usize) -> bool {
        let cost = report.data.len() + COST;
        let fits = self.used + cost < limit;
        if fits {
            self.used += cost;
            self.list.push_back(report);
        }
        fits
    }

    pub(crate) fn pop(&mut self) -> Option<UdpReport> {
        let report = self.list.pop_front()?;
        self.used -= report.data.len() + COST;
        // What is left has no more memory than it counts.
        if self.list.len() < self.list.capacity() / 4 {
            self.list.shrink_to(self.list.len() * 2);
        }
        Some(report)
    }

    /// Bytes that they count in the receive buffer: no fewer than they have of memory.
    pub(super) fn used(&self) -> usize {
        self.used
    }

    pub(crate) fn first(&self) -> Option<&UdpReport> {
        self.list.front()
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Failure;

    #[test]
    fn are_bounded_and_in_order() {
        let mut reports = Reports::default();
        let report = |info: u32, length: usize| UdpReport {
            trouble: UdpTrouble::Failed(Failure::Refused),
            to: ([10, 0, 0, 1], 5).into(),
            message: None,
            info,
            data: vec![7; length],
            at: 0,
        };
        assert!(!reports.push(report(0, 0), COST), "it must be less");
        assert!((1..=2).all(|info| reports.push(report(info, 100), 2 * (COST + 100) + 1)));
        assert!(!reports.push(report(3, 0), 2 * (COST + 100) + 1));
        assert_eq!((reports.used, reports.first().unwrap().info), (2 * (COST + 100), 1));
        assert_eq!([1, 2].map(|_| reports.pop().unwrap().info), [1, 2]);
        assert!(reports.pop().is_none() && reports.used == 0);
        assert!((0..1000).all(|info| reports.push(report(info, 0), usize::MAX)));
        assert!((1..1000).all(|_| reports.pop().is_some()));
        assert!(reports.list.capacity() * size_of::<UdpReport>() <= reports.used());
        reports.push(report(4, 1), 10_000);
        reports.clear();
        assert!(reports.first().is_none() && reports.used == 0);
    }
}
