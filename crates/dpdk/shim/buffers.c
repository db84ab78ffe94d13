/*
 * Packet buffers and their pools: what Rust cannot call by itself, because it is inline in DPDK's
 * headers or differs between releases. One call per burst, never per packet.
 */
#include <stddef.h>
#include <string.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>

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
