/*
 * What Rust cannot call by itself: functions that are inline in DPDK's headers, and structures
 * whose layout differs between releases. One call per burst, never per packet.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_version.h>

/* The view of `Mbuf` in ffi.rs. */
#define AT(field, offset, size) \
	_Static_assert(offsetof(struct rte_mbuf, field) == (offset) && \
		sizeof(((struct rte_mbuf *)0)->field) == (size), "rte_mbuf." #field)
AT(buf_addr, 0, 8);
AT(data_off, 16, 2);
AT(refcnt, 18, 2);
AT(nb_segs, 20, 2);
AT(port, 22, 2);
AT(ol_flags, 24, 8);
AT(packet_type, 32, 4);
AT(pkt_len, 36, 4);
AT(data_len, 40, 2);
AT(vlan_tci, 42, 2);
AT(hash.rss, 44, 4);
AT(vlan_tci_outer, 52, 2);
AT(buf_len, 54, 2);
AT(pool, 56, 8);
AT(next, 64, 8);
AT(tx_offload, 72, 8);
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

unsigned int millrace_lcore_id(void)
{
	return rte_lcore_id();
}

int millrace_errno(void)
{
	return rte_errno;
}
