//! `rte_fib`, `rte_lpm` and `rte_hash`, just enough to measure them.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::ptr::NonNull;

use crate::{Eal, EalError};

/// Why a yardstick cannot be used.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum YardstickError {
    /// EAL does not run.
    #[error(transparent)]
    Eal(#[from] EalError),
    /// DPDK refused: its memory is short or the name is taken.
    #[error("DPDK refused the table: its memory is too small, or the name is taken")]
    Memory,
    /// The table is full, or the route or key is invalid.
    #[error("the table refused the entry (DPDK error {0})")]
    Entry(i32),
    /// The lengths of the arguments do not fit each other.
    #[error("the arguments' lengths do not fit each other")]
    Shape,
}

#[repr(C)]
struct Opaque([u8; 0]);

unsafe extern "C" {
    fn millrace_fib_create(n: *const c_char, routes: u32, tbl8: u32, socket: c_int) -> *mut Opaque;
    fn rte_fib_add(fib: *mut Opaque, ip: u32, depth: u8, next: u64) -> c_int;
    fn rte_fib_delete(fib: *mut Opaque, ip: u32, depth: u8) -> c_int;
    fn rte_fib_lookup_bulk(fib: *mut Opaque, keys: *const u32, next: *mut u64, n: c_int) -> c_int;
    fn rte_fib_free(fib: *mut Opaque);
    fn millrace_lpm_create(n: *const c_char, routes: u32, tbl8: u32, socket: c_int) -> *mut Opaque;
    fn rte_lpm_add(lpm: *mut Opaque, ip: u32, depth: u8, next: u32) -> c_int;
    fn rte_lpm_delete(lpm: *mut Opaque, ip: u32, depth: u8) -> c_int;
    fn millrace_lpm_lookup_bulk(lpm: *const Opaque, keys: *const u32, next: *mut u32, n: c_uint);
    fn rte_lpm_free(lpm: *mut Opaque);
    fn millrace_hash_create(n: *const c_char, entries: u32, key: u32, socket: c_int)
    -> *mut Opaque;
    fn rte_hash_add_key_data(hash: *const Opaque, key: *const c_void, data: *mut c_void) -> c_int;
    fn rte_hash_lookup_bulk_data(
        hash: *const Opaque,
        keys: *mut *const c_void,
        n: u32,
        hits: *mut u64,
        data: *mut *mut c_void,
    ) -> c_int;
    fn rte_hash_free(hash: *mut Opaque);
}

fn create(
    name: &str,
    make: impl FnOnce(*const c_char) -> *mut Opaque,
) -> Result<NonNull<Opaque>, YardstickError> {
    Eal::get().ok_or(EalError::NotRunning)?;
    let name = CString::new(name).map_err(|_| YardstickError::Shape)?;
    NonNull::new(make(name.as_ptr())).ok_or(YardstickError::Memory)
}

fn entry(rc: c_int) -> Result<(), YardstickError> {
    if rc >= 0 { Ok(()) } else { Err(YardstickError::Entry(rc)) }
}

/// `rte_fib`: DIR-24-8 with next hops of 4 bytes.
#[derive(Debug)]
pub struct Fib(NonNull<Opaque>);

impl Fib {
    /// A table for `routes` routes with `groups` groups for prefixes longer than 24 bits.
    ///
    /// # Errors
    /// [`YardstickError::Memory`].
    pub fn new(name: &str, routes: u32, groups: u32) -> Result<Self, YardstickError> {
        // SAFETY: EAL runs, which `create` checks, and the name is a C string.
        create(name, |name| unsafe { millrace_fib_create(name, routes, groups, -1) }).map(Self)
    }

    /// Adds a route; `address` in host byte order.
    ///
    /// # Errors
    /// [`YardstickError::Entry`].
    pub fn add(&mut self, address: u32, depth: u8, next: u32) -> Result<(), YardstickError> {
        // SAFETY: the table is live.
        entry(unsafe { rte_fib_add(self.0.as_ptr(), address, depth, next.into()) })
    }

    /// Deletes a route.
    ///
    /// # Errors
    /// [`YardstickError::Entry`].
    pub fn delete(&mut self, address: u32, depth: u8) -> Result<(), YardstickError> {
        // SAFETY: the table is live.
        entry(unsafe { rte_fib_delete(self.0.as_ptr(), address, depth) })
    }

    /// Looks up `keys` (host byte order); a miss is 0.
    #[inline]
    pub fn lookup_bulk(&self, keys: &[u32], next: &mut [u64]) {
        let n = keys.len().min(next.len()) as c_int;
        // SAFETY: the table is live, and both arrays have n entries.
        unsafe { rte_fib_lookup_bulk(self.0.as_ptr(), keys.as_ptr(), next.as_mut_ptr(), n) };
    }
}

