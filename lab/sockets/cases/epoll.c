// epoll with sockets: level, edge, one-shot, exclusive, nested, and its errors.
#include "cases.h"
#include <sys/epoll.h>

static uint8_t data[65536];

static int change(int epoll, int what, int fd, uint32_t mask, uint64_t word) {
  struct epoll_event event = {.events = mask, .data.u64 = word};
  return epoll_ctl(epoll, what, fd, &event);
}
static int add(int epoll, int fd, uint32_t mask) { return change(epoll, EPOLL_CTL_ADD, fd, mask, 0x1234567890abcdef); }

// One wait: its events and words.
static int look(const char *what, int epoll, int milliseconds) {
  struct epoll_event got[8];
  int n = epoll_wait(epoll, got, 8, milliseconds);
  if (n < 0) line("%s: %s", what, error_name(errno));
  if (n == 0) line("%s: nothing", what);
  for (int i = 0; i < n; i++)
    line("%s: %d of %d: %s word %llx", what, i + 1, n, events(got[i].events), (unsigned long long)got[i].data.u64);
  return n;
}

static void level(void) {
  struct pair p = pair();
  int epoll = FD(epoll_create1(EPOLL_CLOEXEC));
  R(add(epoll, p.fd, EPOLLIN));
  look("idle", epoll, 0);
  peer_sends(p.peer, 10);
  look("data", epoll, 2000);
  look("again", epoll, 0);
  recv(p.fd, data, 4, 0);
  look("some read", epoll, 0);
  recv(p.fd, data, 100, 0);
  look("all read", epoll, 0);
  R(change(epoll, EPOLL_CTL_MOD, p.fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP, 7));
  look("changed", epoll, 0);
  R(change(epoll, EPOLL_CTL_MOD, p.fd, 0, 8));
  look("nothing wanted", epoll, 0);
  R(change(epoll, EPOLL_CTL_MOD, p.fd, EPOLLIN | EPOLLRDHUP, 9));
  peer_closes(p.peer);
  look("the peer has closed", epoll, 2000);
  recv(p.fd, data, 10, 0);
  look("the end read", epoll, 0);
  shutdown(p.fd, SHUT_WR);
  pause_ms(20);
  look("both shut", epoll, 0);
  R(change(epoll, EPOLL_CTL_MOD, p.fd, 0, 10));
  look("HUP comes unasked", epoll, 0);
  R(epoll_ctl(epoll, EPOLL_CTL_DEL, p.fd, NULL));
  look("removed", epoll, 0);
}

static void edge(void) {
  struct pair p = pair();
  int epoll = epoll_create1(0);
  R(add(epoll, p.fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET));
  look("added", epoll, 0);
  look("again", epoll, 0);
  peer_sends(p.peer, 10);
  look("data", epoll, 2000);
  look("again", epoll, 0);
  recv(p.fd, data, 4, 0);
  look("some read", epoll, 0);
  peer_sends(p.peer, 10);
  look("more data", epoll, 2000);
  recv(p.fd, data, 100, 0);
  look("all read", epoll, 0);
  R(change(epoll, EPOLL_CTL_MOD, p.fd, EPOLLIN | EPOLLET, 5));
  look("changed", epoll, 0);
  R(change(epoll, EPOLL_CTL_MOD, p.fd, EPOLLOUT | EPOLLET, 6));
  look("a change arms it", epoll, 0);
  look("once", epoll, 0);
  R(change(epoll, EPOLL_CTL_MOD, p.fd, EPOLLIN | EPOLLRDHUP | EPOLLET, 6));
  peer_closes(p.peer);
  look("the end", epoll, 2000);
  look("again", epoll, 0);
}

