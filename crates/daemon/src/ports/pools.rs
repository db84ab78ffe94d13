//! Buffer pools, one per NUMA node, and the memory that DPDK is given for them.

use std::collections::BTreeMap;

use control::config::{self, Config, Hugepages};
use dpdk::{BufferPool, Device, EalOptions, HEADROOM, Memory, PoolError, SharedPool};
use graph::{KeptLane, LaneClient};

use super::numa::Numa;

/// What an mbuf and the pool's own book-keeping take besides headroom and data: bytes.
const BOOK_KEEPING: u64 = 192;

/// Memory for DPDK itself, and for each port's rings: MB.
const BASE: u64 = 64;
const PER_PORT: u64 = 4;

/// Buffers in a thread's cache.
const CACHE: u32 = 256;

/// Buffers for packets of stacks that are longer than the others, datagrams before they are cut into fragments. As many as
/// sixteen stacks send in a round of a worker.
const LONG: u32 = 127;
/// Data room of each: with the headroom, as much as DPDK counts in 16 bits.
const LONG_ROOM: u16 = u16::MAX - HEADROOM;

/// Where a worker gets buffers for what it makes itself: on its own NUMA node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Buffers {
    /// For packets.
    pub(crate) packets: BufferPool,
    /// For packets of stacks that are longer than these buffers.
    pub(crate) long: BufferPool,
}

/// The pools that exist. DPDK never takes one down.
#[derive(Debug)]
pub(crate) struct Pools {
    count: u32,
    data_room: u16,
    numa: Numa,
    /// The workers' cores.
    cores: Vec<u16>,
    by_node: BTreeMap<u32, BufferPool>,
    long: BTreeMap<u32, BufferPool>,
    /// What belongs to receive queues that can be a client's own, while these are closed: by port and queue, counted
    /// from the port's last.
    lanes: BTreeMap<(String, usize), KeptLane>,
    /// Pools of such queues that were ever made.
    made: u32,
}

impl Pools {
    /// No pool yet; those that come have the sizes that the configuration says.
    pub(crate) fn new(config: &Config, numa: Numa) -> Self {
        let memory = &config.memory;
        Self {
            count: memory.buffers,
            data_room: memory.buffer_size,
            numa,
            cores: config.workers.cores.clone(),
            by_node: BTreeMap::new(),
            long: BTreeMap::new(),
            lanes: BTreeMap::new(),
            made: 0,
        }
    }

    /// The pools for the receive queues of a port, in order: each on the NUMA node of who writes its buffers.
    pub(crate) fn of_port(
        &mut self,
        port: &config::Port,
        device: &Device,
    ) -> Result<Vec<BufferPool>, PoolError> {
        let nodes = self.numa.of_queues(port, device, &self.cores);
        nodes.into_iter().map(|node| self.of_node(node)).collect()
    }

    /// What the worker on a core makes packets in.
    pub(crate) fn of_core(&mut self, core: u16) -> Result<Buffers, PoolError> {
        let node = self.numa.of_core(core);
        let packets = self.of_node(node)?;
        let long = match self.long.get(&node) {
            Some(pool) => *pool,
            None => pool_on(node, &format!("long-{node}"), (LONG, LONG_ROOM, 0))?,
        };
        self.long.insert(node, long);
        Ok(Buffers { packets, long })
    }

    /// The pool of a NUMA node, made when it is not there yet.
    fn of_node(&mut self, node: u32) -> Result<BufferPool, PoolError> {
        if let Some(pool) = self.by_node.get(&node) {
            return Ok(*pool);
        }
        let cache = CACHE.min(self.count / 4);
        let name = format!("buffers-{node}");
        let pool = pool_on(node, &name, (self.count, self.data_room, cache))?;
        self.by_node.insert(node, pool);
        Ok(pool)
    }

    /// What the last receive queues of a port need to be a client's own, in order: as they left it, or new.
    pub(crate) fn lanes(
        &mut self,
        config: &config::Port,
        device: &Device,
    ) -> Result<Vec<KeptLane>, PoolError> {
        let mut lanes = Vec::new();
        for from_last in (0..usize::from(config.client_queues)).rev() {
            match self.lane(config, from_last, device) {
                Ok(lane) => lanes.push(lane),
                Err(error) => {
                    self.keep_lanes(&config.name, lanes, from_last + 1);
                    return Err(error);
                }
            }
        }
        Ok(lanes)
    }

    fn lane(
        &mut self,
        config: &config::Port,
        from_last: usize,
        device: &Device,
    ) -> Result<KeptLane, PoolError> {
        let count = client_buffers(config);
        let own = (config.name.clone(), from_last);
        if let Some(lane) = self.lanes.remove(&own) {
            return Ok(lane);
        }
        // DPDK takes no pool down, so one of a port that is no more serves another.
        let fits = |lane: &KeptLane| !lane.is_taken() && lane.pool.capacity() == count;
        let unused = self.lanes.iter().find(|(_, lane)| fits(lane)).map(|(place, _)| place.clone());
        if let Some(lane) = unused.and_then(|place| self.lanes.remove(&place)) {
            return Ok(lane);
        }
        let nodes = self.numa.of_queues(config, device, &self.cores);
        let node = nodes.iter().nth_back(from_last).copied().unwrap_or(0);
        let copies = self.of_node(node)?;
        let name = format!("shared-{}", self.made);
        let pool = SharedPool::new(&name, count, self.data_room, Some(node))
            .or_else(|_| SharedPool::new(&name, count, self.data_room, None))?;
        self.made += 1;
        Ok(KeptLane::new(pool, copies))
    }

