/* DNS responder: answers queries for IPv4 addresses of the names that it knows; all else goes on its way.
 *
 * usage: dns_responder NAME=ADDRESS... */
#include <arpa/inet.h>
#include <millrace.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Where UDP and DNS begin in a frame with an IPv4 header without options. */
enum { BURST = 64, UDP = 34, DNS = UDP + 8, NAME = 256 };

static void put16(uint8_t *at, size_t value) {
    at[0] = (uint8_t)(value >> 8), at[1] = (uint8_t)value;
}

static void rotate(uint8_t *at, size_t half) {
    uint8_t first[6];
    memcpy(first, at, half);
    memcpy(at, at + half, half);
    memcpy(at + half, first, half);
}

/* The name asked for, each label with a dot behind; gives where the question ends, 0 for what asks for no address. */
static size_t question(const uint8_t *frame, size_t length, char name[NAME]) {
    size_t at = DNS + 12, used = 0;
    if (length < at || memcmp(frame + 12, "\x08\x00\x45", 3) || frame[23] != 17) return 0;
    if ((frame[20] & 0x3f) || frame[21] || (frame[DNS + 2] & 0xf8) || memcmp(frame + DNS + 4, "\0\1", 2)) return 0;
    for (;;) {
        size_t label = at < length ? frame[at] : 64;
        if (label > 63 || at + 1 + label > length || used + label + 2 > NAME) return 0;
        if (memchr(frame + at + 1, 0, label) || memchr(frame + at + 1, '.', label)) return 0;
        if (label) memcpy(name + used, frame + at + 1, label), used += label, name[used++] = '.';
        at += 1 + label;
        if (!label) break;
    }
    name[used] = 0;
    return at + 4 <= length && !memcmp(frame + at, "\0\1\0\1", 4) ? at + 4 : 0;
}

static size_t answer(uint8_t *reply, const uint8_t *frame, size_t end, struct in_addr address) {
    /* The name above, type A, class IN, a minute, four bytes. */
    static const uint8_t record[12] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4};
    size_t length = end + sizeof record + 4;
    uint32_t sum = 0;
    memcpy(reply, frame, end);
    memcpy(reply + end, record, sizeof record);
    memcpy(reply + end + sizeof record, &address, 4);
    rotate(reply, 6), rotate(reply + 26, 4), rotate(reply + UDP, 2);
    reply[DNS + 2] = 0x84 | (frame[DNS + 2] & 1), reply[DNS + 3] = 0; /* an answer, with authority */
    memcpy(reply + DNS + 6, "\0\1\0\0\0\0", 6);
    put16(reply + 16, length - 14);
    put16(reply + UDP + 4, length - UDP);
    put16(reply + UDP + 6, 0); /* no UDP checksum, as IPv4 allows */
    reply[22] = 64, put16(reply + 24, 0);
    for (int i = 14; i < UDP; i += 2) sum += (uint32_t)(reply[i] << 8 | reply[i + 1]);
    put16(reply + 24, (uint16_t)~((sum & 0xffff) + (sum >> 16)));
    return length;
}

/* Finds the address of a name: 1, or 0 when it is not known; -1 when one of the arguments before makes no sense. */
static int find(char **names, const char *name, struct in_addr *address) {
    for (; *names; names++) {
        const char *equals = strchr(*names, '=');
        size_t length = equals ? (size_t)(equals - *names) : 0;
        if (!length || inet_pton(AF_INET, equals + 1, address) != 1) return -1;
        /* The name asked for ends with a dot. */
        if (name && strlen(name) == length + (equals[-1] != '.') && !strncasecmp(name, *names, length)) return 1;
    }
    return 0;
}

int main(int argc, char **argv) {
    millrace_packet packets[BURST];
    millrace_client *client;
    millrace_channel *channel;
    millrace_options options;
    millrace_options_default(&options);
    options.protocol = "udp", options.destination_port = 53;
    struct in_addr address;
    int wrong = argc < 2 || find(argv + 1, NULL, &address) < 0;
    int got = wrong ? -1 : millrace_attach(NULL, "dns responder", &client);
    if (got == 0) got = millrace_open(client, &options, &channel, 1);
    while (got >= 0 && (got = millrace_wait(channel, -1)) >= 0) {
        if ((got = millrace_receive(channel, packets, BURST)) < 0) break;
        for (int i = 0; i < got; i++) {
            char name[NAME];
            uint8_t reply[DNS + 12 + NAME + 1 + 4 + 16]; /* header, question, answer */
            size_t end = question(packets[i].data, packets[i].length, name);
            if (end && find(argv + 1, name, &address) > 0) {
                /* An answer that finds no room is one that was lost: it is asked for again. */
                millrace_send_bytes(channel, reply, answer(reply, packets[i].data, end, address), packets[i].port);
            } else if (millrace_return(channel, &packets[i], 1) == 1) continue;
            millrace_release(channel, &packets[i], 1);
        }
    }
    fprintf(stderr, "dns_responder: %s\n", wrong ? "usage: dns_responder NAME=ADDRESS..." : millrace_error());
    return 1;
}