static void edge_out(void) {
  struct pair p = pair();
  int epoll = epoll_create1(0), size = 20000;
  remote("set %d %d %d %d", p.peer, SOL_SOCKET, SO_RCVBUF, size);
  setsockopt(p.fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  nonblocking(p.fd);
  R(add(epoll, p.fd, EPOLLOUT | EPOLLET));
  look("added", epoll, 0);
  int total = 0;
  for (int i = 0; i < 1000; i++) {
    ssize_t n = send(p.fd, data, sizeof data, MSG_NOSIGNAL);
    if (n > 0) { total += n; continue; }
    if (i > 900) break;
    pause_ms(1);
    if (i < 900) i += 30;
  }
  while (epoll_wait(epoll, &(struct epoll_event){0}, 1, 0) > 0) send(p.fd, data, sizeof data, MSG_NOSIGNAL);
  remote_later(0, "read %d %d", p.peer, total);
  look("the peer reads", epoll, 3000);
}

static void one_shot(void) {
  struct pair p = pair();
  int epoll = epoll_create1(0);
  R(add(epoll, p.fd, EPOLLIN | EPOLLONESHOT));
  peer_sends(p.peer, 10);
  look("data", epoll, 2000);
  look("disarmed", epoll, 0);
  peer_sends(p.peer, 10);
  arrived(p.fd, 20);
  look("still", epoll, 0);
  R(add(epoll, p.fd, EPOLLIN));
  R(change(epoll, EPOLL_CTL_MOD, p.fd, EPOLLIN | EPOLLONESHOT, 2));
  look("armed", epoll, 0);
  peer_resets(p.peer);
  pause_ms(30);
  look("a reset while disarmed", epoll, 0);
  R(change(epoll, EPOLL_CTL_MOD, p.fd, EPOLLIN | EPOLLONESHOT, 3));
  look("armed", epoll, 0);
}

static void listener(void) {
  int server = listening(5), epoll = epoll_create1(0);
  int version = mode.family == AF_INET6 && !mode.mapped ? 6 : 4;
  nonblocking(server);
  R(add(epoll, server, EPOLLIN));
  look("idle", epoll, 0);
  remote("connect %d %d", version, port_of(server));
  remote("connect %d %d", version, port_of(server));
  look("two wait", epoll, 2000);
  FD(accept(server, NULL, NULL));
  until(server, POLLIN);
  look("one waits", epoll, 2000);
  FD(accept(server, NULL, NULL));
  look("none", epoll, 0);
  R(change(epoll, EPOLL_CTL_MOD, server, EPOLLIN | EPOLLET, 2));
  remote_later(40, "connect %d %d", version, port_of(server));
  look("edge", epoll, 3000);
  look("again", epoll, 0);
  FD(accept(server, NULL, NULL));
  FD(accept(server, NULL, NULL));
  R(epoll_ctl(epoll, EPOLL_CTL_DEL, server, NULL));
  R(add(epoll, server, EPOLLIN | EPOLLEXCLUSIVE));
  remote("connect %d %d", version, port_of(server));
  look("exclusive", epoll, 2000);
  R(change(epoll, EPOLL_CTL_MOD, server, EPOLLIN, 2));
  R(shutdown(server, SHUT_RD));
  look("shut", epoll, 0);
}

// As Boost.Asio does: it registers every socket as soon as it has it.
static void before_listen(void) {
  int server = stream(), epoll = epoll_create1(0);
  int version = mode.family == AF_INET6 && !mode.mapped ? 6 : 4;
  nonblocking(server);
  R(add(epoll, server, EPOLLIN | EPOLLPRI | EPOLLERR | EPOLLHUP | EPOLLET));
  look("neither bound nor listening", epoll, 0);
  YES(bind_own(server, true, 0) > 0);
  R(listen(server, 5));
  FD(accept(server, NULL, NULL));
  look("idle", epoll, 0);
  remote("connect %d %d", version, port_of(server));
  look("one waits", epoll, 3000);
  FD(accept(server, NULL, NULL));
  R(change(epoll, EPOLL_CTL_MOD, server, EPOLLIN, 2));
  look("none", epoll, 0);
  remote("connect %d %d", version, port_of(server));
  look("another", epoll, 3000);
  R(epoll_ctl(epoll, EPOLL_CTL_DEL, server, NULL));
  look("removed", epoll, 0);
}

static void errors(void) {
  struct pair p = pair();
  int epoll = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN};
  R(change(epoll, EPOLL_CTL_MOD, p.fd, EPOLLIN, 0));
  R(change(epoll, EPOLL_CTL_DEL, p.fd, EPOLLIN, 0));
  R(add(epoll, p.fd, EPOLLIN));
  R(add(epoll, p.fd, EPOLLIN));
  R(add(epoll, epoll, EPOLLIN));
  R(add(epoll, -1, EPOLLIN));
  R(add(epoll, 900, EPOLLIN));
  R(add(-1, p.fd, EPOLLIN));
  R(add(p.fd, p.fd, EPOLLIN));
  R(add(p.fd, epoll, EPOLLIN));
  R(change(epoll, 9, p.fd, EPOLLIN, 0));
  R(epoll_ctl(epoll, EPOLL_CTL_MOD, p.fd, NULL));
  R(change(epoll, EPOLL_CTL_MOD, p.fd, EPOLLIN | EPOLLEXCLUSIVE, 0));
  int file = memfd_create("file", 0);
  R(add(epoll, file, EPOLLIN));
  R(epoll_ctl(epoll, EPOLL_CTL_DEL, p.fd, NULL));
  R(add(epoll, p.fd, EPOLLIN | EPOLLEXCLUSIVE | EPOLLONESHOT));
  R(add(epoll, p.fd, EPOLLIN | EPOLLEXCLUSIVE | EPOLLRDHUP));
  R(add(epoll, p.fd, EPOLLIN | EPOLLWAKEUP));
  R(epoll_wait(epoll, &event, 0, 0));
  R(epoll_wait(epoll, &event, -1, 0));
  R(epoll_wait(epoll, NULL, 1, 0));
  R(epoll_wait(-1, &event, 1, 0));
  R(epoll_wait(p.fd, &event, 1, 0));
  R(epoll_wait(STDOUT_FILENO, &event, 1, 0));
  FD(epoll_create(0));
  FD(epoll_create(-1));
  FD(epoll_create(1));
  FD(epoll_create1(1));
}

