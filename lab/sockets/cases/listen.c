// listen, accept, accept4.
#include "cases.h"

static int version(void) { return mode.family == AF_INET6 && !mode.mapped ? 6 : 4; }
static int peer_connects(int server) { return remote("connect %d %d", version(), port_of(server)); }

static void accept_plain(void) {
  int server = listening(5);
  int peer = peer_connects(server);
  line("poll %s", events(until(server, POLLIN | POLLOUT)));
  struct sockaddr_storage name;
  socklen_t length = sizeof name;
  int fd = FD(accept(server, (struct sockaddr *)&name, &length));
  address("from", &name, length);
  YES(((struct sockaddr_in *)&name)->sin_port == htons(remote("port %d", peer)));
  R(fcntl(fd, F_GETFL));
  R(fcntl(fd, F_GETFD));
  peer_sends(peer, 5);
  char data[8];
  R(recv(fd, data, sizeof data, 0));
  bytes("received", data, 5);
}

static void accept_flags(void) {
  int server = listening(5);
  nonblocking(server);
  FD(accept(server, NULL, NULL));
  static const int flags[] = {0, SOCK_NONBLOCK, SOCK_CLOEXEC, SOCK_NONBLOCK | SOCK_CLOEXEC};
  for (int i = 0; i < 4; i++) {
    peer_connects(server);
    until(server, POLLIN);
    int fd = FD(accept4(server, NULL, NULL, flags[i]));
    R(fcntl(fd, F_GETFL));
    R(fcntl(fd, F_GETFD));
  }
  peer_connects(server);
  until(server, POLLIN);
  FD(accept4(server, NULL, NULL, 1));
  FD(accept(server, NULL, NULL));
}

static void accept_lengths(void) {
  int server = listening(5);
  for (int given = 0; given < 20; given += 6) {
    peer_connects(server);
    until(server, POLLIN);
    struct sockaddr_storage name = {0};
    socklen_t length = given;
    FD(accept(server, (struct sockaddr *)&name, &length));
    line("given %d, length %d", given, (int)length);
  }
  peer_connects(server);
  until(server, POLLIN);
  struct sockaddr_storage name;
  socklen_t length = -1;
  FD(accept(server, (struct sockaddr *)&name, &length));
}

static void accept_wrong(void) {
  FD(accept(-1, NULL, NULL));
  FD(accept(STDOUT_FILENO, NULL, NULL));
  FD(accept(stream(), NULL, NULL));
  FD(accept(datagram(), NULL, NULL));
  struct pair p = pair();
  FD(accept(p.fd, NULL, NULL));
  R(listen(-1, 5));
  R(listen(STDOUT_FILENO, 5));
  R(listen(datagram(), 5));
  R(listen(p.fd, 5));
}

static void listener_calls(void) {
  int server = listening(5);
  char byte;
  R(recv(server, &byte, 1, MSG_DONTWAIT));
  R(read(server, &byte, 1));
  R(send(server, "x", 1, MSG_NOSIGNAL));
  R(listen(server, 10));
  R(listen(server, 0));
  R(listen(server, -1));
  int value = -1;
  socklen_t length = sizeof value;
  R(getsockopt(server, SOL_SOCKET, SO_ACCEPTCONN, &value, &length));
  line("SO_ACCEPTCONN %d", value);
  R(ioctl(server, FIONREAD, &value));
  struct pollfd one = {.fd = server, .events = POLLIN | POLLOUT};
  R(poll(&one, 1, 0));
  line("poll %s", events(one.revents));
  R(shutdown(server, SHUT_WR));
  R(poll(&one, 1, 0));
  R(shutdown(server, SHUT_RD));
  R(poll(&one, 1, 0));
  line("poll %s", events(one.revents));
  FD(accept(server, NULL, NULL));
  R(listen(server, 5));
  peer_connects(server);
  until(server, POLLIN);
  FD(accept(server, NULL, NULL));
}

