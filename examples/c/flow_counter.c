/* Flow counter: counts copies of all packets by 5-tuple and shows the ten flows with the most bytes.
 *
 * usage: flow_counter [SECONDS [PORT...]]     how often the table is shown (1); names of ports (all) */
#include <arpa/inet.h>
#include <millrace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BURST = 256, PLACES = 1 << 17, MOST = 100000, TOP = 10 };

struct flow {
    uint8_t addresses[32], ports[4], family, protocol;
    uint64_t packets, bytes;
};

static struct flow flows[PLACES];
static size_t known;

/* Where the flow is counted; NULL when the table is full. Open addressing. */
static struct flow *find(const struct flow *key) {
    size_t length = offsetof(struct flow, protocol) + 1;
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < length; i++) hash = (hash ^ ((const uint8_t *)key)[i]) * 16777619u;
    for (size_t at = hash % PLACES;; at = (at + 1) % PLACES) {
        if (flows[at].packets && memcmp(&flows[at], key, length)) continue;
        if (!flows[at].packets && known == MOST) return NULL;
        if (!flows[at].packets) known++, flows[at] = *key;
        return &flows[at];
    }
}

static void count(const millrace_packet *packet) {
    const uint8_t *frame = packet->data, *ip = frame + 14;
    struct flow key = {0}, *flow;
    int is4 = packet->length >= 34 && !memcmp(frame + 12, "\x08\x00", 2);
    if (!is4 && (packet->length < 54 || memcmp(frame + 12, "\x86\xdd", 2))) return;
    key.family = is4 ? AF_INET : AF_INET6, key.protocol = ip[is4 ? 9 : 6];
    memcpy(key.addresses, ip + (is4 ? 12 : 8), is4 ? 8 : 32);
    /* A fragment behind the first has no ports. */
    size_t header = is4 ? (ip[0] & 15) * 4 : 40;
    int has_ports = (key.protocol == 6 || key.protocol == 17) && !(is4 && ((ip[6] & 31) || ip[7]));
    if (has_ports && packet->length >= 14 + header + 4) memcpy(key.ports, ip + header, 4);
    if ((flow = find(&key))) flow->packets++, flow->bytes += packet->total;
}

static int by_bytes(const void *a, const void *b) {
    uint64_t left = (*(struct flow *const *)a)->bytes, right = (*(struct flow *const *)b)->bytes;
    return left < right ? 1 : left > right ? -1 : 0;
}

static void show(void) {
    static struct flow *top[MOST];
    size_t found = 0;
    for (size_t i = 0; i < PLACES; i++) if (flows[i].packets) top[found++] = &flows[i];
    qsort(top, found, sizeof *top, by_bytes);
    if (isatty(1)) printf("\033[2J\033[H");
    printf("%12s %15s  flow (%zu known)\n", "packets", "bytes", known);
    for (size_t i = 0; i < found && i < TOP; i++) {
        char from[INET6_ADDRSTRLEN], to[INET6_ADDRSTRLEN];
        const struct flow *f = top[i];
        inet_ntop(f->family, f->addresses, from, sizeof from);
        inet_ntop(f->family, f->addresses + (f->family == AF_INET ? 4 : 16), to, sizeof to);
        printf("%12llu %15llu  %u %s %u > %s %u\n", (unsigned long long)f->packets, (unsigned long long)f->bytes,
               f->protocol, from, f->ports[0] << 8 | f->ports[1], to, f->ports[2] << 8 | f->ports[3]);
    }
    fflush(stdout);
}

static long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int main(int argc, char **argv) {
    static millrace_packet packets[BURST];
    millrace_client *client;
    millrace_channel *channel;
    millrace_options options;
    millrace_options_default(&options);
    options.take = MILLRACE_COPY, options.ports = (const char *const *)argv + 2;
    options.port_count = (size_t)(argc > 2 ? argc - 2 : 0);
    long every = (long)(1000 * (argc > 1 ? atof(argv[1]) : 1)), next = now_ms() + every, left;
    if (every <= 0) return puts("usage: flow_counter [SECONDS [PORT...]]"), 1;
    int got = millrace_attach(NULL, "flow counter", &client);
    if (got == 0) got = millrace_open(client, &options, &channel, 1);
    while (got >= 0) {
        if ((left = next - now_ms()) <= 0) show(), next += every;
        if (millrace_wait(channel, left > 0 ? (int)left : 0) < 0) break;
        if ((got = millrace_receive(channel, packets, BURST)) < 0) break;
        for (int i = 0; i < got; i++) count(&packets[i]);
        millrace_release(channel, packets, (size_t)got);
    }
    fprintf(stderr, "flow_counter: %s\n", millrace_error());
    return 1;
}
