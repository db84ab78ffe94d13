//! Declarations of what the shim and the DPDK libraries export.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// DPDK's `struct rte_mbuf`: offsets and sizes are asserted in `shim/buffers.c`.
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

/// `struct millrace_info` of the shim.
#[repr(C)]
pub(crate) struct Info {
    pub(crate) driver: *const c_char,
    pub(crate) rx_offloads: u64,
    pub(crate) tx_offloads: u64,
    pub(crate) rss: u64,
    pub(crate) max_frame: u32,
    pub(crate) min_buffer: u32,
    pub(crate) min_mtu: u16,
    pub(crate) max_mtu: u16,
    pub(crate) max_rx_queues: u16,
    pub(crate) max_tx_queues: u16,
    pub(crate) socket: i32,
}

/// `struct millrace_setup` of the shim.
#[repr(C)]
pub(crate) struct Setup {
    pub(crate) rx_offloads: u64,
    pub(crate) tx_offloads: u64,
    pub(crate) rss: u64,
    pub(crate) rx_queues: u16,
    pub(crate) tx_queues: u16,
    pub(crate) mtu: u16,
    pub(crate) rx_interrupts: u16,
}

/// `struct millrace_stats` of the shim.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Stats {
    pub(crate) rx_packets: u64,
    pub(crate) tx_packets: u64,
    pub(crate) rx_bytes: u64,
    pub(crate) tx_bytes: u64,
    pub(crate) rx_missed: u64,
    pub(crate) rx_errors: u64,
    pub(crate) tx_errors: u64,
    pub(crate) rx_no_buffer: u64,
}

unsafe extern "C" {
    pub(crate) fn millrace_port_info(port: u16, out: *mut Info) -> c_int;
    pub(crate) fn millrace_port_configure(port: u16, setup: *const Setup) -> c_int;
    pub(crate) fn millrace_port_stats(port: u16, out: *mut Stats) -> c_int;
    pub(crate) fn millrace_port_link(port: u16, speed: *mut u32) -> c_int;
    pub(crate) fn millrace_rx_burst(port: u16, queue: u16, buffers: *mut *mut Mbuf, n: u16) -> u16;
    pub(crate) fn millrace_tx_burst(port: u16, queue: u16, buffers: *mut *mut Mbuf, n: u16) -> u16;
    pub(crate) fn millrace_alloc_bulk(
        pool: *mut Mempool,
        buffers: *mut *mut Mbuf,
        n: c_uint,
    ) -> c_int;
    pub(crate) fn millrace_free(buffer: *mut Mbuf);
    pub(crate) fn millrace_free_bulk(buffers: *mut *mut Mbuf, n: c_uint);
    pub(crate) fn millrace_flush_caches();
    pub(crate) fn millrace_dma_map(port: u16, address: *mut c_void, length: usize) -> c_int;
    pub(crate) fn millrace_dma_unmap(port: u16, address: *mut c_void, length: usize);
    pub(crate) fn millrace_lcore_id() -> c_uint;
    pub(crate) fn millrace_errno() -> c_int;

    pub(crate) fn rte_eal_init(argc: c_int, argv: *mut *mut c_char) -> c_int;
    pub(crate) fn rte_thread_register() -> c_int;
    pub(crate) fn rte_thread_unregister();
    pub(crate) fn rte_get_tsc_hz() -> u64;
    pub(crate) fn millrace_pool_create(
        name: *const c_char,
        count: c_uint,
        cache: c_uint,
        data_room: u16,
        socket: c_int,
    ) -> *mut Mempool;
    pub(crate) fn rte_mempool_avail_count(pool: *const Mempool) -> c_uint;
    pub(crate) fn rte_eal_hotplug_add(
        bus: *const c_char,
        name: *const c_char,
        arguments: *const c_char,
    ) -> c_int;
    pub(crate) fn rte_eal_hotplug_remove(bus: *const c_char, name: *const c_char) -> c_int;
    pub(crate) fn rte_eth_dev_get_port_by_name(name: *const c_char, port: *mut u16) -> c_int;
    pub(crate) fn rte_eth_dev_adjust_nb_rx_tx_desc(port: u16, rx: *mut u16, tx: *mut u16) -> c_int;
    pub(crate) fn rte_eth_rx_queue_setup(
        port: u16,
        queue: u16,
        descriptors: u16,
        socket: c_uint,
        conf: *const c_void,
        pool: *mut Mempool,
    ) -> c_int;
    pub(crate) fn rte_eth_tx_queue_setup(
        port: u16,
        queue: u16,
        descriptors: u16,
        socket: c_uint,
        conf: *const c_void,
    ) -> c_int;
    pub(crate) fn rte_eth_dev_socket_id(port: u16) -> c_int;
    pub(crate) fn rte_eth_dev_start(port: u16) -> c_int;
    pub(crate) fn rte_eth_dev_stop(port: u16) -> c_int;
    pub(crate) fn rte_eth_dev_close(port: u16) -> c_int;
    pub(crate) fn rte_eth_dev_is_removed(port: u16) -> c_int;
    pub(crate) fn rte_eth_dev_set_mtu(port: u16, mtu: u16) -> c_int;
    pub(crate) fn rte_eth_dev_get_mtu(port: u16, mtu: *mut u16) -> c_int;
    pub(crate) fn rte_eth_macaddr_get(port: u16, mac: *mut [u8; 6]) -> c_int;
    pub(crate) fn rte_eth_dev_default_mac_addr_set(port: u16, mac: *mut [u8; 6]) -> c_int;
    pub(crate) fn rte_eth_promiscuous_enable(port: u16) -> c_int;
    pub(crate) fn rte_eth_promiscuous_disable(port: u16) -> c_int;
    pub(crate) fn rte_eth_allmulticast_enable(port: u16) -> c_int;
    pub(crate) fn rte_eth_allmulticast_disable(port: u16) -> c_int;
    pub(crate) fn rte_eth_dev_rx_intr_enable(port: u16, queue: u16) -> c_int;
    pub(crate) fn rte_eth_dev_rx_intr_disable(port: u16, queue: u16) -> c_int;
    pub(crate) fn rte_eth_dev_rx_intr_ctl_q_get_fd(port: u16, queue: u16) -> c_int;
    pub(crate) fn rte_version() -> *const c_char;
}
