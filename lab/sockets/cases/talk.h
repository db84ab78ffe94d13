// A datagram socket of the subject, and one of the peer.
#pragma once
#include "cases.h"

struct talk {
  int fd, port, peer, peer_port;
  struct sockaddr_storage to;
  socklen_t length;
};

// The IP version of the mode's packets.
int version(void);
// Both; with any the subject's is bound to the wildcard.
struct talk talk(bool any);
// What the peer receives next, as a line.
void peer_gets(struct talk t);
void peer_sends_to(struct talk t, int length);
