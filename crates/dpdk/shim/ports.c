/*
 * Ports: structures whose layout differs between DPDK's releases.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_memory.h>

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
