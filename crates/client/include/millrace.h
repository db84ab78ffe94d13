/**
 * @file millrace.h
 * libmillrace: packet functions in processes of their own. docs/build.md has the way from nothing to a running
 * function; examples/c has whole programs.
 *
 * A call that can fail gives a negative status (MILLRACE_INVALID for a null pointer where none may be, in all of them);
 * millrace_error() has the words. Packets go on in bursts: give millrace_send() and millrace_return() all at once.
 *
 * Made of crates/client/src/c by scripts/header: do not edit.
 */

#ifndef MILLRACE_H
#define MILLRACE_H

#include <stddef.h>
#include <stdint.h>

/**
 * Status: a pointer is null, or an option makes no sense to the library.
 */
#define MILLRACE_INVALID -1

/**
 * Status: nobody listens at the attach socket, or this process may not connect.
 */
#define MILLRACE_NO_DAEMON -2

/**
 * Status: library and daemon are of different versions; millrace_error() names both.
 */
#define MILLRACE_VERSION_MISMATCH -3

/**
 * Status: the daemon says no; millrace_error() says why.
 */
#define MILLRACE_REFUSED -4

/**
 * Status: the daemon has ended; attach again when it is back, and open queues anew.
 */
#define MILLRACE_DAEMON_GONE -5

/**
 * Status: the daemon did not answer in time, or with nonsense.
 */
#define MILLRACE_PROTOCOL -6

/**
 * Status: the system refused memory or a file descriptor.
 */
#define MILLRACE_SYSTEM -7

/**
 * Status: the queue to the daemon is full; send again later, or drop the packet.
 */
#define MILLRACE_FULL -8

/**
 * Status: no bytes, or more than the queue can ever take.
 */
#define MILLRACE_UNSENDABLE -9

/**
 * Status: the packet was sent, returned or released before, or another channel received it.
 */
#define MILLRACE_STALE -10

/**
 * Status: a defect of the library; please report it.
 */
#define MILLRACE_DEFECT -11

/**
 * Status: this process was forked from the one that attached, whose channels these are; millrace_reattach() attaches anew.
 */
#define MILLRACE_FORKED -12

/**
 * Take: the channel gets the packets, and nobody else.
 */
#define MILLRACE_DIVERT 0

/**
 * Take: the channel gets copies.
 */
#define MILLRACE_COPY 1

/**
 * Take: the channel only sends.
 */
#define MILLRACE_NOTHING 2

/**
 * Spread: a flow's packets all go to one channel.
 */
#define MILLRACE_FLOW 0

/**
 * Spread: one packet after the other.
 */
#define MILLRACE_ROUND_ROBIN 1

/**
 * Spread: a port's packets all go to one channel, its number modulo the number of channels.
 */
#define MILLRACE_PORT 2

/**
 * Packets for one thread, and to the daemon.
 */
typedef struct millrace_channel millrace_channel;

/**
 * A process that is attached to the daemon. Threads may share it, but for millrace_reattach() and millrace_detach().
 */
typedef struct millrace_client millrace_client;

/**
 * A port of the daemon.
 */
typedef struct millrace_port {
    /**
     * Its name, cut off after 63 bytes, with a zero byte behind.
     */
    char name[64];
    /**
     * Its MAC address.
     */
    uint8_t mac[6];
    /**
     * Bytes of an IP packet.
     */
    uint16_t mtu;
    /**
     * Its number, as in millrace_packet.
     */
    uint8_t number;
} millrace_port;

/**
 * Which packets a client wants, and how. Begin with millrace_options_default(). A packet must match all that is
 * given; zero and NULL match any.
 */
