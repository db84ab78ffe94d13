/* Uses every function of millrace.h against the daemon that tests/c.rs plays, which answers as it says there. */
#include <millrace.h>
/* Nothing in it clashes with the interface of functions in the daemon. */
#include <millrace_function.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, millrace_error());          \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

enum { LONG = 60000 };

/* A program brings the sizes that it was compiled with: who changes one bumps INTERFACE in crates/client/build.rs. */
_Static_assert(sizeof(void *) != 8 || (sizeof(millrace_options) == 88 && sizeof(millrace_packet) == 32), "INTERFACE 1");
_Static_assert(sizeof(millrace_port) == 74 && sizeof(millrace_counters) == 32, "INTERFACE 1");

static int receive(millrace_channel *channel, millrace_packet *packets, int wanted) {
    int count = 0;
    while (count < wanted) {
        CHECK(millrace_wait(channel, LONG) == 1);
        int got = millrace_receive(channel, packets + count, (size_t)(wanted - count));
        CHECK(got >= 0);
        count += got;
    }
    return count;
}

static void nulls(millrace_client *client, millrace_channel *channel) {
    millrace_packet packet;
    CHECK(millrace_attach(NULL, NULL, &client) == MILLRACE_INVALID);
    CHECK(strstr(millrace_error(), "name is null"));
    CHECK(millrace_attach(NULL, "c", NULL) == MILLRACE_INVALID);
    CHECK(millrace_attach(NULL, "\xff", &client) == MILLRACE_INVALID);
    CHECK(millrace_reattach(NULL) == MILLRACE_INVALID);
    CHECK(millrace_ports(NULL, NULL, 0) == MILLRACE_INVALID);
    CHECK(millrace_open(NULL, NULL, &channel, 1) == MILLRACE_INVALID);
    CHECK(millrace_receive(NULL, &packet, 1) == MILLRACE_INVALID);
    CHECK(millrace_receive(channel, NULL, 1) == MILLRACE_INVALID);
    CHECK(millrace_send(NULL, &packet, 1) == MILLRACE_INVALID);
    CHECK(millrace_send(channel, NULL, 1) == MILLRACE_INVALID);
    CHECK(millrace_return(NULL, &packet, 1) == MILLRACE_INVALID);
    CHECK(millrace_release(channel, NULL, 1) == MILLRACE_INVALID);
    CHECK(millrace_send_bytes(channel, NULL, 1, 0) == MILLRACE_INVALID);
    CHECK(millrace_return_bytes(NULL, "x", 1, 0) == MILLRACE_INVALID);
    CHECK(millrace_piece(channel, NULL, 0, NULL) == MILLRACE_INVALID);
    CHECK(millrace_copy(channel, NULL, NULL, 0) == MILLRACE_INVALID);
    CHECK(millrace_wait(NULL, 0) == MILLRACE_INVALID);
    CHECK(millrace_wait_for_room(NULL, 0) == MILLRACE_INVALID);
    CHECK(millrace_fd(NULL) == MILLRACE_INVALID);
    CHECK(millrace_arm(NULL) == MILLRACE_INVALID);
    CHECK(millrace_flush(NULL, 0) == MILLRACE_INVALID);
    CHECK(millrace_read_counters(channel, NULL) == MILLRACE_INVALID);
    millrace_options_default(NULL);
    millrace_close(NULL);
    millrace_detach(NULL);
}

static millrace_channel *open_queues(millrace_client *client) {
    const char *names[] = {"left"};
    millrace_channel *channels[2];
    millrace_options options;
    millrace_options_default(&options);
    CHECK(options.slots == 1024 && options.capacity == 2048 && options.channels == 1);
    options.ports = names;
    options.port_count = 1;
    options.take = 9;
    CHECK(millrace_open(client, &options, channels, 2) == MILLRACE_INVALID);
    CHECK(strstr(millrace_error(), "options.take: '9'"));
    options.take = MILLRACE_COPY;
    options.source = "here";
    CHECK(millrace_open(client, &options, channels, 2) == MILLRACE_INVALID);
    options.source = "2001:db8::1";
    options.protocol = "udp";
    options.destination_port = 53;
    options.slots = 8;
    options.capacity = 100;
    options.channels = 3;
    CHECK(millrace_open(client, &options, channels, 2) == MILLRACE_INVALID);
    names[0] = "nowhere";
    options.channels = 2;
    CHECK(millrace_open(client, &options, channels, 2) == MILLRACE_REFUSED);
    CHECK(strstr(millrace_error(), "there are left and right"));
    names[0] = "left";
    CHECK(millrace_open(client, &options, channels, 2) == 2);
    millrace_close(channels[1]);
    return channels[0];
}

