// Children that have a listener of their parent's, which is a client of theirs.
#include "children.h"
#include <sys/epoll.h>
#include <sys/select.h>

static uint8_t data[4096];

// A client of the same process comes before the child that is to serve it.
static void child_accepts_late(void) {
  int server = listening(5);
  socklen_t length;
  struct sockaddr_storage name = to_own(port_of(server), &length);
  pid_t child = fork();
  if (child == 0) {
    pause_ms(100);
    _exit(serve_one(server, "child"));
  }
  int own = stream();
  R(connect(own, (struct sockaddr *)&name, length));
  R(recv(own, data, 5, MSG_WAITALL));
  R(send(own, "parent", 6, 0));
  R(recv(own, data, 6, MSG_WAITALL));
  R(close(own));
  ended(child);
}

// It waits in another call before it accepts, and has the listener alone.
static void child_waits(int how) {
  int server = listening(5);
  socklen_t length;
  struct sockaddr_storage name = to_own(port_of(server), &length);
  pid_t child = fork();
  if (child == 0) {
    struct pollfd one = {.fd = server, .events = POLLIN};
    struct epoll_event event = {.events = EPOLLIN};
    int epoll = epoll_create1(0);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(server, &set);
    epoll_ctl(epoll, EPOLL_CTL_ADD, server, &event);
    int ready = how == 0   ? poll(&one, 1, -1)
                : how == 1 ? select(server + 1, &set, NULL, NULL, NULL)
                           : epoll_wait(epoll, &event, 1, -1);
    _exit(ready == 1 ? serve_one(server, "child") : 50);
  }
  R(close(server));
  int own = stream();
  R(connect(own, (struct sockaddr *)&name, length));
  R(recv(own, data, 5, MSG_WAITALL));
  R(close(own));
  ended(child);
}
static void child_polls(void) { child_waits(0); }
static void child_selects(void) { child_waits(1); }
static void child_waits_by_epoll(void) { child_waits(2); }

const struct test heir_cases[] = {
    {"fork, child accepts late", child_accepts_late, FAMILIES},
    {"fork, child polls", child_polls, FAMILIES},
    {"fork, child selects", child_selects, FAMILIES},
    {"fork, child waits by epoll", child_waits_by_epoll, FAMILIES},
    END,
};
