// read, recv, recvfrom, readv and their flags.
#include "cases.h"

static uint8_t data[1 << 20];

static void plain(void) {
  struct pair p = pair();
  peer_sends(p.peer, 100);
  arrived(p.fd, 100);
  R(recv(p.fd, data, 40, 0));
  bytes("first", data, 40);
  R(read(p.fd, data, 30));
  bytes("second", data, 30);
  R(recv(p.fd, data, 1000, 0));
  bytes("third", data, 30);
  nonblocking(p.fd);
  R(recv(p.fd, data, 10, 0));
  R(read(p.fd, data, 10));
  peer_closes(p.peer);
  until(p.fd, POLLIN);
  R(recv(p.fd, data, 10, 0));
  R(read(p.fd, data, 10));
}

static void peek(void) {
  struct pair p = pair();
  peer_sends(p.peer, 50);
  arrived(p.fd, 50);
  R(recv(p.fd, data, 10, MSG_PEEK));
  bytes("seen", data, 10);
  R(recv(p.fd, data, 100, MSG_PEEK));
  bytes("seen", data, 50);
  int there = -1;
  R(ioctl(p.fd, FIONREAD, &there));
  line("FIONREAD %d", there);
  R(recv(p.fd, data, 20, 0));
  R(recv(p.fd, data, 100, MSG_PEEK | MSG_DONTWAIT));
  bytes("seen", data, 30);
  R(recv(p.fd, data, 100, 0));
  R(recv(p.fd, data, 100, MSG_PEEK | MSG_DONTWAIT));
  peer_closes(p.peer);
  until(p.fd, POLLIN);
  R(recv(p.fd, data, 100, MSG_PEEK));
}

static void peek_waits(void) {
  struct pair p = pair();
  remote_later(50, "send %d 7", p.peer);
  R(recv(p.fd, data, 100, MSG_PEEK));
  bytes("seen", data, 7);
  R(recv(p.fd, data, 100, 0));
  peer_sends(p.peer, 5);
  arrived(p.fd, 5);
  remote_later(50, "send %d 5", p.peer);
  R(recv(p.fd, data, 10, MSG_PEEK | MSG_WAITALL));
  bytes("seen", data, 10);
}

static void peek_offset(void) {
  struct pair p = pair();
  int offset = 5;
  peer_sends(p.peer, 50);
  arrived(p.fd, 50);
  if (R(setsockopt(p.fd, SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof offset)) < 0) return;
  R(recv(p.fd, data, 10, MSG_PEEK));
  bytes("from 5", data, 10);
  R(recv(p.fd, data, 10, MSG_PEEK));
  bytes("from 15", data, 10);
  R(recv(p.fd, data, 8, 0));
  R(recv(p.fd, data, 10, MSG_PEEK));
  bytes("after reading 8", data, 10);
}

static void waitall(void) {
  struct pair p = pair();
  peer_sends(p.peer, 10);
  remote_later(50, "send %d 20", p.peer);
  R(recv(p.fd, data, 30, MSG_WAITALL));
  bytes("all", data, 30);
  peer_sends(p.peer, 10);
  remote_later(50, "close %d", p.peer);
  R(recv(p.fd, data, 30, MSG_WAITALL));
  R(recv(p.fd, data, 30, MSG_WAITALL));
}

