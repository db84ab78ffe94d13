/**
 * @file reflect.c
 * A packet function that sends IPv4 echo requests back as answers, before the router sees them.
 *
 *   cc -O2 -shared -fPIC -o reflect.so reflect.c $(pkg-config --cflags millrace)
 *   install -o root -m 644 reflect.so /usr/lib/millrace/functions/
 *   millrace function add reflect.so --port left
 */
#include <millrace_function.h>
#include <string.h>

static void swap(uint8_t *a, uint8_t *b, unsigned length) {
  uint8_t kept[8];
  memcpy(kept, a, length);
  memcpy(a, b, length);
  memcpy(b, kept, length);
}

static void *create(const char *argument, char *error, uint32_t room) {
  static int instance;
  (void)argument, (void)error, (void)room;
  return &instance;
}

static void process(void *instance, struct millrace_function_packet *packets, uint32_t count) {
  (void)instance;
  for (uint32_t i = 0; i < count; i++) {
    struct millrace_function_packet *packet = &packets[i];
    uint8_t *bytes = packet->data;
    /* Ethernet, an IPv4 header without options that is no fragment, ICMP type 8. */
    if (packet->length < 42 || bytes[12] != 0x08 || bytes[13] != 0 || bytes[14] != 0x45 ||
        (bytes[20] & 0x3f) != 0 || bytes[21] != 0 || bytes[23] != 1 || bytes[34] != 8)
      continue;
    swap(bytes, bytes + 6, 6);
    swap(bytes + 26, bytes + 30, 4);
    bytes[34] = 0;
    /* The type's word is 0x0800 less, so the checksum is as much more (RFC 1624). */
    uint32_t sum = (uint32_t)(bytes[36] << 8 | bytes[37]) + 0x0800;
    sum = (sum & 0xffff) + (sum >> 16);
    bytes[36] = (uint8_t)(sum >> 8);
    bytes[37] = (uint8_t)sum;
    packet->verdict = MILLRACE_TRANSMIT(packet->port);
  }
}

static void destroy(void *instance) { (void)instance; }

static const struct millrace_function_table table = {MILLRACE_FUNCTION_VERSION, create, process, destroy};

const struct millrace_function_table *millrace_function(void) { return &table; }
