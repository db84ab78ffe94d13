/*
 * Bursts, which are inline in DPDK's headers, and memory that goes while some are under way.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <rte_ethdev.h>
#include <rte_interrupts.h>
#include <rte_mbuf.h>

uint16_t millrace_rx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **buffers, uint16_t n)
{
	return rte_eth_rx_burst(port, queue, buffers, n);
}

uint16_t millrace_tx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **buffers, uint16_t n)
{
	return rte_eth_tx_burst(port, queue, buffers, n);
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
