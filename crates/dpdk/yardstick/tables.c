/* DPDK's tables, for the bench to compare with: structures and inline functions made callable. */
#include <string.h>
#include <rte_fib.h>
#include <rte_hash.h>
#include <rte_hash_crc.h>
#include <rte_jhash.h>
#include <rte_lpm.h>

struct rte_fib *millrace_fib_create(const char *name, uint32_t routes, uint32_t tbl8, int socket)
{
	struct rte_fib_conf conf;

	memset(&conf, 0, sizeof(conf));
	conf.type = RTE_FIB_DIR24_8;
	conf.max_routes = (int)routes;
	conf.dir24_8.nh_sz = RTE_FIB_DIR24_8_4B;
	conf.dir24_8.num_tbl8 = tbl8;
	return rte_fib_create(name, socket, &conf);
}

struct rte_lpm *millrace_lpm_create(const char *name, uint32_t routes, uint32_t tbl8, int socket)
{
	struct rte_lpm_config conf = { .max_rules = routes, .number_tbl8s = tbl8, .flags = 0 };

	return rte_lpm_create(name, socket, &conf);
}

void millrace_lpm_lookup_bulk(const struct rte_lpm *lpm, const uint32_t *keys, uint32_t *out,
	unsigned int n)
{
	rte_lpm_lookup_bulk(lpm, keys, out, n);
}

struct rte_hash *millrace_hash_create(const char *name, uint32_t entries, uint32_t key, int socket)
{
	struct rte_hash_parameters parameters = {
		.name = name, .entries = entries, .key_len = key, .hash_func = rte_hash_crc,
		.hash_func_init_val = 0, .socket_id = socket,
	};

	return rte_hash_create(&parameters);
}