// Connections that came, were used and given up before anyone accepted them.
static void accept_late(void) {
  int server = listening(5);
  int sent = peer_connects(server), closed = peer_connects(server), reset = peer_connects(server);
  peer_sends(sent, 10);
  peer_closes(closed);
  peer_resets(reset);
  pause_ms(50);
  char data[16];
  for (int i = 0; i < 3; i++) {
    struct sockaddr_storage name;
    socklen_t length = sizeof name;
    int fd = FD(accept4(server, (struct sockaddr *)&name, &length, SOCK_NONBLOCK));
    if (fd < 0) break;
    address("from", &name, length);
    pause_ms(20);
    R(recv(fd, data, sizeof data, 0));
    R(recv(fd, data, sizeof data, 0));
    length = sizeof name;
    R(getpeername(fd, (struct sockaddr *)&name, &length));
  }
}

static void listener_closed(void) {
  int server = listening(5), port = port_of(server);
  int waiting = peer_connects(server);
  until(server, POLLIN);
  R(close(server));
  peer_reads(waiting, 1);
  line("connect after the close: %d", remote("connect %d %d", version(), port));
  server = stream();
  YES(bind_own(server, true, port) == port);
  line("errno %s", error_name(errno));
}

// Of two sockets that share a port, the one that stays gets all connections.
static void twin_closed(void) {
  int twins[2], port = 0, on = 1;
  for (int i = 0; i < 2; i++) {
    twins[i] = stream();
    R(setsockopt(twins[i], SOL_SOCKET, SO_REUSEPORT, &on, sizeof on));
    port = bind_own(twins[i], true, port);
    R(listen(twins[i], 5));
    nonblocking(twins[i]);
    FD(accept(twins[i], NULL, NULL));
  }
  R(close(twins[0]));
  for (int i = 0; i < 4; i++) {
    YES(remote("connect %d %d", version(), port) >= 0);
    until(twins[1], POLLIN);
    FD(accept(twins[1], NULL, NULL));
  }
}

// What is bound to a device gets what comes from there, and no other.
static void of_a_device(void) {
  int server = stream();
  R(setsockopt(server, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3));
  int port = bind_own(server, true, 0);
  R(listen(server, 5));
  nonblocking(server);
  FD(accept(server, NULL, NULL));
  line("connect from elsewhere: %d", remote("connect %d %d", version(), port));
  FD(accept(server, NULL, NULL));
}

// The same when it listens already, and when it is free again.
static void of_a_device_later(void) {
  int server = listening(5), port = port_of(server);
  R(setsockopt(server, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3));
  nonblocking(server);
  line("connect from elsewhere: %d", remote("connect %d %d", version(), port));
  FD(accept(server, NULL, NULL));
  R(setsockopt(server, SOL_SOCKET, SO_BINDTODEVICE, "", 0));
  FD(accept(server, NULL, NULL));
  YES(remote("connect %d %d", version(), port) >= 0);
  until(server, POLLIN);
  FD(accept(server, NULL, NULL));
}

// A server that wants its peers to be near is not reached from afar.
static void of_near_peers(void) {
  int server = listening(5), least = 255;
  struct pollfd one = {.fd = server, .events = POLLIN};
  R(setsockopt(server, IPPROTO_IP, IP_MINTTL, &least, sizeof least));
  remote_later(0, "connect %d %d", version(), port_of(server));
  R(poll(&one, 1, 300));
}

