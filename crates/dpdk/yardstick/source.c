/*
 * An in-memory packet source, the same for the bench, dpdk-testpmd and l3fwd: a receive callback on a
 * port that receives nothing by itself (net_null with no-rx=1). It takes buffers in bulk from the
 * port's pool, fills their first mbuf line as a vector driver does, and copies one cache line of
 * headers from a table of templates that it goes round in.
 *
 * As a shared object (MILLRACE_SOURCE_PLUGIN) in LD_PRELOAD of testpmd or l3fwd it reads the templates from
 * the file named by the environment variable MILLRACE_SOURCE and attaches itself to the receive queues of
 * every net_null port once it is started, with buffers of the pool MILLRACE_SOURCE_POOL, or else of testpmd's.
 * The file: "MRSOURCE", u64 count, count headers of 64 bytes, count u16 lengths; little-endian.
 *
 * For programs that cannot be asked for their rate it says every millisecond, in the file MILLRACE_SOURCE_REPORT,
 * what all ports have sent: u64 packets, u64 TSC cycles, u64 their exclusive or, so that a reader sees whether it has
 * read two reports half.
 */
#include <stdlib.h>
#include <string.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

/* Templates to load in advance: they come from the second-level cache, or from memory. */
#define AHEAD 32

struct header { uint8_t bytes[64]; } __attribute__((aligned(64)));

struct source {
	struct rte_mempool *pool;
	uint64_t rearm; /* data_off, refcnt, nb_segs, port */
	uint32_t type; /* as a network card would tell it */
	uint32_t count, next;
	const struct header *headers;
	const uint16_t *lengths;
};

/* 16 bytes from packet_type on. */
struct fields { uint32_t type, length; uint16_t data_length, vlan; uint32_t rss; };

static uint16_t
generate(uint16_t port, uint16_t queue, struct rte_mbuf **buffers, uint16_t n, uint16_t max,
	void *state)
{
	struct source *s = state;
	uint16_t want = max - n, i;
	uint32_t at = s->next;

	(void)port; (void)queue;
	if (want == 0 || rte_mempool_get_bulk(s->pool, (void **)(buffers + n), want) != 0)
		return n;
	for (i = 0; i < want; i++) {
		struct rte_mbuf *m = buffers[n + i];
		struct fields f = { s->type, s->lengths[at], s->lengths[at], 0, 0 };

		/* Past the table's end too: a prefetch reads nothing that matters. */
		rte_prefetch0(s->headers + at + AHEAD);
		memcpy(&m->data_off, &s->rearm, 8);
		m->ol_flags = 0;
		memcpy(&m->packet_type, &f, sizeof(f));
		memcpy((uint8_t *)m->buf_addr + RTE_PKTMBUF_HEADROOM, s->headers + at,
			sizeof(struct header));
		at = at + 1 == s->count ? 0 : at + 1;
	}
	s->next = at;
	return max;
}

/* What the packets are, all of one family. */
static uint32_t
type_of(const struct header *header)
{
	return header->bytes[12] == 0x86 ? RTE_PTYPE_L3_IPV6_EXT_UNKNOWN : RTE_PTYPE_L3_IPV4_EXT_UNKNOWN;
}

/* The tables must live as long as the port. 0, or a negative error number. */
int
millrace_source_attach(uint16_t port, uint16_t queue, struct rte_mempool *pool,
	const void *headers, const uint16_t *lengths, uint32_t count)
{
	struct source *s = rte_zmalloc("source", sizeof(*s), 64);
	struct { uint16_t data_off, refcnt, segments, port; } rearm = {
		RTE_PKTMBUF_HEADROOM, 1, 1, port
	};

	if (s == NULL || count == 0)
		return -ENOMEM;
	memcpy(&s->rearm, &rearm, 8);
	s->pool = pool;
	s->type = type_of(headers);
	s->headers = headers;
	s->lengths = lengths;
	s->count = count;
	return rte_eth_add_rx_callback(port, queue, generate, s) == NULL ? -ENOTSUP : 0;
}

#ifdef MILLRACE_SOURCE_PLUGIN
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#include <rte_eal.h>
#include <rte_tailq.h>

static const uint16_t *lengths;
static const struct header *headers;
static uint64_t count;

static int
load(const char *name)
{
	char magic[8];
	FILE *file = fopen(name, "rb");
	void *h = NULL, *l = NULL;
	int ok = file != NULL && fread(magic, 8, 1, file) == 1 &&
		memcmp(magic, "MRSOURCE", 8) == 0 && fread(&count, 8, 1, file) == 1 &&
		count > 0 && count <= 1 << 24 &&
		posix_memalign(&h, 64, count * 64) == 0 && (l = malloc(count * 2)) != NULL &&
		fread(h, 64, count, file) == count && fread(l, 2, count, file) == count;

	if (file != NULL)
		fclose(file);
	headers = h;
	lengths = l;
	return ok ? 0 : -1;
}

static void
attach_to(uint16_t port, struct rte_mempool *pool)
{
	struct rte_eth_dev_info info;
	struct rte_eth_link link;
	uint16_t queue;

	/* net_null's link comes up when the port is started. */
	do {
		usleep(10000);
		memset(&link, 0, sizeof(link));
		(void)rte_eth_link_get_nowait(port, &link);
	} while (link.link_status != RTE_ETH_LINK_UP);
	if (rte_eth_dev_info_get(port, &info) != 0 || strcmp(info.driver_name, "net_null") != 0)
		return;
	for (queue = 0; queue < info.nb_rx_queues; queue++)
		millrace_source_attach(port, queue, pool, headers, lengths, count);
}

/* Says what was sent, for as long as the process lives. */
static void
report_to(const char *name)
{
	int file = open(name, O_WRONLY | O_CLOEXEC);
	struct rte_eth_stats stats;
	uint64_t said[3];
	uint16_t port;

	while (file >= 0) {
		said[0] = 0;
		RTE_ETH_FOREACH_DEV(port)
			if (rte_eth_stats_get(port, &stats) == 0)
				said[0] += stats.opackets;
		said[1] = rte_rdtsc();
		said[2] = said[0] ^ said[1];
		if (pwrite(file, said, sizeof(said), 0) != sizeof(said))
			return;
		usleep(1000);
	}
}

static void *
attach(void *unused)
{
	const char *name = getenv("MILLRACE_SOURCE_POOL");
	struct rte_mempool *pool;
	uint16_t port;

	(void)unused;
	if (name == NULL)
		name = "mb_pool_0";
	/* No look-up is safe before EAL has made its lists. */
	while (rte_eal_tailq_lookup("RTE_MEMPOOL") == NULL)
		usleep(10000);
	usleep(300000);
	while ((pool = rte_mempool_lookup(name)) == NULL)
		usleep(10000);
	RTE_ETH_FOREACH_DEV(port)
		attach_to(port, pool);
	name = getenv("MILLRACE_SOURCE_REPORT");
	if (name != NULL)
		report_to(name);
	return NULL;
}

__attribute__((constructor)) static void
begin(void)
{
	const char *name = getenv("MILLRACE_SOURCE");
	pthread_t thread;

	if (name == NULL || load(name) != 0)
		fprintf(stderr, "source: MILLRACE_SOURCE names no file of templates\n");
	else if (pthread_create(&thread, NULL, attach, NULL) == 0)
		pthread_detach(thread);
}
#endif
