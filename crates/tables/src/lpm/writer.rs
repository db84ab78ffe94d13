//! The writer half: keeps the routes, and the trie in step with them.

use std::fmt;

use super::{
    Address, LpmReader, MAX_VALUE, MISS, Prefix,
    arena::{Arena, UNIT},
    rules::Rules,
    trie::{CHILD, Trie, block},
};
use crate::{Epoch, OutOfMemory, memory::Region, sync::Arc};

/// Bounds of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LpmCapacity {
    /// Most routes.
    pub routes: usize,
    /// Most bytes of the trie below its root. Address space is taken at once, memory when used.
    pub trie_bytes: usize,
}

impl LpmCapacity {
    /// Bounds for `routes` routes of an Internet table's shape with ample room to spare: 128
    /// bytes of trie a route, and 128 MiB for clusters of host routes.
    #[must_use]
    pub fn routes(routes: usize) -> Self {
        Self { routes, trie_bytes: routes.saturating_mul(128).saturating_add(128 << 20) }
    }
}

/// Why a route was refused. The table is as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LpmError {
    /// The table holds as many routes as it may.
    #[error("the table is full: it holds its {0} routes; raise its capacity or remove some")]
    Routes(usize),
    /// The trie has no room for the blocks that the route needs.
    #[error("the table is full: its trie has used its {0} bytes; raise its capacity")]
    Trie(usize),
    /// The value has the top bit set.
    #[error("value {0:#x} is above {MAX_VALUE:#x}")]
    Value(u32),
}

/// Routes by prefix, each with a value that a look-up gives. The writer half: one thread changes
/// it while any number look up through [`reader`](Self::reader)s.
pub struct Lpm<A> {
    trie: Arc<Trie>,
    /// For each entry, 1 + the length of the prefix that it stems from, or 0 for none.
    depths: Vec<u8>,
    arena: Arena,
    rules: Rules<A>,
    capacity: LpmCapacity,
}

/// A step on the way down: the entry that refers to a block.
#[derive(Clone, Copy)]
struct Step {
    entry: usize,
    unit: u32,
    from: u8,
    to: u8,
}

impl<A: Address> Lpm<A> {
    /// An empty table whose readers announce themselves in `epoch`.
    ///
    /// # Errors
    /// [`OutOfMemory`] when the system refuses the address space.
    pub fn new(capacity: LpmCapacity, epoch: &Epoch) -> Result<Self, OutOfMemory> {
        let root = 1usize << A::LEVELS.first().copied().unwrap_or(0);
        let blocks = capacity.trie_bytes / (UNIT * size_of::<u32>());
        // Block numbers are 31 bits, and batches hold entry numbers in 32.
        let limit = (root / UNIT).saturating_add(blocks).min((u32::MAX / UNIT as u32) as usize);
        let entries = Region::new(limit * UNIT)?;
        Ok(Self {
            trie: Arc::new(Trie { entries }),
            depths: vec![0; limit * UNIT],
            arena: Arena::new(epoch.clone(), (root / UNIT) as u32, limit as u32),
            rules: Rules::new(),
            capacity,
        })
    }

    /// A reader half.
    #[must_use]
    pub fn reader(&self) -> LpmReader<A> {
        LpmReader::new(Arc::clone(&self.trie))
    }

    /// Adds a route, or changes the value of one; gives the value that it had.
    ///
    /// A route with the value [`MISS`] makes its addresses look like those without a route.
    ///
    /// # Errors
    /// [`LpmError`] when there is no room or the value is too large; nothing has changed then.
    pub fn insert(&mut self, prefix: Prefix<A>, value: u32) -> Result<Option<u32>, LpmError> {
        if value > MAX_VALUE {
            return Err(LpmError::Value(value));
        }
        if self.rules.get(prefix).is_none() {
            if self.rules.len() >= self.capacity.routes {
                return Err(LpmError::Routes(self.capacity.routes));
            }
            self.grow(prefix)?;
        }
        let previous = self.rules.insert(prefix, value);
        let (first, count, level) = self.range(prefix);
        let depth = prefix.len() + 1;
        for index in first..first + count {
            self.paint(index, level, &|old| old <= depth, value, depth);
        }
        Ok(previous)
    }

