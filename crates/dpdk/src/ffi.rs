//! Declarations of what the shim and the DPDK libraries export.

use std::ffi::{c_char, c_int, c_uint};

/// DPDK's `struct rte_mbuf`: offsets and sizes are asserted in `shim.c`.
#[repr(C, align(64))]
pub(crate) struct Mbuf {
    pub(crate) buf_addr: *mut u8,
    pub(crate) buf_iova: u64,
    pub(crate) data_off: u16,
    pub(crate) refcnt: u16,
    pub(crate) nb_segs: u16,
    pub(crate) port: u16,
    pub(crate) ol_flags: u64,
    pub(crate) packet_type: u32,
    pub(crate) pkt_len: u32,
    pub(crate) data_len: u16,
    pub(crate) vlan_tci: u16,
    pub(crate) rss: u32,
    pub(crate) hash_high: u32,
    pub(crate) vlan_tci_outer: u16,
    pub(crate) buf_len: u16,
    pub(crate) pool: *mut Mempool,
    pub(crate) next: *mut Mbuf,
    pub(crate) tx_offload: u64,
    rest: [u64; 6],
}

const _: () = assert!(size_of::<Mbuf>() == 128);

/// `struct rte_mempool`, only ever behind a pointer.
#[repr(C)]
pub(crate) struct Mempool {
    opaque: [u8; 0],
}

unsafe extern "C" {
    pub(crate) fn millrace_rx_burst(port: u16, queue: u16, buffers: *mut *mut Mbuf, n: u16) -> u16;
    pub(crate) fn millrace_tx_burst(port: u16, queue: u16, buffers: *mut *mut Mbuf, n: u16) -> u16;
    pub(crate) fn millrace_alloc_bulk(
        pool: *mut Mempool,
        buffers: *mut *mut Mbuf,
        n: c_uint,
    ) -> c_int;
    pub(crate) fn millrace_free(buffer: *mut Mbuf);
    pub(crate) fn millrace_free_bulk(buffers: *mut *mut Mbuf, n: c_uint);
    pub(crate) fn millrace_lcore_id() -> c_uint;
    pub(crate) fn millrace_errno() -> c_int;

    pub(crate) fn rte_eal_init(argc: c_int, argv: *mut *mut c_char) -> c_int;
    pub(crate) fn rte_thread_register() -> c_int;
    pub(crate) fn rte_thread_unregister();
    pub(crate) fn rte_get_tsc_hz() -> u64;
    pub(crate) fn rte_pktmbuf_pool_create(
        name: *const c_char,
        count: c_uint,
        cache: c_uint,
        private: u16,
        data_room: u16,
        socket: c_int,
    ) -> *mut Mempool;
    pub(crate) fn rte_mempool_avail_count(pool: *const Mempool) -> c_uint;
    pub(crate) fn rte_version() -> *const c_char;
}
