// epoll with sockets beside what the kernel alone knows: eventfd, timerfd, signalfd, pipes, another epoll.
#include "cases.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

static uint8_t data[4096];

static int add(int epoll, int fd, uint32_t mask, uint64_t word) {
  struct epoll_event event = {.events = mask, .data.u64 = word};
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

// The words that a wait returns, as a set of bits.
static void look(const char *what, int epoll, int milliseconds) {
  struct epoll_event got[16];
  unsigned words = 0;
  int n = epoll_wait(epoll, got, 16, milliseconds);
  for (int i = 0; i < n; i++) words |= 1u << got[i].data.u64;
  line("%s: %d, words %#x%s%s", what, n, words, n < 0 ? " " : "", n < 0 ? error_name(errno) : "");
}

static void company(void) {
  struct pair p = pair();
  int epoll = epoll_create1(0), event = eventfd(0, EFD_NONBLOCK), timer = timerfd_create(CLOCK_MONOTONIC, 0), ends[2];
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigprocmask(SIG_BLOCK, &set, NULL);
  int signal_fd = signalfd(-1, &set, SFD_NONBLOCK);
  R(pipe(ends));
  R(add(epoll, p.fd, EPOLLIN, 1));
  R(add(epoll, event, EPOLLIN, 2));
  R(add(epoll, timer, EPOLLIN, 3));
  R(add(epoll, signal_fd, EPOLLIN, 4));
  R(add(epoll, ends[0], EPOLLIN, 5));
  look("idle", epoll, 10);
  uint64_t one = 1;
  R(write(event, &one, 8));
  look("eventfd", epoll, 1000);
  R(read(event, &one, 8));
  struct itimerspec when = {.it_value = {.tv_nsec = 30000000}};
  R(timerfd_settime(timer, 0, &when, NULL));
  look("timerfd", epoll, 3000);
  R(read(timer, &one, 8));
  raise(SIGUSR1);
  look("signalfd", epoll, 1000);
  struct signalfd_siginfo info;
  YES(read(signal_fd, &info, sizeof info) == sizeof info);
  R(write(ends[1], "x", 1));
  look("pipe", epoll, 1000);
  peer_sends(p.peer, 5);
  arrived(p.fd, 5);
  look("pipe and socket", epoll, 1000);
  R(read(ends[0], data, 10));
  look("socket", epoll, 1000);
  recv(p.fd, data, 10, 0);
  look("idle again", epoll, 10);
  remote_later(30, "send %d 5", p.peer);
  look("data wakes it", epoll, 3000);
  recv(p.fd, data, 10, 0);
  if (fork() == 0) {
    usleep(30000);
    _exit(write(ends[1], "y", 1) != 1);
  }
  look("the pipe wakes it", epoll, 3000);
  wait(NULL);
}

// An epoll in another, and in poll and select.
static void nested(void) {
  struct pair p = pair();
  int inner = epoll_create1(0), outer = epoll_create1(0);
  R(add(inner, p.fd, EPOLLIN, 1));
  R(add(outer, inner, EPOLLIN, 2));
  look("idle", outer, 0);
  remote_later(30, "send %d 5", p.peer);
  look("outer", outer, 3000);
  look("inner", inner, 0);
  struct pollfd one = {.fd = inner, .events = POLLIN | POLLOUT};
  R(poll(&one, 1, 0));
  line("poll %s", events(one.revents));
  fd_set in;
  FD_ZERO(&in);
  FD_SET(inner, &in);
  struct timeval now = {0};
  R(select(inner + 1, &in, NULL, NULL, &now));
  recv(p.fd, data, 10, 0);
  look("outer, read", outer, 0);
  R(poll(&one, 1, 0));
  R(add(inner, outer, EPOLLIN, 3));
  remote_later(30, "send %d 5", p.peer);
  R(poll(&one, 1, 3000));
  R(close(inner));
  look("inner closed", outer, 0);
}

static void waits(void) {
  struct pair p = pair();
  int epoll = epoll_create1(0);
  struct epoll_event event;
  add(epoll, p.fd, EPOLLIN, 1);
  R(epoll_wait(epoll, &event, 1, 20));
  sigset_t all, none;
  sigfillset(&all);
  sigemptyset(&none);
  catch_signal(SIGUSR1, 0);
  sigprocmask(SIG_BLOCK, &all, NULL);
  raise(SIGUSR1);
  R(epoll_wait(epoll, &event, 1, 20));
  R(epoll_pwait(epoll, &event, 1, 2000, &none));
  line("signals %d", (int)signals);
  struct timespec limit = {.tv_nsec = 20000000};
  R(epoll_pwait2(epoll, &event, 1, &limit, &all));
  limit.tv_nsec = -1;
  R(epoll_pwait2(epoll, &event, 1, &limit, NULL));
  R(epoll_pwait2(epoll, &event, 1, (struct timespec *)8, NULL));
  remote_later(20, "send %d 5", p.peer);
  R(epoll_pwait2(epoll, &event, 1, NULL, NULL));
  remote_later(0, "nothing");
  recv(p.fd, data, 10, 0);
  remote_later(30, "send %d 5", p.peer);
  R(epoll_wait(epoll, &event, 1, -1));
}

// A child shares its parent's epoll.
static void inherited(void) {
  int server = listening(5), epoll = epoll_create1(0), status = 0;
  int version = mode.family == AF_INET6 && !mode.mapped ? 6 : 4;
  nonblocking(server);
  R(add(epoll, server, EPOLLIN, 1));
  pid_t child = fork();
  if (child == 0) {
    look("in the child", epoll, 3000);
    int fd = accept(server, NULL, NULL);
    _exit(fd < 0 || send(fd, "child", 5, 0) != 5);
  }
  int peer = remote("connect %d %d", version, port_of(server));
  waitpid(child, &status, 0);
  line("status %d", status);
  peer_reads(peer, 5);
}

static void copies(void) {
  struct pair p = pair();
  int epoll = epoll_create1(0), copy = dup(epoll);
  R(add(copy, p.fd, EPOLLIN, 1));
  peer_sends(p.peer, 5);
  look("through the first", epoll, 2000);
  R(close(epoll));
  look("through the copy", copy, 2000);
  R(fcntl(copy, F_SETFD, FD_CLOEXEC));
  int another = fcntl(copy, F_DUPFD, 60);
  R(close(copy));
  look("through another", another, 1000);
}

const struct test mixed_epoll_cases[] = {
    {"epoll company", company, ALL},
    {"epoll nested", nested, ALL},
    {"epoll waits", waits, BOTH},
    {"epoll inherited", inherited, FAMILIES},
    {"epoll copies", copies, BOTH},
    END,
};
