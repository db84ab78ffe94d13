/* A packet function for the tests: VERSION and ODD are given when it is compiled. */
#include <millrace_function.h>
#include <stdlib.h>
#include <string.h>

#ifndef VERSION
#define VERSION MILLRACE_FUNCTION_VERSION
#endif

struct limit {
  uint32_t longest;
};

static void *create(const char *argument, char *error, uint32_t room) {
  struct limit *limit = malloc(sizeof *limit);
  limit->longest = atoi(argument);
  if (limit->longest == 0) {
    strncpy(error, "give the longest packet: bytes", room - 1);
    free(limit);
    return NULL;
  }
  return limit;
}

/* Longer packets are dropped; one that begins with 'r' leaves by port 3; 'g' grows at both ends; 's' shrinks. */
static void process(void *instance, struct millrace_function_packet *packets, uint32_t count) {
  struct limit *limit = instance;
  (void)limit;
  for (uint32_t i = 0; i < count; i++) {
    struct millrace_function_packet *packet = &packets[i];
#ifdef ODD
    packet->data -= 100000;
    packet->length = 0x7fffffff;
    packet->verdict = ODD;
#else
    switch (packet->data[0]) {
    case 'r':
      packet->verdict = MILLRACE_TRANSMIT(3);
      break;
    case 'g':
      packet->data -= 4;
      packet->length += 8;
      memcpy(packet->data, "head", 4);
      memcpy(packet->data + packet->length - 4, "tail", 4);
      break;
    case 's':
      packet->data += 1;
      packet->length = 2;
      break;
    default:
      if (packet->length > limit->longest) packet->verdict = MILLRACE_DROP;
    }
#endif
  }
}

static const struct millrace_function_table table = {VERSION, create, process, free};

#ifndef NAMELESS
const struct millrace_function_table *millrace_function(void) { return &table; }
#else
const void *unused(void) { return &table; }
#endif