    /// Takes a route away; gives its value.
    pub fn remove(&mut self, prefix: Prefix<A>) -> Option<u32> {
        let previous = self.rules.remove(prefix)?;
        let (value, depth) = self.parent(prefix);
        let (first, count, level) = self.range(prefix);
        let own = prefix.len() + 1;
        for index in first..first + count {
            self.paint(index, level, &|old| old == own, value, depth);
        }
        self.shrink(prefix);
        Some(previous)
    }

    /// Value of exactly this route.
    #[must_use]
    pub fn get(&self, prefix: Prefix<A>) -> Option<u32> {
        self.rules.get(prefix)
    }

    /// The route that a look-up of `address` follows.
    #[must_use]
    pub fn route(&self, address: A) -> Option<(Prefix<A>, u32)> {
        self.rules.covering(address, 0..A::WIDTH + 1)
    }

    /// Every route, shortest prefixes first, in no order among equally long ones.
    pub fn iter(&self) -> impl Iterator<Item = (Prefix<A>, u32)> {
        self.rules.iter()
    }

    /// Routes held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there is no route.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bounds that the table was made with.
    #[must_use]
    pub fn capacity(&self) -> LpmCapacity {
        self.capacity
    }

    /// Bytes of memory in use that readers look at: the trie.
    #[must_use]
    pub fn trie_bytes(&self) -> usize {
        self.arena.used_entries() * size_of::<u32>()
    }

