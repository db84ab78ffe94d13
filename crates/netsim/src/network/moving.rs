//! Connections go from one stack of a host to the next.

use transport::{ConnectionId, Contents, Stack};

use super::Network;
use super::host::{Application, Host};
use crate::departed::Departed;

/// How a connection goes from one stack of a host to the other.
#[derive(Debug, Clone, Copy)]
pub struct Passage {
    /// What becomes of its data.
    pub contents: Contents,
    /// How long it is in neither: ns.
    pub gap: u64,
    /// How long its packets still come to the stack that it has left: ns.
    pub lag: u64,
}

impl<A: Application> Network<A> {
    /// Gives a host a second stack beside its own, as two workers of a machine have: with the same addresses and secrets,
    /// and a clock that is `ahead` (ns) of simulated time. It gets the packets of connections that are handed to it
    /// ([`hand`](Self::hand)). Gives its number; `None` as [`add`](Self::add).
    pub fn twin(&mut self, of: usize, ahead: u64, application: A) -> Option<usize> {
        let host = self.hosts.get(of)?;
        let (config, buffers) = (host.config.clone(), host.buffers.clone());
        let twin = Host {
            stack: Stack::new(config.clone(), buffers.clone()).ok()?,
            buffers,
            application,
            side: host.side,
            delay: host.delay,
            port: host.port.another(),
            wakes_at: self.now,
            config,
            ahead,
            away: None,
            arriving: Vec::new(),
        };
        self.hosts.push(twin);
        Some(self.hosts.len() - 1)
    }

    /// Hands a connection of one stack to the other stack of its host, packets in flight or not.
    ///
    /// # Errors
    /// It could not be exported.
    pub fn hand(
        &mut self,
        (from, to): (usize, usize),
        id: ConnectionId,
        passage: &Passage,
    ) -> Result<(), String> {
        let now = self.now;
        let (lower, upper) =
            self.hosts.split_at_mut_checked(from.max(to)).ok_or("no such stacks")?;
        let (lower, upper) = (lower.get_mut(from.min(to)), upper.first_mut());
        let (lower, upper) = lower.zip(upper).ok_or("no two such stacks")?;
        let (source, target) = if from < to { (lower, upper) } else { (upper, lower) };
        let ends = source.stack.info(id).ok_or("no such connection")?.ends;
        // Who has it no longer, and who has it not yet, drops its packets without a word.
        source.stack.hold(&ends, now + passage.lag + 1 + source.ahead);
        target.stack.hold(&ends, now + passage.gap + 1 + target.ahead);
        let clock = now + source.ahead;
        let gap = passage.gap;
        let departed =
            Departed::leave_alone(&mut source.stack, id, passage.contents, clock, now, gap)?;
        source.application.hand_over(id, ends.remote, &mut target.application);
        target.arriving.push(departed.towards(target.ahead));
        target.wakes_at = target.wakes_at.min(source.wakes_at);
        target.take_in(now);
        self.steering.turn(now + passage.lag, &ends, to);
        Ok(())
    }

    /// Gives a host a new stack, with a clock that is `ahead` of simulated time, and moves all connections into
    /// it, which takes `gap` (both ns): meanwhile packets for the host are lost. Gives how many there were.
    ///
    /// # Errors
    /// A connection could not be exported, or left something behind.
    pub fn restart(
        &mut self,
        host: usize,
        contents: Contents,
        gap: u64,
        ahead: u64,
    ) -> Result<usize, String> {
        let now = self.now;
        let host = self.hosts.get_mut(host).ok_or("no such host")?;
        if host.away.is_some() {
            return Ok(0);
        }
        let departed =
            Departed::leave(&mut host.stack, contents, now + host.ahead, now, gap, ahead)?;
        let count = departed.len();
        host.away = Some(departed);
        host.is_back(now);
        Ok(count)
    }

    /// Why connections did not arrive in a host's new stack.
    #[must_use]
    pub fn lost_on_the_way(&self) -> Option<String> {
        let away = |host: &Host<A>| host.away.as_ref()?.trouble();
        let arriving = |host: &Host<A>| host.arriving.iter().find_map(Departed::trouble);
        self.hosts.iter().find_map(|host| away(host).or_else(|| arriving(host)))
    }
}