typedef struct millrace_options {
    /**
     * Names of ports; none: all that this client may use.
     */
    const char *const *ports;
    /**
     * How many names.
     */
    size_t port_count;
    /**
     * MILLRACE_DIVERT, MILLRACE_COPY or MILLRACE_NOTHING.
     */
    uint32_t take;
    /**
     * MILLRACE_FLOW, MILLRACE_ROUND_ROBIN or MILLRACE_PORT: how packets are spread over channels.
     */
    uint32_t spread;
    /**
     * Slots of each ring: a power of two, from 2 to 1,048,576.
     */
    uint32_t slots;
    /**
     * Bytes of packet that a slot holds: 60 to 16,383. Longer packets take several slots.
     */
    uint32_t capacity;
    /**
     * Channels: one for each thread, 1 to 64.
     */
    uint16_t channels;
    /**
     * EtherType, behind VLAN tags.
     */
    uint16_t ether_type;
    /**
     * Source port of TCP or UDP.
     */
    uint16_t source_port;
    /**
     * Destination port of TCP or UDP.
     */
    uint16_t destination_port;
    /**
     * "tcp", "udp", "icmp", "icmp6", "arp", or the number of an IP protocol.
     */
    const char *protocol;
    /**
     * IPv4 or IPv6 address of either end.
     */
    const char *host;
    /**
     * Source address.
     */
    const char *source;
    /**
     * Destination address.
     */
    const char *destination;
    /**
     * A port whose receive queue `queue` this client wants for itself, without copies; NULL: none. The port must keep
     * it for clients. It comes whole: everything else stays as millrace_options_default() leaves it, but for `slots`
     * and `capacity`.
     */
    const char *queue_port;
    /**
     * The number of that queue, from 0.
     */
    uint16_t queue;
} millrace_options;

/**
 * What a channel has done.
 */
typedef struct millrace_counters {
    /**
     * Packets received.
     */
    uint64_t received;
    /**
     * Packets sent to a port or returned to the graph.
     */
    uint64_t sent;
    /**
     * Packets that were not sent because the queue was full: once for each try.
     */
    uint64_t full;
    /**
     * Packets dropped because their marks made no sense.
     */
    uint64_t malformed;
} millrace_counters;

/**
 * A packet that was received. It stays the caller's, and `data` valid, until it is given to millrace_send(),
 * millrace_return() or millrace_release().
 */
typedef struct millrace_packet {
    /**
     * Its bytes, to look at and to change: `length` of them.
     */
    uint8_t *data;
    /**
     * Bytes at `data`: all of them, or the first piece of a packet longer than a slot.
     */
    uint32_t length;
    /**
     * Bytes of the packet.
     */
    uint32_t total;
    /**
     * Pieces in which it lies: one, unless it is longer than a slot; see millrace_piece().
     */
    uint32_t pieces;
    /**
     * The port where it came in; change it to choose where millrace_send() sends it.
     */
    uint8_t port;
    /**
     * 1: a copy, the packet itself went on. 0: the packet.
     */
    uint8_t copy;
    /**
     * Which one it is, for the library.
     */
    uint64_t handle;
} millrace_packet;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Attaches to the daemon at the socket `path`; with NULL at what the environment variable MILLRACE_ATTACH says, else
 * at /run/millrace/attach.sock. `name` is shown to people: 1 to 63 bytes.
 *
 * Gives 0 and the client, which millrace_detach() ends; or a status: MILLRACE_NO_DAEMON, MILLRACE_REFUSED,
 * MILLRACE_VERSION_MISMATCH.
 */
int millrace_attach(const char *path,
                    const char *name,
                    struct millrace_client **client);

/**
 * Attaches anew, by the same socket and name, when a daemon that was gone is back. Channels of before stay dead: close
 * them and open new ones.
 *
 * Gives 0 or a status, as millrace_attach().
 */
int millrace_reattach(struct millrace_client *client);

/**
 * Ends an attachment; its channels live on until they are closed. NULL is well.
 */
void millrace_detach(struct millrace_client *client);

/**
 * Ports that this client may use.
 *
 * Gives how many there are and writes the first `room` of them; or a status.
 */
int millrace_ports(const struct millrace_client *client, struct millrace_port *ports, size_t room);

/**
 * What was wrong with the last call of this thread that failed, and what to do. The text is valid until the
 * thread's next failure; it is never null. Not set by MILLRACE_FULL, which says all.
 */
const char *millrace_error(void);

/**
 * The library's version.
 */
const char *millrace_version(void);

/**
 * Opens queues: as many channels as the options say (NULL: one channel, all packets), of which `channels` has room for
 * `room`. A channel belongs to one thread at a time; the queues are closed with their last channel.
 *
 * Gives how many channels were opened; or a status: MILLRACE_REFUSED, MILLRACE_INVALID, MILLRACE_DAEMON_GONE.
 */
int millrace_open(const struct millrace_client *client,
                  const struct millrace_options *options,
                  struct millrace_channel **channels,
                  size_t room);

/**
 * Closes a channel. Packets that it received are gone with it. NULL is well.
 */
void millrace_close(struct millrace_channel *channel);

/**
 * What a channel has done so far. Gives 0 or MILLRACE_INVALID.
 */