static void closing(void) {
  struct pair p = pair(), q = pair();
  int epoll = epoll_create1(0);
  R(add(epoll, p.fd, EPOLLIN | EPOLLOUT));
  R(close(p.fd));
  look("closed", epoll, 0);
  // The description lives on in a copy, and so does the registration.
  R(add(epoll, q.fd, EPOLLIN | EPOLLOUT));
  int copy = dup(q.fd);
  R(add(epoll, copy, EPOLLOUT));
  R(close(q.fd));
  R(epoll_wait(epoll, (struct epoll_event[4]){0}, 4, 0));
  R(epoll_ctl(epoll, EPOLL_CTL_DEL, q.fd, NULL));
  R(close(copy));
  look("both closed", epoll, 0);
  int fresh = stream();
  R(add(epoll, fresh, EPOLLIN));
  look("a fresh one of that number", epoll, 0);
}

static void states(void) {
  int fd = stream(), epoll = epoll_create1(0), udp = datagram();
  R(add(epoll, fd, EPOLLIN | EPOLLOUT));
  look("fresh", epoll, 0);
  R(epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL));
  R(add(epoll, udp, EPOLLIN | EPOLLOUT));
  look("datagram", epoll, 0);
}

static void crowd(void) {
  int epoll = epoll_create1(0), server = listening(64), fds[20], seen = 0;
  int version = mode.family == AF_INET6 && !mode.mapped ? 6 : 4;
  for (int i = 0; i < 20; i++) {
    int peer = remote("connect %d %d", version, port_of(server));
    until(server, POLLIN);
    fds[i] = accept(server, NULL, NULL);
    change(epoll, EPOLL_CTL_ADD, fds[i], EPOLLIN, i);
    if (i % 2) peer_sends(peer, 10);
  }
  for (int i = 1; i < 20; i += 2) arrived(fds[i], 10);
  struct epoll_event got[4];
  // Four at a time, every one has its turn.
  for (int round = 0; round < 10; round++) {
    int n = epoll_wait(epoll, got, 4, 0);
    for (int i = 0; i < n; i++) seen |= 1 << got[i].data.u64;
  }
  line("seen %#x", seen);
  R(epoll_wait(epoll, (struct epoll_event[32]){0}, 32, 0));
}

// An instance that was closed tells nothing, nor does another that has its number.
static void closed_before_connect(void) {
  int number = remote("listen %d 5", mode.family == AF_INET6 && !mode.mapped ? 6 : 4), fd = stream();
  int first = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLOUT, .data.u32 = 1};
  socklen_t length;
  struct sockaddr_storage name = to_peer(remote("port %d", number), &length);
  R(epoll_ctl(first, EPOLL_CTL_ADD, fd, &event));
  R(close(first));
  int second = epoll_create1(0);
  YES(second == first);
  R(connect(fd, (struct sockaddr *)&name, length));
  R(epoll_wait(second, &event, 1, 100));
}

// Instances that were duplicated, or watched by another, before the program had a socket, as Tokio has them.
static void duplicated_first(void) {
  int epoll = epoll_create1(0), copy = FD(fcntl(epoll, F_DUPFD_CLOEXEC, 3));
  struct pair p = pair();
  R(add(copy, p.fd, EPOLLIN));
  peer_sends(p.peer, 10);
  look("by the other", epoll, 3000);
  R(change(epoll, EPOLL_CTL_MOD, p.fd, EPOLLOUT, 2));
  look("by the copy", copy, 0);
  R(close(copy));
  look("still", epoll, 0);
}

static void nested_first(void) {
  int inner = epoll_create1(0), outer = epoll_create1(0);
  R(add(outer, inner, EPOLLIN));
  struct pair p = pair();
  R(add(inner, p.fd, EPOLLIN));
  look("idle", outer, 0);
  peer_sends(p.peer, 10);
  look("outer", outer, 3000);
  look("inner", inner, 0);
}

const struct test epoll_cases[] = {
    {"epoll level", level, ALL},
    {"epoll edge", edge, ALL},
    {"epoll edge out", edge_out, ALL},
    {"epoll one-shot", one_shot, ALL},
    {"epoll listener", listener, FAMILIES},
    {"epoll before listen", before_listen, FAMILIES},
    {"epoll closed before connect", closed_before_connect, PASSIVE4 | PASSIVE6},
    {"epoll duplicated first", duplicated_first, BOTH},
    {"epoll nested first", nested_first, BOTH},
    {"epoll errors", errors, ALL},
    {"epoll closing", closing, ALL},
    {"epoll states", states, FAMILIES},
    {"epoll crowd", crowd, FAMILIES},
    END,
};
