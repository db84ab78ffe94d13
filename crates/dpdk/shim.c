/*
 * What Rust cannot call by itself: functions that are inline in DPDK's headers, and structures
 * whose layout differs between releases. One call per burst, never per packet.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_interrupts.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>

/* The view of `Mbuf` in ffi.rs. */
#define AT(field, offset, size) \
	_Static_assert(offsetof(struct rte_mbuf, field) == (offset) && \
		sizeof(((struct rte_mbuf *)0)->field) == (size), "rte_mbuf." #field)
AT(buf_addr, 0, 8); AT(data_off, 16, 2);
AT(refcnt, 18, 2); AT(nb_segs, 20, 2);
AT(port, 22, 2); AT(ol_flags, 24, 8);
AT(packet_type, 32, 4); AT(pkt_len, 36, 4);
AT(data_len, 40, 2); AT(vlan_tci, 42, 2);
AT(hash.rss, 44, 4); AT(vlan_tci_outer, 52, 2);
AT(buf_len, 54, 2); AT(pool, 56, 8);
AT(next, 64, 8); AT(tx_offload, 72, 8);
_Static_assert(sizeof(struct rte_mbuf) == 128, "rte_mbuf");
_Static_assert(RTE_MBUF_F_RX_VLAN == 1ULL << 0 && RTE_MBUF_F_RX_RSS_HASH == 1ULL << 1 &&
	RTE_MBUF_F_RX_VLAN_STRIPPED == 1ULL << 6, "receive flags");
_Static_assert(RTE_MBUF_F_RX_IP_CKSUM_BAD == 1ULL << 4 &&
	RTE_MBUF_F_RX_IP_CKSUM_GOOD == 1ULL << 7 && RTE_MBUF_F_RX_L4_CKSUM_BAD == 1ULL << 3 &&
	RTE_MBUF_F_RX_L4_CKSUM_GOOD == 1ULL << 8, "checksum flags");

uint16_t millrace_rx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **buffers, uint16_t n)
{
	return rte_eth_rx_burst(port, queue, buffers, n);
}

uint16_t millrace_tx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **buffers, uint16_t n)
{
	return rte_eth_tx_burst(port, queue, buffers, n);
}

/*
 * rte_pktmbuf_pool_create, but buffers may cross page borders where addresses for I/O are virtual:
 * with pages of 4 KB it would give each buffer a page of its own, and net_af_xdp, which takes the
 * pool for one dense array, would silently lose the packets in those beyond the array's end.
 */
struct rte_mempool *millrace_pool_create(const char *name, unsigned int count, unsigned int cache,
	uint16_t room, int socket)
{
	struct rte_pktmbuf_pool_private private = { .mbuf_data_room_size = room };
	unsigned int flags = rte_eal_iova_mode() == RTE_IOVA_VA ? RTE_MEMPOOL_F_NO_IOVA_CONTIG : 0;
	struct rte_mempool *pool = rte_mempool_create_empty(name, count,
		sizeof(struct rte_mbuf) + room, cache, sizeof(private), socket, flags);
	int rc;

	if (pool == NULL)
		return NULL;
	rc = rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), NULL);
	if (rc == 0) {
		rte_pktmbuf_pool_init(pool, &private);
		rc = rte_mempool_populate_default(pool);
	}
	if (rc < 0) {
		rte_mempool_free(pool);
		rte_errno = -rc;
		return NULL;
	}
	rte_mempool_obj_iter(pool, rte_pktmbuf_init, NULL);
	return pool;
}

int millrace_alloc_bulk(struct rte_mempool *pool, struct rte_mbuf **buffers, unsigned int n)
{
	return rte_pktmbuf_alloc_bulk(pool, buffers, n);
}

void millrace_free(struct rte_mbuf *buffer)
{
	rte_pktmbuf_free(buffer);
}

/* Frees the packets at the places that are not NULL, and empties those places. */
void millrace_free_bulk(struct rte_mbuf **buffers, unsigned int n)
{
	rte_pktmbuf_free_bulk(buffers, n);
	memset(buffers, 0, n * sizeof(*buffers));
}

static void flush(struct rte_mempool *pool, void *unused)
{
	(void)unused;
	rte_mempool_cache_flush(rte_mempool_default_cache(pool, rte_lcore_id()), pool);
}

/* Empties the calling thread's caches, which would keep their buffers when the thread goes. */
void millrace_flush_caches(void)
{
	rte_mempool_walk(flush, NULL);
}

unsigned int millrace_lcore_id(void)
{
	return rte_lcore_id();
}

int millrace_errno(void)
{
	return rte_errno;
}