// Options of the listener that its connections have from the start.
static void inherited(void) {
  int server = stream(), on = 1, small = 30000, idle = 77;
  struct linger linger = {.l_onoff = 1, .l_linger = 7};
  setsockopt(server, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(server, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  setsockopt(server, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
  setsockopt(server, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  setsockopt(server, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
  bind_own(server, true, 0);
  listen(server, 5);
  peer_connects(server);
  until(server, POLLIN);
  int fd = accept(server, NULL, NULL);
  static const struct { int level, option; const char *name; } options[] = {
      {SOL_SOCKET, SO_KEEPALIVE, "SO_KEEPALIVE"},   {IPPROTO_TCP, TCP_NODELAY, "TCP_NODELAY"},
      {IPPROTO_TCP, TCP_KEEPIDLE, "TCP_KEEPIDLE"},  {SOL_SOCKET, SO_SNDBUF, "SO_SNDBUF"},
      {SOL_SOCKET, SO_RCVBUF, "SO_RCVBUF"},         {SOL_SOCKET, SO_REUSEADDR, "SO_REUSEADDR"},
      {SOL_SOCKET, SO_LINGER, "SO_LINGER"},         {SOL_SOCKET, SO_ACCEPTCONN, "SO_ACCEPTCONN"},
  };
  for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
    int value[2] = {-1, -1};
    socklen_t length = sizeof value;
    int got = getsockopt(fd, options[i].level, options[i].option, value, &length);
    line("%s: %d, %d %d length %u", options[i].name, got, value[0], length > 4 ? value[1] : 0, length);
  }
}

static void backlog(void) {
  int server = listening(1);
  int first = peer_connects(server), second = peer_connects(server);
  YES(first >= 0 && second >= 0);
  until(server, POLLIN);
  FD(accept(server, NULL, NULL));
  FD(accept(server, NULL, NULL));
  nonblocking(server);
  FD(accept(server, NULL, NULL));
}

static void deferred(void) {
  int server = stream(), seconds = 5;
  R(setsockopt(server, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof seconds));
  bind_own(server, true, 0);
  listen(server, 5);
  nonblocking(server);
  int peer = peer_connects(server);
  pause_ms(50);
  FD(accept(server, NULL, NULL));
  peer_sends(peer, 5);
  line("poll %s", events(until(server, POLLIN)));
  int fd = FD(accept(server, NULL, NULL));
  char data[8];
  R(recv(fd, data, sizeof data, MSG_DONTWAIT));
  R(send(fd, "answer", 6, 0));
  peer_reads(peer, 6);
}

static void accept_waits(void) {
  int server = listening(5);
  remote_later(60, "connect %d %d", version(), port_of(server));
  FD(accept(server, NULL, NULL));
  struct timeval limit = {.tv_usec = 50000};
  R(setsockopt(server, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
  FD(accept(server, NULL, NULL));
}

// Whoever has forked does not leave all that it opens to its children.
static void after_a_fork(void) {
  int first = listening(5);
  pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, NULL, 0);
  int server = listening(5);
  remote_later(0, "connect %d %d", version(), port_of(server));
  // The stack runs, and the application does not accept yet.
  pause_ms(100);
  // A SYN is repeated after a second.
  struct pollfd one = {.fd = server, .events = POLLIN};
  R(poll(&one, 1, 700));
  FD(accept(server, NULL, NULL));
  R(close(first));
}

const struct test listen_cases[] = {
    {"accept", accept_plain, FAMILIES},
    {"accept flags", accept_flags, FAMILIES},
    {"accept lengths", accept_lengths, FAMILIES},
    {"accept wrong", accept_wrong, BOTH},
    {"accept late", accept_late, FAMILIES},
    {"accept waits", accept_waits, FAMILIES},
    {"listener calls", listener_calls, FAMILIES},
    {"listener closed", listener_closed, FAMILIES},
    {"listener with a twin closed", twin_closed, FAMILIES},
    {"listener of a device", of_a_device, FAMILIES},
    {"listener of a device later", of_a_device_later, FAMILIES},
    {"listener of near peers", of_near_peers, PASSIVE4},
    {"listener backlog", backlog, PASSIVE4 | PASSIVE6},
    {"listener inherited", inherited, FAMILIES},
    {"listener deferred", deferred, FAMILIES},
    {"listener after a fork", after_a_fork, FAMILIES},
    END,
};