    /// Keeps what queues of a port leave: in order, the last one being the `from_last`th from the port's last.
    pub(crate) fn keep_lanes(&mut self, port: &str, lanes: Vec<KeptLane>, from_last: usize) {
        for (at, lane) in (from_last..).zip(lanes.into_iter().rev()) {
            self.lanes.insert((port.to_owned(), at), lane);
        }
    }

    /// Takes a queue that is closed now back from its client.
    pub(crate) fn take_client(&mut self, token: u64) -> Option<LaneClient> {
        self.lanes.values_mut().find_map(|lane| lane.take_client(token))
    }

    /// Every pool by its NUMA node.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &BufferPool)> {
        self.by_node.iter().map(|(node, pool)| (*node, pool))
    }
}

/// A pool of (buffers, room in each, cache) on a NUMA node. Where that has no memory, others have: slower, but packets flow.
fn pool_on(
    node: u32,
    name: &str,
    (count, room, cache): (u32, u16, u32),
) -> Result<BufferPool, PoolError> {
    BufferPool::new(name, count, room, cache, Some(node)).or_else(|error| {
        let pool = BufferPool::new(name, count, room, cache, None)?;
        tracing::warn!(node, "buffers lie on another NUMA node than they are used on: {error}");
        Ok(pool)
    })
}

/// Buffers of a receive queue that a client can have: the device's ring full of them, and three times as many on the way
/// to the client, with it, and on the way back. One less than a power of two is what DPDK's pools hold best.
fn client_buffers(config: &config::Port) -> u32 {
    (4 * u32::from(config.rx_descriptors)).next_power_of_two() - 1
}

/// How DPDK is to be started for a configuration.
pub(crate) fn eal_options(
    config: &Config,
    numa: &Numa,
    devices: Vec<Device>,
    log_level: u8,
) -> EalOptions {
    let nodes = numa.of_config(config).len() as u64;
    let buffer = u64::from(config.memory.buffer_size) + u64::from(HEADROOM) + BOOK_KEEPING;
    let pool = (u64::from(config.memory.buffers) * buffer).div_ceil(1 << 20);
    let lanes = config.ports.iter().map(|port| {
        let buffers = u64::from(port.client_queues) * u64::from(client_buffers(port));
        (buffers * buffer).div_ceil(1 << 20)
    });
    let lanes: u64 = lanes.sum();
    let long = u64::from(LONG) * (u64::from(u16::MAX) + BOOK_KEEPING);
    let long = long.div_ceil(1 << 20);
    let ports = PER_PORT * devices.len() as u64;
    let megabytes = BASE + nodes * (pool + long) + lanes + ports;
    EalOptions {
        megabytes: u32::try_from(megabytes).unwrap_or(u32::MAX),
        memory: match config.memory.hugepages {
            Hugepages::Auto => Memory::Auto,
            Hugepages::Require => Memory::Huge,
            Hugepages::Never => Memory::Plain,
        },
        devices,
        log_level,
        ..EalOptions::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::numa::tests::two_nodes;
    use super::*;

    #[test]
    fn memory_follows_buffers_and_ports() {
        let mut config = crate::testing::config("");
        config.memory.buffers = 1 << 14;
        config.memory.buffer_size = 2048;
        let (_folder, numa) = two_nodes();
        config.workers.cores = vec![0];
        let options = |config: &Config, devices| eal_options(config, &numa, devices, 4);
        let none = options(&config, Vec::new());
        assert_eq!(none.megabytes, 64 + 37 + 8);
        let two = options(&config, vec!["null".parse().unwrap(); 2]);
        assert_eq!(two.megabytes, none.megabytes + 8);
        let mut with = crate::testing::config(
            "[[port]]\nname = \"a\"\ndevice = \"null\"\nrx-queues = 3\nclient-queues = 2\n",
        );
        with.memory = config.memory.clone();
        with.workers.cores = vec![0];
        with.ports[0].queues.iter_mut().for_each(|queue| queue.core = 0);
        assert_eq!(options(&with, Vec::new()).megabytes, none.megabytes + 19);
        // Buffers of both kinds on each node that has a worker.
        config.workers.cores = vec![0, 1, 2];
        assert_eq!(options(&config, Vec::new()).megabytes, none.megabytes + 37 + 8);
        config.memory.hugepages = Hugepages::Never;
        assert_eq!(options(&config, Vec::new()).memory, Memory::Plain);
    }
}