impl Drop for Fib {
    fn drop(&mut self) {
        // SAFETY: the table is ours.
        unsafe { rte_fib_free(self.0.as_ptr()) };
    }
}

/// `rte_lpm`.
#[derive(Debug)]
pub struct Lpm(NonNull<Opaque>);

impl Lpm {
    /// A table for `routes` routes with `groups` groups for prefixes longer than 24 bits.
    ///
    /// # Errors
    /// [`YardstickError::Memory`].
    pub fn new(name: &str, routes: u32, groups: u32) -> Result<Self, YardstickError> {
        // SAFETY: EAL runs, which `create` checks, and the name is a C string.
        create(name, |name| unsafe { millrace_lpm_create(name, routes, groups, -1) }).map(Self)
    }

    /// Adds a route; `address` in host byte order, `next` of 24 bits.
    ///
    /// # Errors
    /// [`YardstickError::Entry`].
    pub fn add(&mut self, address: u32, depth: u8, next: u32) -> Result<(), YardstickError> {
        // SAFETY: the table is live.
        entry(unsafe { rte_lpm_add(self.0.as_ptr(), address, depth, next) })
    }

    /// Deletes a route.
    ///
    /// # Errors
    /// [`YardstickError::Entry`].
    pub fn delete(&mut self, address: u32, depth: u8) -> Result<(), YardstickError> {
        // SAFETY: the table is live.
        entry(unsafe { rte_lpm_delete(self.0.as_ptr(), address, depth) })
    }

    /// Looks up `keys` (host byte order); bit 24 of a result says that it is a hit.
    #[inline]
    pub fn lookup_bulk(&self, keys: &[u32], next: &mut [u32]) {
        let n = keys.len().min(next.len()) as c_uint;
        // SAFETY: the table is live, and both arrays have n entries.
        unsafe { millrace_lpm_lookup_bulk(self.0.as_ptr(), keys.as_ptr(), next.as_mut_ptr(), n) };
    }
}

impl Drop for Lpm {
    fn drop(&mut self) {
        // SAFETY: the table is ours.
        unsafe { rte_lpm_free(self.0.as_ptr()) };
    }
}

/// `rte_hash` with CRC32 and keys of `K` bytes.
#[derive(Debug)]
pub struct HashTable<const K: usize>(NonNull<Opaque>);

impl<const K: usize> HashTable<K> {
    /// Most keys of one look-up.
    pub const BULK: usize = 64;

    /// A table for `entries` keys.
    ///
    /// # Errors
    /// [`YardstickError::Memory`].
    pub fn new(name: &str, entries: u32) -> Result<Self, YardstickError> {
        // SAFETY: EAL runs, which `create` checks, and the name is a C string.
        create(name, |name| unsafe { millrace_hash_create(name, entries, K as u32, -1) }).map(Self)
    }

    /// Adds or changes an entry.
    ///
    /// # Errors
    /// [`YardstickError::Entry`] when the table is full.
    pub fn add(&mut self, key: &[u8; K], value: usize) -> Result<(), YardstickError> {
        let data = std::ptr::without_provenance_mut(value);
        // SAFETY: the table is live, its keys have K bytes, and it keeps `data` as a number.
        entry(unsafe { rte_hash_add_key_data(self.0.as_ptr(), key.as_ptr().cast(), data) })
    }

    /// Looks up at most [`BULK`](Self::BULK) keys; bit `i` of the result says that key `i` is there
    /// and `values[i]` its value.
    #[inline]
    pub fn lookup_bulk(&self, keys: &[&[u8; K]], values: &mut [usize]) -> u64 {
        let n = keys.len().min(values.len()).min(Self::BULK);
        if n == 0 {
            return 0;
        }
        let mut hits = 0;
        // SAFETY: the table is live; `&[u8; K]` is a pointer to a key, `usize` has a pointer's size
        // and alignment, both arrays have n entries, and DPDK does not write to the keys.
        unsafe {
            rte_hash_lookup_bulk_data(
                self.0.as_ptr(),
                keys.as_ptr().cast_mut().cast(),
                n as u32,
                &mut hits,
                values.as_mut_ptr().cast(),
            )
        };
        hits
    }
}

impl<const K: usize> Drop for HashTable<K> {
    fn drop(&mut self) {
        // SAFETY: the table is ours.
        unsafe { rte_hash_free(self.0.as_ptr()) };
    }
}
