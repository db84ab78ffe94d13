// connect: blocking, non-blocking, refused, twice.
#include "cases.h"
#include <sys/epoll.h>

static int to(int fd, int port) {
  socklen_t length;
  struct sockaddr_storage name = to_peer(port, &length);
  return connect(fd, (struct sockaddr *)&name, length);
}

// An address of the link that nobody has.
static int to_nobody(int fd) {
  socklen_t length;
  struct sockaddr_storage name = to_peer(80, &length);
  if (mode.family == AF_INET) ((uint8_t *)&((struct sockaddr_in *)&name)->sin_addr)[3] = 77;
  if (mode.family == AF_INET6) ((struct sockaddr_in6 *)&name)->sin6_addr.s6_addr[15] = 77;
  return connect(fd, (struct sockaddr *)&name, length);
}

static int error_of(int fd) {
  int error = -1;
  socklen_t length = sizeof error;
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

static int peer_listener(int *number) {
  *number = remote("listen %d 16", mode.family == AF_INET6 && !mode.mapped ? 6 : 4);
  return remote("port %d", *number);
}

static void refused(void) {
  int fd = stream(), port = closed_port(SOCK_STREAM);
  R(to(fd, port));
  line("SO_ERROR %s", error_name(error_of(fd)));
  line("poll %s", events(until(fd, POLLOUT)));
  R(send(fd, "x", 1, MSG_NOSIGNAL));
  char byte;
  R(recv(fd, &byte, 1, MSG_DONTWAIT));
  int number;
  port = peer_listener(&number);
  R(to(fd, port));
  R(send(fd, "x", 1, MSG_NOSIGNAL));
}

static void refused_later(void) {
  int fd = stream(), port = closed_port(SOCK_STREAM);
  nonblocking(fd);
  R(to(fd, port));
  line("poll %s", events(until(fd, POLLOUT)));
  line("SO_ERROR %s", error_name(error_of(fd)));
  line("SO_ERROR %s", error_name(error_of(fd)));
  line("poll %s", events(until(fd, POLLOUT)));
  R(to(fd, port));
  line("poll %s", events(until(fd, POLLHUP)));
  R(to(fd, port));
  int epoll = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP};
  int other = stream();
  nonblocking(other);
  R(to(other, port));
  R(epoll_ctl(epoll, EPOLL_CTL_ADD, other, &event));
  until(other, POLLERR);
  R(epoll_wait(epoll, &event, 1, 1000));
  line("epoll %s", events(event.events));
  char byte;
  R(recv(other, &byte, 1, 0));
  R(recv(other, &byte, 1, 0));
}

static void later(void) {
  int number, fd = stream(), port = peer_listener(&number);
  nonblocking(fd);
  R(to(fd, port));
  line("poll %s", events(until(fd, POLLOUT)));
  line("SO_ERROR %s", error_name(error_of(fd)));
  R(to(fd, port));
  R(to(fd, port));
  int peer = remote("accept %d", number);
  R(send(fd, "hello", 5, 0));
  peer_reads(peer, 5);
}

static void under_way(void) {
  int fd = stream();
  char byte;
  nonblocking(fd);
  R(to_nobody(fd));
  R(to_nobody(fd));
  struct pollfd one = {.fd = fd, .events = POLLIN | POLLOUT};
  R(poll(&one, 1, 20));
  line("poll %s", events(one.revents));
  line("SO_ERROR %s", error_name(error_of(fd)));
  R(send(fd, "x", 1, MSG_NOSIGNAL));
  R(recv(fd, &byte, 1, 0));
  R(listen(fd, 5));
  struct sockaddr_storage name;
  socklen_t length = sizeof name;
  R(getpeername(fd, (struct sockaddr *)&name, &length));
  length = sizeof name;
  R(getsockname(fd, (struct sockaddr *)&name, &length));
  address("own name", &name, length);
  R(shutdown(fd, SHUT_WR));
  R(close(fd));
}

static void timed_out(void) {
  // SO_SNDTIMEO is connect's time limit too.
  int fd = stream();
  struct timeval limit = {.tv_usec = 60000};
  R(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit));
  R(to_nobody(fd));
  R(to_nobody(fd));
}

static void unreachable(void) {
  int fd = stream();
  R(to_nobody(fd));
  line("poll %s", events(until(fd, POLLOUT)));
}