    /// Bytes of memory in use in all: the trie and what the writer keeps beside it.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let depths = self.arena.used_entries();
        self.trie_bytes() + depths + self.rules.memory_bytes() + self.arena.memory_bytes()
    }

    /// Value and depth of what holds for `prefix` when it has no route of its own.
    fn parent(&self, prefix: Prefix<A>) -> (u32, u8) {
        let known = |(found, value): (Prefix<A>, u32)| (value, found.len() + 1);
        let Some(step) = self.steps(prefix).last() else {
            return self.rules.covering(prefix.bits(), 0..prefix.len()).map_or((MISS, 0), known);
        };
        if let Some(found) = self.rules.covering(prefix.bits(), step.from + 1..prefix.len()) {
            return known(found);
        }
        // An entry of the same block that no route inside the block covers spares the search
        // through all shorter lengths.
        let first = step.unit as usize * UNIT;
        let outer = (first..first + (1 << (step.to - step.from))).find(|index| {
            self.trie.load(*index) & CHILD == 0 && self.depth(*index) <= step.from + 1
        });
        match outer {
            Some(index) => (self.trie.load(index), self.depth(index)),
            None => {
                let outer = self.rules.covering(prefix.bits(), 0..step.from + 1);
                outer.map_or((MISS, 0), known)
            }
        }
    }

    /// Makes the blocks on the way to `prefix`.
    fn grow(&mut self, prefix: Prefix<A>) -> Result<(), LpmError> {
        let (entry, level) = self.deepest(prefix);
        let wanted = || {
            let levels = A::LEVELS.windows(2).skip(level);
            levels.take_while(|pair| pair[0] < prefix.len()).map(|pair| pair[1] - pair[0])
        };
        if !self.arena.has(wanted()) {
            return Err(LpmError::Trie(self.capacity.trie_bytes));
        }
        // From the top: each block is linked as soon as it holds what the entry above it held.
        let mut entry = entry;
        for pair in A::LEVELS.windows(2).skip(level) {
            let [from, to] = [pair[0], pair[1]];
            if prefix.len() <= from {
                break;
            }
            let Some(unit) = self.arena.take(to - from) else {
                return Err(LpmError::Trie(self.capacity.trie_bytes));
            };
            let (value, depth) = (self.trie.load(entry), self.depth(entry));
            let first = unit as usize * UNIT;
            for index in first..first + (1 << (to - from)) {
                self.set(index, value, depth);
            }
            self.trie.store(entry, CHILD | unit);
            entry = first + prefix.bits().field(from, to);
        }
        Ok(())
    }

    /// Gives back the blocks on the way to `prefix` that no longer part any routes.
    fn shrink(&mut self, prefix: Prefix<A>) {
        let mut steps = [None; 32];
        for (place, step) in steps.iter_mut().zip(self.steps(prefix)) {
            *place = Some(step);
        }
        for step in steps.into_iter().rev().flatten() {
            let first = step.unit as usize * UNIT;
            let mut block = first..first + (1usize << (step.to - step.from));
            // Without a route longer than its level, every entry is the same.
            if block.any(|index| {
                self.trie.load(index) & CHILD != 0 || self.depth(index) > step.from + 1
            }) {
                return;
            }
            self.set(step.entry, self.trie.load(first), self.depth(first));
            self.arena.give(step.to - step.from, step.unit);
        }
    }

    /// The blocks on the way to `prefix`, from the top.
    fn steps(&self, prefix: Prefix<A>) -> impl Iterator<Item = Step> {
        let mut start = Some(0);
        let mut above = 0;
        A::LEVELS.windows(2).map_while(move |pair| {
            let [from, to] = [pair[0], pair[1]];
            let entry = start? + prefix.bits().field(above, from);
            let reference = self.trie.load(entry);
            if prefix.len() <= from || reference & CHILD == 0 {
                return None;
            }
            (start, above) = (Some(block(reference)), from);
            Some(Step { entry, unit: reference & MAX_VALUE, from, to })
        })
    }

    /// The last existing entry on the way to `prefix`, and the number of its level.
    fn deepest(&self, prefix: Prefix<A>) -> (usize, usize) {
        let (mut start, mut above, mut level) = (0, 0, 0);
        for step in self.steps(prefix) {
            (start, above) = (step.unit as usize * UNIT, step.from);
            level += 1;
        }
        let to = A::LEVELS.get(level).copied().unwrap_or(A::WIDTH);
        (start + prefix.bits().field(above, to), level)
    }

    /// The entries that `prefix` covers in the block where it ends: first, count, level.
    fn range(&self, prefix: Prefix<A>) -> (usize, usize, usize) {
        let (first, level) = self.deepest(prefix);
        let to = A::LEVELS.get(level).copied().unwrap_or(A::WIDTH);
        (first, 1 << to.saturating_sub(prefix.len()), level)
    }

    /// Sets entry `index`, or all below it, to `value` where the depth says so.
    fn paint(
        &mut self,
        index: usize,
        level: usize,
        wanted: &impl Fn(u8) -> bool,
        value: u32,
        depth: u8,
    ) {
        let entry = self.trie.load(index);
        if entry & CHILD == 0 {
            if wanted(self.depth(index)) {
                self.set(index, value, depth);
            }
            return;
        }
        let Some(pair) = A::LEVELS.get(level..level + 2) else { return };
        let first = block(entry);
        for index in first..first + (1 << (pair[1] - pair[0])) {
            self.paint(index, level + 1, wanted, value, depth);
        }
    }

    fn depth(&self, index: usize) -> u8 {
        self.depths.get(index).copied().unwrap_or(0)
    }

    fn set(&mut self, index: usize, value: u32, depth: u8) {
        if let Some(old) = self.depths.get_mut(index) {
            *old = depth;
            self.trie.store(index, value);
        }
    }
}

impl<A: Address> fmt::Debug for Lpm<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lpm")
            .field("len", &self.len())
            .field("capacity", &self.capacity)
            .field("memory_bytes", &self.memory_bytes())
            .finish()
    }
}
