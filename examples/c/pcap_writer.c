/* pcap writer: writes copies of packets to a file that Wireshark and tcpdump read.
 *
 * usage: pcap_writer FILE [COUNT [PORT...]]     ends after COUNT packets (0: never) */
#include <millrace.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BURST = 256 };

static int failed(const char *what) {
    fprintf(stderr, "pcap_writer: %s\n", what);
    return 1;
}

static int write_all(FILE *file, const void *bytes, size_t length) {
    return fwrite(bytes, 1, length, file) == length;
}

/* Nanoseconds, this machine's byte order, Ethernet frames of up to 65,535 bytes. */
static int write_header(FILE *file) {
    const uint32_t magic = 0xa1b23c4d, rest[] = {0, 0, 65535, 1};
    const uint16_t version[] = {2, 4};
    return write_all(file, &magic, sizeof magic) && write_all(file, version, sizeof version) &&
           write_all(file, rest, sizeof rest);
}

static int write_packet(FILE *file, millrace_channel *channel, const millrace_packet *packet) {
    static uint8_t frame[65535];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int length = millrace_copy(channel, packet, frame, sizeof frame);
    if (length < 0) return 0;
    uint32_t record[] = {(uint32_t)now.tv_sec, (uint32_t)now.tv_nsec, (uint32_t)length, (uint32_t)length};
    return write_all(file, record, sizeof record) && write_all(file, frame, (size_t)length);
}

int main(int argc, char **argv) {
    static millrace_packet packets[BURST];
    millrace_client *client;
    millrace_channel *channel;
    millrace_options options;
    char *end = "";
    unsigned long long count = argc > 2 ? strtoull(argv[2], &end, 10) : 0, written = 0;
    if (argc < 2 || *end) return failed("usage: pcap_writer FILE [COUNT [PORT...]]");
    millrace_options_default(&options);
    options.take = MILLRACE_COPY;
    options.ports = (const char *const *)argv + 3;
    options.port_count = (size_t)(argc > 3 ? argc - 3 : 0);
    if (millrace_attach(NULL, "pcap writer", &client) < 0) return failed(millrace_error());
    if (millrace_open(client, &options, &channel, 1) < 0) return failed(millrace_error());
    FILE *file = fopen(argv[1], "wb");
    if (!file || !write_header(file)) return failed("the file can't be written");
    while (!count || written < count) {
        int got = millrace_wait(channel, -1);
        if (got >= 0) got = millrace_receive(channel, packets, BURST);
        if (got < 0) return failed(millrace_error());
        for (int i = 0; i < got && (!count || written < count); i++, written++) {
            if (!write_packet(file, channel, &packets[i])) return failed("the file can't be written");
        }
        millrace_release(channel, packets, (size_t)got);
        /* Who looks at the file while it grows, or after the end of this program, sees whole packets. */
        if (fflush(file) != 0) return failed("the file can't be written");
    }
    if (fclose(file) != 0) return failed("the file can't be written");
    printf("%llu packets\n", written);
    millrace_close(channel);
    millrace_detach(client);
    return 0;
}
