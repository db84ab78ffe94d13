// Datagrams between the subject and its peer.
#include "talk.h"

int version(void) { return mode.family == AF_INET6 && !mode.mapped ? 6 : 4; }

struct talk talk(bool any) {
  struct talk t = {.fd = datagram()};
  t.port = bind_own(t.fd, any, 0);
  t.peer = remote("udp %d", version());
  t.peer_port = remote("port %d", t.peer);
  t.to = to_peer(t.peer_port, &t.length);
  return t;
}

void peer_gets(struct talk t) {
  char text[256];
  int length = snprintf(text, sizeof text, "datagram %d", t.peer);
  send(control, text, length, 0);
  struct pollfd wait = {.fd = control, .events = POLLIN};
  poll(&wait, 1, -1);
  ssize_t n = recv(control, text, sizeof text - 1, 0);
  text[n > 0 ? n : 0] = 0;
  char *from = strstr(text, " from ");
  if (from) {
    YES(atoi(from + 6) == port_of(t.fd));
    *from = 0;
  }
  line("the peer gets %s", text);
}

void peer_sends_to(struct talk t, int length) {
  remote("sendto %d %d %d %d", t.peer, version(), port_of(t.fd), length);
}
