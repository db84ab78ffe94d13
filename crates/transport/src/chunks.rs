//! A list whose entries never move: each chunk holds as many as all before it, and is never copied.

/// Entries of the first chunk.
const FIRST: usize = 16;

/// Entries by index.
#[derive(Debug)]
pub(crate) struct Chunks<T> {
    /// The addresses of a chunk are reserved as a whole; memory comes a page at a time, as the kernel gives it.
    chunks: Vec<Vec<T>>,
    length: usize,
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), length: 0 }
    }
}

/// Chunk and place in it.
fn place(index: usize) -> (usize, usize) {
    let number = index + FIRST;
    let chunk = number.ilog2() - FIRST.ilog2();
    (chunk as usize, number - (FIRST << chunk))
}

impl<T> Chunks<T> {
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn push(&mut self, entry: T) {
        let (chunk, _) = place(self.length);
        if chunk == self.chunks.len() {
            let mut next = Vec::new();
            // Where that many addresses cannot be had, the chunk grows when it must.
            let _ = next.try_reserve_exact(FIRST << chunk);
            self.chunks.push(next);
        }
        if let Some(last) = self.chunks.last_mut() {
            last.push(entry);
            self.length += 1;
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        let (chunk, at) = place(index);
        self.chunks.get(chunk)?.get(at)
    }

    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let (chunk, at) = place(index);
        self.chunks.get_mut(chunk)?.get_mut(at)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_entry_ever_moves() {
        let mut chunks = Chunks::default();
        let mut places = Vec::new();
        for number in 0..100_000_usize {
            chunks.push([number; 5]);
            places.push(std::ptr::from_ref(chunks.get(number).unwrap()));
        }
        assert!(chunks.iter().map(std::ptr::from_ref).eq(places));
        assert!(chunks.iter().enumerate().all(|(place, entry)| *entry == [place; 5]));
        assert!(chunks.get(100_000).is_none() && chunks.len() == 100_000);
        *chunks.get_mut(77).unwrap() = [0; 5];
        assert_eq!(chunks.get(77), Some(&[0; 5]));
    }
}