static void waitall_nonblocking(void) {
  struct pair p = pair();
  peer_sends(p.peer, 10);
  arrived(p.fd, 10);
  R(recv(p.fd, data, 30, MSG_WAITALL | MSG_DONTWAIT));
  R(recv(p.fd, data, 30, MSG_WAITALL | MSG_DONTWAIT));
  peer_sends(p.peer, 10);
  arrived(p.fd, 10);
  struct timeval limit = {.tv_usec = 50000};
  R(setsockopt(p.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
  R(recv(p.fd, data, 30, MSG_WAITALL));
  peer_sends(p.peer, 10);
  arrived(p.fd, 10);
  remote_later(20, "reset %d", p.peer);
  R(recv(p.fd, data, 30, MSG_WAITALL));
  R(recv(p.fd, data, 30, MSG_WAITALL));
}

static void truncated(void) {
  struct pair p = pair();
  peer_sends(p.peer, 100);
  arrived(p.fd, 100);
  R(recv(p.fd, data, 30, MSG_TRUNC));
  R(recv(p.fd, NULL, 30, MSG_TRUNC));
  R(recv(p.fd, data, 10, MSG_PEEK | MSG_TRUNC));
  R(recv(p.fd, data, 100, 0));
  bytes("after 60", data, 40);
}

static void nothing(void) {
  struct pair p = pair();
  R(recv(p.fd, data, 0, MSG_DONTWAIT));
  R(read(p.fd, data, 0));
  peer_sends(p.peer, 5);
  arrived(p.fd, 5);
  R(recv(p.fd, data, 0, 0));
  R(read(p.fd, NULL, 0));
  R(recv(p.fd, data, 5, 0));
}

static void vectors(void) {
  struct pair p = pair();
  peer_sends(p.peer, 100);
  arrived(p.fd, 100);
  struct iovec parts[] = {{data, 10}, {data + 500, 0}, {data + 100, 20}, {data + 200, 5}};
  R(readv(p.fd, parts, 4));
  bytes("first part", data, 10);
  bytes("third part", data + 100, 20);
  bytes("fourth part", data + 200, 5);
  R(readv(p.fd, parts, 0));
  R(readv(p.fd, parts, -1));
  R(readv(p.fd, parts, 1025));
  struct iovec huge[] = {{data, SSIZE_MAX}, {data, 10}};
  R(readv(p.fd, huge, 2));
  R(preadv(p.fd, parts, 4, 0));
  R(preadv(p.fd, parts, 4, -1));
  struct iovec long_one[] = {{data, 1000}};
  R(readv(p.fd, long_one, 1));
  nonblocking(p.fd);
  R(readv(p.fd, long_one, 1));
}

static void from(void) {
  struct pair p = pair();
  struct sockaddr_storage name;
  memset(&name, 0xaa, sizeof name);
  socklen_t length = sizeof name;
  peer_sends(p.peer, 10);
  arrived(p.fd, 10);
  R(recvfrom(p.fd, data, 100, 0, (struct sockaddr *)&name, &length));
  line("length %d, family %#x", (int)length, name.ss_family);
  // What cannot be told takes the data with it.
  peer_sends(p.peer, 10);
  arrived(p.fd, 10);
  R(recvfrom(p.fd, data, 2, 0, (struct sockaddr *)&name, NULL));
  length = -1;
  R(recvfrom(p.fd, data, 2, 0, (struct sockaddr *)&name, &length));
  R(recv(p.fd, data, 100, 0));
}

static void bad_pointer(void) {
  struct pair p = pair();
  peer_sends(p.peer, 10);
  arrived(p.fd, 10);
  R(recv(p.fd, NULL, 10, 0));
  R(recv(p.fd, (void *)8, 10, 0));
  R(read(p.fd, (void *)8, 10));
  R(send(p.fd, (void *)8, 10, 0));
  R(write(p.fd, NULL, 10));
  R(readv(p.fd, (void *)8, 2));
  R(recv(p.fd, data, 100, 0));
}

static void not_connected(void) {
  int fd = stream();
  R(recv(fd, data, 10, 0));
  R(read(fd, data, 10));
  R(recv(fd, data, 10, MSG_DONTWAIT));
  R(recv(fd, data, 10, MSG_PEEK));
  bind_own(fd, true, 0);
  R(recv(fd, data, 10, 0));
  R(recv(-1, data, 10, 0));
  R(recv(STDOUT_FILENO, data, 10, 0));
}

static void odd_flags(void) {
  struct pair p = pair();
  R(recv(p.fd, data, 10, MSG_OOB));
  R(recv(p.fd, data, 10, MSG_ERRQUEUE));
  R(recv(p.fd, data, 10, MSG_DONTWAIT | MSG_CMSG_CLOEXEC));
  R(recv(p.fd, data, 10, MSG_DONTWAIT | MSG_NOSIGNAL));
  R(recv(p.fd, data, 10, MSG_DONTWAIT | 0x40000000));
}

static void urgent(void) {
  struct pair p = pair();
  peer_sends(p.peer, 5);
  remote("urgent %d", p.peer);
  line("poll %s", events(until(p.fd, POLLPRI)));
  arrived(p.fd, 5);
  R(sockatmark(p.fd));
  R(recv(p.fd, data, 100, 0));
  R(sockatmark(p.fd));
  R(recv(p.fd, data, 1, MSG_OOB | MSG_PEEK));
  R(recv(p.fd, data, 1, MSG_OOB));
  line("urgent byte %d", data[0]);
  R(recv(p.fd, data, 1, MSG_OOB));
  int on = 1;
  R(setsockopt(p.fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof on));
  remote("urgent %d", p.peer);
  until(p.fd, POLLIN);
  R(recv(p.fd, data, 1, MSG_OOB));
  R(recv(p.fd, data, 10, 0));
}

static void time_limit(void) {
  struct pair p = pair();
  struct timeval limit = {.tv_usec = 50000};
  struct timespec before, after;
  R(setsockopt(p.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
  clock_gettime(CLOCK_MONOTONIC, &before);
  R(recv(p.fd, data, 10, 0));
  clock_gettime(CLOCK_MONOTONIC, &after);
  long took = (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
  YES(took >= 45);
  R(read(p.fd, data, 10));
  remote_later(20, "send %d 10", p.peer);
  limit.tv_sec = 3;
  R(setsockopt(p.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
  R(read(p.fd, data, 10));
}

static void low_mark(void) {
  struct pair p = pair();
  int mark = 20;
  struct pollfd one = {.fd = p.fd, .events = POLLIN};
  R(setsockopt(p.fd, SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof mark));
  peer_sends(p.peer, 10);
  arrived(p.fd, 10);
  R(poll(&one, 1, 20));
  remote_later(30, "send %d 10", p.peer);
  R(poll(&one, 1, 2000));
  R(recv(p.fd, data, 100, 0));
  peer_sends(p.peer, 10);
  arrived(p.fd, 10);
  R(recv(p.fd, data, 100, MSG_DONTWAIT));
}

static void much(void) {
  struct pair p = pair();
  size_t done = 0;
  uint8_t *all = malloc(3000000);
  remote_later(0, "send %d 3000000", p.peer);
  for (int i = 0; done < 3000000; i++) {
    size_t want = 1 + (i * 7919u) % 100000;
    ssize_t n = recv(p.fd, all + done, want < 3000000 - done ? want : 3000000 - done, 0);
    if (n <= 0) {
      line("recv = %zd %s", n, error_name(errno));
      break;
    }
    done += n;
  }
  bytes("all", all, done);
}

static void reset(void) {
  struct pair p = pair();
  peer_sends(p.peer, 10);
  arrived(p.fd, 10);
  peer_resets(p.peer);
  line("poll %s", events(until(p.fd, POLLERR | POLLHUP)));
  R(recv(p.fd, data, 5, 0));
  R(recv(p.fd, data, 100, 0));
  R(recv(p.fd, data, 100, 0));
  R(read(p.fd, data, 100));
}

// What has come before the reset is given; the error stays for those who ask.
static void reset_midway(void) {
  struct pair p = pair();
  peer_sends(p.peer, 10);
  arrived(p.fd, 10);
  remote_later(60, "reset %d", p.peer);
  R(recv(p.fd, data, 100, MSG_WAITALL));
  line("poll %s", events(until(p.fd, POLLERR)));
  int error = -1;
  socklen_t length = sizeof error;
  R(getsockopt(p.fd, SOL_SOCKET, SO_ERROR, &error, &length));
  line("SO_ERROR %s", error_name(error));
  R(recv(p.fd, data, 100, 0));
}

const struct test receive_cases[] = {
    {"recv", plain, ALL},
    {"recv peek", peek, ALL},
    {"recv peek waits", peek_waits, BOTH},
    {"recv peek offset", peek_offset, BOTH},
    {"recv waitall", waitall, ALL},
    {"recv waitall cut short", waitall_nonblocking, BOTH},
    {"recv trunc", truncated, BOTH},
    {"recv nothing", nothing, BOTH},
    {"readv", vectors, ALL},
    {"recvfrom", from, ALL},
    {"recv bad pointer", bad_pointer, BOTH},
    {"recv not connected", not_connected, FAMILIES},
    {"recv odd flags", odd_flags, BOTH},
    {"recv urgent", urgent, BOTH},
    {"recv time limit", time_limit, ALL},
    {"recv low mark", low_mark, BOTH},
    {"recv much", much, ALL},
    {"recv reset", reset, ALL},
    {"recv reset midway", reset_midway, BOTH},
    END,
};