/* The daemon sends 10, 11, ... in packets of 60 bytes by port 1, then one of 250 bytes. */
static void packets(millrace_channel *channel) {
    millrace_packet got[4], stale;
    uint8_t copy[300], *data;
    receive(channel, got, 4);
    for (int i = 0; i < 4; i++) {
        CHECK(got[i].length == 60 && got[i].total == 60 && got[i].pieces == 1);
        CHECK(got[i].port == 1 && got[i].copy == 0 && got[i].data[0] == 10 + i);
    }
    got[0].data[1] = 99;
    got[0].port = 0;
    CHECK(millrace_send(channel, got, 2) == 2);
    stale = got[0];
    CHECK(millrace_send(channel, &stale, 1) == MILLRACE_STALE);
    CHECK(millrace_release(channel, &stale, 1) == MILLRACE_STALE);
    stale.handle = UINT64_MAX;
    CHECK(millrace_copy(channel, &stale, copy, sizeof copy) == MILLRACE_STALE);
    CHECK(millrace_return(channel, &got[2], 1) == 1);
    CHECK(millrace_release(channel, &got[3], 1) == 1);
    CHECK(millrace_send_bytes(channel, "own bytes", 9, 1) == 0);
    CHECK(millrace_return_bytes(channel, "to graph", 8, 0) == 0);
    CHECK(millrace_send_bytes(channel, NULL, 0, 1) == MILLRACE_UNSENDABLE);

    /* The next packet gets the place of the last that was given back, but not its handle. */
    stale = got[3];
    receive(channel, got, 1);
    CHECK(millrace_release(channel, &stale, 1) == MILLRACE_STALE);
    CHECK(got->length == 100 && got->total == 250 && got->pieces == 3);
    CHECK(millrace_piece(channel, got, 2, &data) == 50 && data[49] == 249);
    CHECK(millrace_piece(channel, got, 3, &data) == 0);
    data = NULL;
    CHECK(millrace_copy(channel, got, copy, sizeof copy) == 250 && copy[249] == 249);
    CHECK(millrace_send(channel, got, 1) == 1);
    CHECK(millrace_flush(channel, LONG) == 1 && millrace_wait_for_room(channel, 0) == 1);
}

/* The daemon sends twice as many packets as its ring has slots. */
static void rounds(millrace_channel *channel) {
    millrace_packet packet;
    for (int i = 0; i < 16; i++) {
        receive(channel, &packet, 1);
        CHECK(packet.data[0] == i);
        if (i % 2) CHECK(millrace_release(channel, &packet, 1) == 1);
        else CHECK(millrace_send(channel, &packet, 1) == 1);
    }
}

/* Nothing is taken until the daemon is told by 'f' on the standard output. */
static void full(millrace_channel *channel) {
    millrace_counters counters;
    int sent = 0, status;
    while ((status = millrace_send_bytes(channel, "filler", 6, 0)) == 0) sent++;
    CHECK(status == MILLRACE_FULL && sent == 8);
    CHECK(millrace_wait_for_room(channel, 0) == 0);
    CHECK(millrace_read_counters(channel, &counters) == 0);
    CHECK(counters.received == 21 && counters.sent == 22 && counters.full == 1);
    CHECK(counters.malformed == 0);
}

/* A receive queue of its own: packets are sent from where they lie. */
static void own_queue(millrace_client *client) {
    millrace_options options;
    millrace_channel *channel = NULL;
    millrace_packet batch[3];
    millrace_options_default(&options);
    options.queue_port = "left";
    options.queue = 3;
    CHECK(millrace_open(client, &options, &channel, 1) >= 0);
    puts("own");
    fflush(stdout);
    for (int i = 0; i < 3; i++) receive(channel, &batch[i], 1);
    CHECK(batch[0].length == 60 && batch[0].pieces == 1 && batch[0].data[0] == 1);
    batch[0].data[1] = 99;
    CHECK(millrace_release(channel, &batch[2], 1) == 1);
    CHECK(millrace_send(channel, batch, 3) == 2 && millrace_send(channel, batch + 2, 1) == MILLRACE_STALE);
    CHECK(millrace_receive(channel, batch, 1) == 0);
    getchar();
    millrace_close(channel);
}

int main(void) {
    millrace_client *client = NULL;
    millrace_port ports[8];
    millrace_packet packet;
    CHECK(millrace_attach("/nowhere/attach.sock", "c", &client) == MILLRACE_NO_DAEMON);
    CHECK(client == NULL && strstr(millrace_error(), "/nowhere/attach.sock"));
    CHECK(millrace_attach(NULL, "c program", &client) == 0);
    CHECK(strchr(millrace_version(), '.'));
    CHECK(millrace_ports(client, ports, 1) == 2 && millrace_ports(client, ports, 8) == 2);
    CHECK(!strcmp(ports[1].name, "right") && ports[1].number == 1 && ports[1].mtu == 1500);
    own_queue(client);
    millrace_channel *channel = open_queues(client);
    nulls(client, channel);
    puts("open");
    fflush(stdout);
    packets(channel);
    puts("packets");
    fflush(stdout);
    rounds(channel);
    getchar();
    full(channel);
    struct pollfd polled = {.fd = millrace_fd(channel), .events = POLLIN};
    CHECK(millrace_arm(channel) == 1 && poll(&polled, 1, 0) == 0);
    puts("full");
    fflush(stdout);
    /* The daemon sends one more, then ends. */
    CHECK(poll(&polled, 1, LONG) == 1 && millrace_receive(channel, &packet, 1) == 1);
    CHECK(millrace_release(channel, &packet, 1) == 1);
    puts("end");
    fflush(stdout);
    int status;
    while ((status = millrace_wait(channel, LONG)) == 0) {
    }
    CHECK(status == MILLRACE_DAEMON_GONE && strstr(millrace_error(), "attach again"));
    CHECK(millrace_receive(channel, &packet, 1) == MILLRACE_DAEMON_GONE);
    CHECK(millrace_reattach(client) == MILLRACE_NO_DAEMON);
    millrace_detach(client);
    millrace_close(channel);
    puts("done");
    return 0;
}
