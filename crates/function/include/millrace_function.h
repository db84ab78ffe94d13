/**
 * @file millrace_function.h
 * Packet functions that run in the Millrace daemon, in C.
 *
 * A shared object exports one symbol, @ref millrace_function, which gives a table of three functions. The daemon
 * makes an instance for each of its workers; an instance is used by one thread at a time.
 *
 * What is loaded runs within the daemon and is trusted like it: a function that crashes takes the daemon along.
 * Functions that are not trusted belong into a process of their own: millrace.h.
 */
#ifndef MILLRACE_FUNCTION_H
#define MILLRACE_FUNCTION_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Version of this interface. A shared object of another one is refused. */
#define MILLRACE_FUNCTION_VERSION 1

/** The packet goes on, to the next function and then into the graph. */
#define MILLRACE_PASS 0
/** The packet is dropped, and counted as `function`. */
#define MILLRACE_DROP 1
/** The packet leaves by the port of that number, as millrace_function_packet.port has it. */
#define MILLRACE_TRANSMIT(port) (256 + (int32_t)(port))

/** A received packet, from its Ethernet header on. */
struct millrace_function_packet {
  /** Its first byte. May be moved: back by at most `headroom` bytes, or forth. */
  uint8_t *data;
  /** Bytes. May be changed: up to `tailroom` bytes more. */
  uint32_t length;
  /** Number of the port where it came in. */
  uint16_t port;
  /** Bytes that are free ahead of it. */
  uint16_t headroom;
  /** Bytes that are free behind it. */
  uint16_t tailroom;
  /** What becomes of it: MILLRACE_PASS, which it is set to, or another. */
  int32_t verdict;
};

/** The functions of a shared object. */
struct millrace_function_table {
  /** MILLRACE_FUNCTION_VERSION. */
  uint32_t version;
  /**
   * Makes an instance. `argument`: what the user gave, never null. Returns null to refuse, with words about
   * why in `error`, which has room for `room` bytes, the closing zero among them.
   */
  void *(*create)(const char *argument, char *error, uint32_t room);
  /** Treats a burst of `count` packets, 1 to 256. */
  void (*process)(void *instance, struct millrace_function_packet *packets, uint32_t count);
  /** Takes an instance down. */
  void (*destroy)(void *instance);
};

/** The one symbol that a shared object exports. The table lives as long as the shared object. */
const struct millrace_function_table *millrace_function(void);

#ifdef __cplusplus
}
#endif

#endif
