/* L2 reflector: sends every packet back by the port where it came in, MAC addresses swapped.
 *
 * usage: reflector [PORT...]     names of ports; none: all */
#include <millrace.h>
#include <stdio.h>
#include <string.h>

enum { BURST = 64 };

static void swap_addresses(uint8_t *frame) {
    uint8_t destination[6];
    memcpy(destination, frame, 6);
    memcpy(frame, frame + 6, 6);
    memcpy(frame + 6, destination, 6);
}

static int reflect(millrace_channel *channel) {
    millrace_packet packets[BURST];
    for (;;) {
        int count = millrace_receive(channel, packets, BURST);
        if (count == 0) count = millrace_wait(channel, -1) < 0 ? -1 : 0;
        if (count < 0) return -1;
        for (int i = 0; i < count; i++) {
            if (packets[i].length >= 12) swap_addresses(packets[i].data);
        }
        int sent = millrace_send(channel, packets, (size_t)count);
        if (sent < 0 && sent != MILLRACE_FULL) return -1;
        /* What found no room is dropped, as a network card would. */
        if (sent < 0) sent = 0;
        millrace_release(channel, packets + sent, (size_t)(count - sent));
    }
}

int main(int argc, char **argv) {
    millrace_client *client;
    millrace_channel *channel;
    millrace_options options;
    millrace_options_default(&options);
    options.ports = (const char *const *)argv + 1;
    options.port_count = (size_t)(argc > 1 ? argc - 1 : 0);
    if (millrace_attach(NULL, "reflector", &client) == 0 &&
        millrace_open(client, &options, &channel, 1) == 1) {
        puts("reflecting");
        fflush(stdout);
        reflect(channel);
    }
    fprintf(stderr, "reflector: %s\n", millrace_error());
    return 1;
}
