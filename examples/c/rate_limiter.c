/* Rate limiter: lets packets that come in by the ports go on up to a rate, and drops what is above (token bucket).
 *
 * usage: rate_limiter MBIT/S BURST-KB [PORT...] */
#include <millrace.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BURST = 64 };

/* So many bytes may pass: refilled with time, up to the burst. */
struct bucket {
    double bytes_per_second, burst, tokens, filled;
};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void refill(struct bucket *bucket) {
    double time = now();
    bucket->tokens += (time - bucket->filled) * bucket->bytes_per_second;
    if (bucket->tokens > bucket->burst) bucket->tokens = bucket->burst;
    bucket->filled = time;
}

static int take(struct bucket *bucket, double bytes) {
    if (bucket->tokens < bytes) return 0;
    bucket->tokens -= bytes;
    return 1;
}

static int limit(millrace_channel *channel, struct bucket *bucket) {
    millrace_packet packets[BURST], drop[BURST];
    unsigned long long passed = 0, dropped = 0;
    double said = now();
    for (;;) {
        int got = millrace_wait(channel, 200), pass = 0, above = 0;
        if (got < 0 || (got = millrace_receive(channel, packets, BURST)) < 0) return -1;
        refill(bucket);
        for (int i = 0; i < got; i++) {
            if (take(bucket, packets[i].total)) packets[pass++] = packets[i];
            else drop[above++] = packets[i];
        }
        int sent = pass ? millrace_return(channel, packets, (size_t)pass) : 0;
        if (sent < 0 && sent != MILLRACE_FULL) return -1;
        if (sent < 0) sent = 0;
        millrace_release(channel, packets + sent, (size_t)(pass - sent));
        millrace_release(channel, drop, (size_t)above);
        passed += (unsigned)sent;
        dropped += (unsigned)(above + pass - sent);
        if (now() - said >= 1) {
            said = now();
            printf("%llu passed, %llu dropped\n", passed, dropped);
            fflush(stdout);
        }
    }
}

int main(int argc, char **argv) {
    millrace_client *client;
    millrace_channel *channel;
    millrace_options options;
    if (argc < 3 || atof(argv[1]) <= 0 || atof(argv[2]) <= 0) {
        fprintf(stderr, "usage: rate_limiter MBIT/S BURST-KB [PORT...]\n");
        return 1;
    }
    struct bucket bucket = {.bytes_per_second = atof(argv[1]) * 1e6 / 8, .burst = atof(argv[2]) * 1e3};
    bucket.tokens = bucket.burst;
    bucket.filled = now();
    millrace_options_default(&options);
    options.ports = (const char *const *)argv + 3;
    options.port_count = (size_t)(argc - 3);
    if (millrace_attach(NULL, "rate limiter", &client) == 0 &&
        millrace_open(client, &options, &channel, 1) == 1) {
        limit(channel, &bucket);
    }
    fprintf(stderr, "rate_limiter: %s\n", millrace_error());
    return 1;
}