int millrace_read_counters(struct millrace_channel *channel, struct millrace_counters *counters);

/**
 * All packets of all ports, taken for this client, flow by flow, one channel, rings of 1,024 slots of 2,048 bytes. NULL
 * is well.
 */
void millrace_options_default(struct millrace_options *options);

/**
 * Takes up to `limit` packets. Never waits, and makes no system call but for a look at the daemon every 20 ms while
 * nothing comes.
 *
 * Gives how many packets were written to `packets`; or a status: MILLRACE_DAEMON_GONE when nothing is left to receive.
 */
int millrace_receive(struct millrace_channel *channel,
                     struct millrace_packet *packets,
                     size_t limit);

/**
 * A piece of a packet that is longer than a slot, 0 being the first: `data` is set to its bytes.
 *
 * Gives how many bytes it has, 0 beyond the last piece; or MILLRACE_STALE.
 */
int millrace_piece(struct millrace_channel *channel,
                   const struct millrace_packet *packet,
                   uint32_t piece,
                   uint8_t **data);

/**
 * Copies a packet, however many pieces it has, as much as `room` bytes hold.
 *
 * Gives bytes copied; or MILLRACE_STALE.
 */
int millrace_copy(struct millrace_channel *channel,
                  const struct millrace_packet *packet,
                  void *buffer,
                  size_t room);

/**
 * Drops packets: their slots go back to the daemon.
 *
 * Gives `number`; or MILLRACE_STALE when one of them is not the caller's any more: those before it were released.
 */
int millrace_release(struct millrace_channel *channel,
                     const struct millrace_packet *packets,
                     size_t number);

/**
 * Sends packets, each by its `port`: that where it came in, unless it was changed. They go to the worker from which they
 * came, so that a flow stays in order.
 *
 * Gives how many of the first were sent; the rest found no room and is still the caller's. MILLRACE_FULL when there was
 * room for none; MILLRACE_STALE when the first one is not the caller's any more; MILLRACE_DAEMON_GONE.
 */
int millrace_send(struct millrace_channel *channel,
                  const struct millrace_packet *packets,
                  size_t number);

/**
 * Gives packets back to the daemon's graph, as if each had just come in by its `port`: what a function does not want.
 *
 * Gives what millrace_send() gives.
 */
int millrace_return(struct millrace_channel *channel,
                    const struct millrace_packet *packets,
                    size_t number);

/**
 * Sends a packet of the caller's own making by a port; the bytes are copied.
 *
 * Gives 0; or MILLRACE_FULL, MILLRACE_UNSENDABLE, MILLRACE_DAEMON_GONE.
 */
int millrace_send_bytes(struct millrace_channel *channel, const void *bytes, size_t length, uint8_t port);

/**
 * Gives a packet of the caller's own making to the daemon's graph, as if it had come in by the port.
 *
 * Gives what millrace_send_bytes() gives.
 */
int millrace_return_bytes(struct millrace_channel *channel, const void *bytes, size_t length, uint8_t port);

/**
 * Waits until a packet comes, at most `milliseconds`; a negative number waits for ever. A signal may end it early.
 *
 * Gives 1 when a packet waits, else 0; or MILLRACE_DAEMON_GONE.
 */
int millrace_wait(struct millrace_channel *channel,
                  int milliseconds);

/**
 * Waits until a packet to be sent finds room again, at most `milliseconds`; a negative number waits for ever: after
 * MILLRACE_FULL. Who waits for packets too has to call millrace_arm() again.
 *
 * Gives 1 when there is room, else 0; or MILLRACE_DAEMON_GONE.
 */
int millrace_wait_for_room(struct millrace_channel *channel,
                           int milliseconds);

/**
 * A file descriptor for poll() or epoll: readable when packets came after millrace_arm(), or when the daemon is gone. It
 * is the channel's: do not close it, do not read it.
 *
 * Gives it; or MILLRACE_INVALID.
 */
int millrace_fd(struct millrace_channel *channel);

/**
 * Before waiting for millrace_fd(): tells the daemon to ring. millrace_receive() takes it back.
 *
 * Gives 1; or 0 when a packet is there already: do not wait.
 */
int millrace_arm(struct millrace_channel *channel);

/**
 * Waits until the daemon has taken all that was sent, at most `milliseconds`.
 *
 * Gives 1 when it has, else 0; or MILLRACE_DAEMON_GONE.
 */
int millrace_flush(struct millrace_channel *channel, int milliseconds);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* MILLRACE_H */
