// The limits of a process: no descriptor left, more events than usual.
#include "cases.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/select.h>

static uint8_t data[4096];

static void may_open(unsigned files) {
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max < files) limit.rlim_max = files;
  limit.rlim_cur = files;
  R(setrlimit(RLIMIT_NOFILE, &limit));
}

// What waits needs no descriptor.
static void none_left(void) {
  struct pair p = pair();
  int epoll = epoll_create1(0), lowest = dup(STDOUT_FILENO);
  may_open(lowest + 3);
  while (dup(STDOUT_FILENO) >= 0) continue;
  line("%s", error_name(errno));
  struct epoll_event event = {.events = EPOLLIN};
  R(epoll_ctl(epoll, EPOLL_CTL_ADD, p.fd, &event));
  R(epoll_wait(epoll, &event, 1, 20));
  struct pollfd one = {.fd = p.fd, .events = POLLIN};
  R(poll(&one, 1, 20));
  remote_later(50, "send %d 10", p.peer);
  R(poll(&one, 1, 3000));
  R(epoll_wait(epoll, &event, 1, 3000));
  R(recv(p.fd, data, 10, 0));
  remote_later(50, "send %d 10", p.peer);
  R(recv(p.fd, data, 10, 0));
  R(socket(AF_INET, SOCK_STREAM, 0));
  R(dup(p.fd));
  int server = p.listener >= 0 ? p.listener : -1;
  if (server >= 0) {
    remote("connect %d %d", mode.family == AF_INET6 ? 6 : 4, p.port);
    one.fd = server;
    R(poll(&one, 1, 3000));
    R(accept(server, NULL, NULL));
    close(lowest);
    FD(accept(server, NULL, NULL));
  }
}

// A server keeps a descriptor aside, with which it turns away whom it has none for.
static void one_set_aside(void) {
  int server = listening(5), port = port_of(server), aside = dup(STDOUT_FILENO);
  R(fcntl(server, F_SETFL, O_NONBLOCK));
  may_open(aside + 3);
  while (dup(STDOUT_FILENO) >= 0) continue;
  for (int i = 0; i < 2; i++) {
    remote("connect %d %d", mode.family == AF_INET6 ? 6 : 4, port);
    until(server, POLLIN);
    R(accept(server, NULL, NULL));
    R(close(aside));
    int fd = FD(accept(server, NULL, NULL));
    R(close(fd));
    R(accept(server, NULL, NULL));
    aside = dup(STDOUT_FILENO);
    YES(aside >= 0);
  }
}

static void many_events(void) {
  enum { COUNT = 5000 };
  static struct epoll_event events[COUNT + 1];
  struct pair p = pair();
  may_open(8192);
  int epoll = epoll_create1(0);
  for (int i = 0; i < COUNT; i++) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = eventfd(1, 0)};
    if (event.data.fd < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event) < 0) line("not even %d", i);
  }
  struct epoll_event event = {.events = EPOLLIN, .data.fd = p.fd};
  R(epoll_ctl(epoll, EPOLL_CTL_ADD, p.fd, &event));
  R(epoll_wait(epoll, events, COUNT + 1, 1000));
  R(epoll_wait(epoll, events, INT_MAX, 1000));
  R(epoll_wait(epoll, events, INT_MAX / sizeof *events, 1000));
}

const struct test limit_cases[] = {
    {"no descriptor left", none_left, BOTH | PASSIVE6},
    {"one descriptor set aside", one_set_aside, PASSIVE4 | PASSIVE6},
    {"many events", many_events, PASSIVE4},
    END,
};
