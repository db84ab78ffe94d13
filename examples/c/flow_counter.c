/* Flow counter: counts copies of all packets by 5-tuple (IPv4) and shows the ten flows with the most bytes.
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
    uint8_t addresses[8], ports[4], protocol;
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
        if (flows[at].packets && !memcmp(&flows[at], key, length)) return &flows[at];
        if (flows[at].packets) continue;
        if (known == MOST) return NULL;
        known++, flows[at] = *key;
        return &flows[at];
    }
}

static void count(const millrace_packet *packet) {
    const uint8_t *frame = packet->data, *ip = frame + 14;
    struct flow key = {0}, *flow;
    if (packet->length < 34 || frame[12] != 8 || frame[13] != 0) return;
    size_t header = (ip[0] & 15) * 4;
    memcpy(key.addresses, ip + 12, 8);
    key.protocol = ip[9];
    if ((ip[9] == 6 || ip[9] == 17) && packet->length >= 14 + header + 4) memcpy(key.ports, ip + header, 4);
    if (!(flow = find(&key))) return;
    flow->packets++;
    flow->bytes += packet->total;
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
        char from[INET_ADDRSTRLEN], to[INET_ADDRSTRLEN];
        const struct flow *f = top[i];
        inet_ntop(AF_INET, f->addresses, from, sizeof from);
        inet_ntop(AF_INET, f->addresses + 4, to, sizeof to);
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
    options.take = MILLRACE_COPY;
    options.ports = (const char *const *)argv + 2;
    options.port_count = (size_t)(argc > 2 ? argc - 2 : 0);
    long every = (long)(1000 * (argc > 1 ? atof(argv[1]) : 1)), next = now_ms() + every, left;
    int got = millrace_attach(NULL, "flow counter", &client);
    if (got == 0) got = millrace_open(client, &options, &channel, 1);
    while (got >= 0) {
        if ((left = next - now_ms()) <= 0) show(), next += every;
        if ((got = millrace_wait(channel, left > 0 ? (int)left : 0)) < 0) break;
        if ((got = millrace_receive(channel, packets, BURST)) < 0) break;
        for (int i = 0; i < got; i++) count(&packets[i]);
        millrace_release(channel, packets, (size_t)got);
    }
    fprintf(stderr, "flow_counter: %s\n", millrace_error());
    return 1;
}