/* The views of `Info`, `Setup` and `Stats` in ffi.rs. */
struct millrace_info {
	const char *driver;
	uint64_t rx_offloads, tx_offloads, rss;
	uint32_t max_frame, min_buffer;
	uint16_t min_mtu, max_mtu, max_rx_queues, max_tx_queues;
	int32_t socket;
};

struct millrace_setup {
	uint64_t rx_offloads, tx_offloads, rss;
	uint16_t rx_queues, tx_queues, mtu, rx_interrupts;
};

struct millrace_stats {
	uint64_t rx_packets, tx_packets, rx_bytes, tx_bytes;
	uint64_t rx_missed, rx_errors, tx_errors, rx_no_buffer;
};

int millrace_port_info(uint16_t port, struct millrace_info *out)
{
	struct rte_eth_dev_info info;
	int rc = rte_eth_dev_info_get(port, &info);

	if (rc != 0)
		return rc;
	*out = (struct millrace_info){
		.driver = info.driver_name,
		.rx_offloads = info.rx_offload_capa,
		.tx_offloads = info.tx_offload_capa,
		.rss = info.flow_type_rss_offloads &
			(RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP),
		.max_frame = info.max_rx_pktlen,
		.min_buffer = info.min_rx_bufsize,
		.min_mtu = info.min_mtu,
		.max_mtu = info.max_mtu,
		.max_rx_queues = info.max_rx_queues,
		.max_tx_queues = info.max_tx_queues,
		.socket = rte_eth_dev_socket_id(port),
	};
	return 0;
}

int millrace_port_configure(uint16_t port, const struct millrace_setup *setup)
{
	struct rte_eth_conf conf;

	memset(&conf, 0, sizeof(conf));
	conf.rxmode.mtu = setup->mtu;
	conf.rxmode.offloads = setup->rx_offloads;
	conf.txmode.offloads = setup->tx_offloads;
	conf.intr_conf.rxq = setup->rx_interrupts;
	if (setup->rss != 0) {
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf.rx_adv_conf.rss_conf.rss_hf = setup->rss;
	}
	return rte_eth_dev_configure(port, setup->rx_queues, setup->tx_queues, &conf);
}

int millrace_port_stats(uint16_t port, struct millrace_stats *out)
{
	struct rte_eth_stats stats;
	int rc = rte_eth_stats_get(port, &stats);

	if (rc != 0)
		return rc;
	*out = (struct millrace_stats){
		stats.ipackets, stats.opackets, stats.ibytes, stats.obytes,
		stats.imissed, stats.ierrors, stats.oerrors, stats.rx_nombuf,
	};
	return 0;
}

/* 1: up, 0: down, negative: error. `speed` in Mbit/s, UINT32_MAX when unknown. */
int millrace_port_link(uint16_t port, uint32_t *speed)
{
	struct rte_eth_link link;
	int rc;

	memset(&link, 0, sizeof(link));
	rc = rte_eth_link_get_nowait(port, &link);
	*speed = link.link_speed;
	return rc != 0 ? rc : link.link_status == RTE_ETH_LINK_UP;
}

void millrace_wait_for_bursts(void);

/*
 * The process's `munmap`, for its libraries, too: what DPDK's interrupt thread unmaps is memory of a memif peer that has gone,
 * in which bursts may be under way (port/bursts.rs).
 */
int munmap(void *address, size_t length)
{
	if (rte_thread_is_intr())
		millrace_wait_for_bursts();
	return syscall(SYS_munmap, address, length);
}

/* Lets the device of a port reach memory that is not DPDK's, at its own addresses. */
int millrace_dma_map(uint16_t port, void *address, size_t length)
{
	struct rte_eth_dev_info info;
	int rc = rte_eth_dev_info_get(port, &info);

	if (rc != 0)
		return rc;
	if (rte_eal_iova_mode() != RTE_IOVA_VA)
		return -ENOTSUP;
	if (rte_extmem_register(address, length, NULL, 0, 4096) != 0)
		return -rte_errno;
	if (rte_dev_dma_map(info.device, address, (uintptr_t)address, length) != 0) {
		rc = -rte_errno;
		rte_extmem_unregister(address, length);
		return rc;
	}
	return 0;
}

void millrace_dma_unmap(uint16_t port, void *address, size_t length)
{
	struct rte_eth_dev_info info;

	if (rte_eth_dev_info_get(port, &info) == 0)
		rte_dev_dma_unmap(info.device, address, (uintptr_t)address, length);
	rte_extmem_unregister(address, length);
}

_Static_assert(RTE_ETH_RX_OFFLOAD_SCATTER == 1ULL << 13 &&
	RTE_ETH_TX_OFFLOAD_MULTI_SEGS == 1ULL << 15 &&
	RTE_ETH_RX_OFFLOAD_RSS_HASH == 1ULL << 19, "offloads");