static void twice(void) {
  struct pair p = pair();
  int number, port = peer_listener(&number);
  R(to(p.fd, port));
  nonblocking(p.fd);
  R(to(p.fd, port));
  R(listen(p.fd, 5));
  YES(bind_own(p.fd, true, 0) > 0);
  line("errno %s", error_name(errno));
  int fd = listening(5);
  R(to(fd, port));
}

static void bad(void) {
  int fd = stream();
  socklen_t length;
  struct sockaddr_storage name = to_peer(80, &length);
  struct sockaddr *any = (struct sockaddr *)&name;
  R(connect(fd, any, 0));
  R(connect(fd, any, 1));
  R(connect(fd, any, 8));
  R(connect(fd, any, 4096));
  R(connect(fd, NULL, length));
  R(connect(-1, any, length));
  R(connect(STDOUT_FILENO, any, length));
  any->sa_family = AF_UNSPEC;
  R(connect(fd, any, length));
  any->sa_family = AF_UNIX;
  R(connect(fd, any, length));
  any->sa_family = mode.family == AF_INET ? AF_INET6 : AF_INET;
  R(connect(fd, any, length));
}

// AF_UNSPEC dissolves a connection; the socket can be used again.
static void dissolved(void) {
  struct pair p = pair();
  struct sockaddr any = {.sa_family = AF_UNSPEC};
  R(connect(p.fd, &any, sizeof any));
  peer_reads(p.peer, 1);
  struct sockaddr_storage name;
  socklen_t length = sizeof name;
  R(getpeername(p.fd, (struct sockaddr *)&name, &length));
  R(send(p.fd, "x", 1, MSG_NOSIGNAL));
  int number, port = peer_listener(&number);
  R(to(p.fd, port));
  R(send(p.fd, "again", 5, MSG_NOSIGNAL));
  peer_reads(remote("accept %d", number), 5);
}

static void bound_first(void) {
  int number, port = peer_listener(&number), fd = stream();
  int own = bind_own(fd, false, 0);
  R(to(fd, port));
  YES(port_of(fd) == own);
  R(send(fd, "hello", 5, 0));
  peer_reads(remote("accept %d", number), 5);
}

// What was shut down before stays so, and nothing is sent for it.
static void shut_before(void) {
  for (int how = SHUT_RD; how <= SHUT_RDWR; how++) {
    int number, port = peer_listener(&number), fd = stream();
    char text[16];
    R(shutdown(fd, how));
    R(to(fd, port));
    int peer = remote("accept %d", number);
    struct pollfd one = {.fd = fd, .events = POLLIN | POLLOUT | POLLRDHUP};
    poll(&one, 1, 0);
    line("poll %s", events(one.revents));
    R(send(fd, "hello", 5, MSG_NOSIGNAL));
    peer_sends(peer, 5);
    arrived(fd, 5);
    R(recv(fd, text, sizeof text, MSG_DONTWAIT));
    R(recv(fd, text, sizeof text, MSG_DONTWAIT));
    R(shutdown(fd, SHUT_WR));
    peer_reads(peer, 10);
  }
}

// MSG_FASTOPEN connects and sends in one, here without a cookie.
static void by_sending(void) {
  for (int waits = 1; waits >= 0; waits--) {
    int number, port = peer_listener(&number), fd = stream();
    socklen_t length;
    struct sockaddr_storage name = to_peer(port, &length);
    if (!waits) nonblocking(fd);
    R(sendto(fd, "hello", 5, MSG_FASTOPEN, (struct sockaddr *)&name, length));
    line("poll %s", events(until(fd, POLLOUT)));
    R(send(fd, "again", 5, 0));
    peer_reads(remote("accept %d", number), waits ? 10 : 5);
  }
}

// TCP_FASTOPEN_CONNECT: without a cookie, connect is as ever; where none is needed, it waits for the first data.
static void by_first_data(void) {
  for (int freely = 0; freely <= 1; freely++) {
    int number, port = peer_listener(&number), fd = stream(), on = 1, value = -1;
    socklen_t length = sizeof value;
    R(setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof on));
    if (freely) R(setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, &on, sizeof on));
    R(to(fd, port));
    R(getsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &value, &length));
    line("TCP_FASTOPEN_CONNECT %d", value);
    line("poll %s", events(until(fd, POLLOUT)));
    // One that waits for data would be waited for, on the kernel for ever.
    if (!freely) R(to(fd, port));
    R(send(fd, "first", 5, 0));
    int peer = remote("accept %d", number);
    peer_reads(peer, 5);
    R(send(fd, "second", 6, 0));
    peer_reads(peer, 6);
    peer_sends(peer, 10);
    char data[16];
    R(recv(fd, data, 10, MSG_WAITALL));
    R(setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof on));
  }
}

// Many connections one after the other, all with ports of their own.
static void many(void) {
  int number, port = peer_listener(&number), fds[40], same = 0;
  for (int i = 0; i < 40; i++) {
    fds[i] = stream();
    if (to(fds[i], port) < 0) line("connection %d: %s", i, error_name(errno));
    for (int j = 0; j < i; j++) same += port_of(fds[i]) == port_of(fds[j]);
    uint8_t byte = i;
    send(fds[i], &byte, 1, 0);
    peer_reads(remote("accept %d", number), 1);
  }
  YES(same == 0);
}

// To the own listener: on the wildcard, through loopback and through the own address.
static void to_self(void) {
  int server = listening(5), port = port_of(server);
  socklen_t length;
  struct sockaddr_storage loop = to_own(port, &length), own = loop;
  inet_pton(AF_INET, "127.0.0.1", &((struct sockaddr_in *)&loop)->sin_addr);
  if (mode.family == AF_INET6) ((struct sockaddr_in6 *)&loop)->sin6_addr = in6addr_loopback;
  struct sockaddr_storage *targets[] = {&loop, &own};
  for (int i = 0; i < 2; i++) {
    int fd = stream();
    char text[8] = "";
    line(i == 0 ? "by loopback" : "by the own address");
    R(connect(fd, (struct sockaddr *)targets[i], length));
    line("poll %s", events(until(server, POLLIN)));
    struct sockaddr_storage name;
    socklen_t size = sizeof name;
    int accepted = FD(accept(server, (struct sockaddr *)&name, &size));
    address("from", &name, size);
    YES(((struct sockaddr_in *)&name)->sin_port == htons(port_of(fd)));
    R(send(fd, "word", 4, 0));
    R(recv(accepted, text, sizeof text, 0));
    R(close(fd));
    R(recv(accepted, text, sizeof text, 0));
  }
}

// To the own address, at a port that nobody has.
static void to_self_refused(void) {
  int other = stream(), port = bind_own(other, false, 0), fd = stream();
  R(close(other));
  socklen_t length;
  struct sockaddr_storage name = to_own(port, &length);
  R(connect(fd, (struct sockaddr *)&name, length));
  line("poll %s", events(until(fd, POLLHUP)));
  line("SO_ERROR %s", error_name(error_of(fd)));
  int later = stream();
  nonblocking(later);
  connect(later, (struct sockaddr *)&name, length);
  line("poll %s", events(until(later, POLLHUP)));
  // And somebody has it then.
  int server = stream();
  YES(bind_own(server, false, port) == port);
  R(listen(server, 5));
  fd = stream();
  R(connect(fd, (struct sockaddr *)&name, length));
  until(server, POLLIN);
  FD(accept(server, NULL, NULL));
}

const struct test connect_cases[] = {
    {"connect refused", refused, FAMILIES},
    {"connect refused later", refused_later, FAMILIES},
    {"connect later", later, FAMILIES},
    {"connect under way", under_way, FAMILIES},
    {"connect timed out", timed_out, PASSIVE4 | PASSIVE6},
    {"connect unreachable", unreachable, FAMILIES},
    {"connect twice", twice, ALL},
    {"connect bad", bad, PASSIVE4 | PASSIVE6},
    {"connect dissolved", dissolved, BOTH},
    {"connect bound", bound_first, FAMILIES},
    {"connect shut down before", shut_before, FAMILIES},
    {"connect by sending", by_sending, PASSIVE4 | PASSIVE6},
    {"connect by first data", by_first_data, FAMILIES},
    {"connect many", many, PASSIVE4 | PASSIVE6},
    {"connect to self", to_self, PASSIVE4 | PASSIVE6},
    {"connect to self, refused", to_self_refused, FAMILIES},
    END,
};
