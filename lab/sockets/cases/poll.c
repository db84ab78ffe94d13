// poll, ppoll.
#include "cases.h"
#include <sys/resource.h>

static uint8_t data[65536];

static void look(const char *what, int fd) {
  struct pollfd one = {.fd = fd, .events = POLLIN | POLLPRI | POLLOUT | POLLRDHUP | POLLRDNORM | POLLWRNORM};
  int n = poll(&one, 1, 0);
  line("%s: %d %s", what, n, events(one.revents));
}

static void states(void) {
  int fd = stream();
  look("fresh", fd);
  bind_own(fd, true, 0);
  look("bound", fd);
  listen(fd, 5);
  look("listening", fd);
  int udp = datagram();
  look("datagram", udp);
  struct pair p = pair();
  look("connected", p.fd);
  peer_sends(p.peer, 10);
  arrived(p.fd, 10);
  look("data", p.fd);
  recv(p.fd, data, 100, 0);
  look("read", p.fd);
  peer_sends(p.peer, 10);
  arrived(p.fd, 10);
  peer_shuts(p.peer, SHUT_WR);
  until(p.fd, POLLRDHUP);
  look("data and the end", p.fd);
  recv(p.fd, data, 100, 0);
  look("the end", p.fd);
  recv(p.fd, data, 100, 0);
  look("the end read", p.fd);
  shutdown(p.fd, SHUT_WR);
  look("both ends shut", p.fd);
  pause_ms(20);
  look("and later", p.fd);
  close(p.fd);
  look("closed", p.fd);
}

static void wakes(void) {
  struct pair p = pair();
  struct pollfd one = {.fd = p.fd, .events = POLLIN};
  remote_later(50, "send %d 10", p.peer);
  R(poll(&one, 1, 3000));
  line("poll %s", events(one.revents));
  recv(p.fd, data, 100, 0);
  R(poll(&one, 1, 30));
  remote_later(50, "shutdown %d 1", p.peer);
  R(poll(&one, 1, -1));
  line("poll %s", events(one.revents));
  one.events = 0;
  remote_later(20, "reset %d", p.peer);
  R(poll(&one, 1, 3000));
  line("poll %s", events(one.revents));
}

static void several(void) {
  struct pair p = pair(), q = pair();
  int ends[2];
  R(pipe(ends));
  struct pollfd all[] = {
      {.fd = p.fd, .events = POLLIN},   {.fd = -1, .events = POLLIN, .revents = 55},
      {.fd = q.fd, .events = POLLOUT},  {.fd = ends[0], .events = POLLIN},
      {.fd = ends[1], .events = POLLOUT}, {.fd = 900, .events = POLLIN},
      {.fd = p.fd, .events = POLLIN | POLLOUT},
  };
  R(poll(all, 7, 0));
  for (int i = 0; i < 7; i++) line("%d: %s", i, events(all[i].revents));
  peer_sends(p.peer, 5);
  arrived(p.fd, 5);
  R(write(ends[1], "x", 1));
  R(poll(all, 7, 1000));
  for (int i = 0; i < 7; i++) line("%d: %s", i, events(all[i].revents));
  struct pollfd two[] = {{.fd = q.fd, .events = POLLIN}, {.fd = ends[0], .events = POLLIN}};
  read(ends[0], data, 10);
  remote_later(40, "send %d 5", q.peer);
  R(poll(two, 2, 3000));
  line("%s %s", events(two[0].revents), events(two[1].revents));
  recv(q.fd, data, 10, 0);
  // Kernel and stack in one wait: the pipe wakes it.
  if (fork() == 0) {
    usleep(40000);
    _exit(write(ends[1], "y", 1) != 1);
  }
  R(poll(two, 2, 3000));
  line("%s %s", events(two[0].revents), events(two[1].revents));
  wait(NULL);
}

static void odd(void) {
  struct pair p = pair();
  struct pollfd one = {.fd = p.fd, .events = POLLIN};
  R(poll(NULL, 0, 10));
  R(poll(&one, 100000000, 0));
  R(poll((void *)8, 1, 0));
  one.events = 0;
  R(poll(&one, 1, 0));
  line("poll %s", events(one.revents));
  struct timespec limit = {.tv_nsec = 10000000};
  one.events = POLLIN;
  R(ppoll(&one, 1, &limit, NULL));
  limit.tv_nsec = -1;
  R(ppoll(&one, 1, &limit, NULL));
  limit.tv_nsec = 1000000000;
  R(ppoll(&one, 1, &limit, NULL));
  // More than the process may have open.
  static struct pollfd many[2001];
  struct rlimit files = {2000, 2000};
  for (int i = 0; i < 2001; i++) many[i] = (struct pollfd){.fd = p.fd, .events = POLLIN};
  R(setrlimit(RLIMIT_NOFILE, &files));
  R(poll(many, 2000, 0));
  R(poll(many, 2001, 0));
}

// A signal that only ppoll lets through.
static void masked(void) {
  struct pair p = pair();
  sigset_t all, none;
  sigfillset(&all);
  sigemptyset(&none);
  catch_signal(SIGUSR1, 0);
  sigprocmask(SIG_BLOCK, &all, NULL);
  raise(SIGUSR1);
  struct pollfd one = {.fd = p.fd, .events = POLLIN};
  struct timespec limit = {.tv_sec = 2};
  R(poll(&one, 1, 20));
  line("signals %d", (int)signals);
  R(ppoll(&one, 1, &limit, &none));
  line("signals %d", (int)signals);
  raise(SIGUSR1);
  limit = (struct timespec){.tv_nsec = 20000000};
  R(ppoll(&one, 1, &limit, &all));
  line("signals %d", (int)signals);
}

// Bytes move while this process waits for something else.
static void progress(void) {
  struct pair p = pair();
  int ends[2], status;
  R(pipe(ends));
  line("sent %d", send_all(p.fd, 60000, 0));
  pid_t child = fork();
  if (child == 0) {
    usleep(100000);
    _exit(write(ends[1], "z", 1) != 1);
  }
  remote_later(0, "read %d 59999", p.peer);
  R(read(ends[0], data, 1));
  waitpid(child, &status, 0);
  peer_reads(p.peer, 1);
}

const struct test poll_cases[] = {
    {"poll states", states, ALL},
    {"poll wakes", wakes, ALL},
    {"poll several", several, ALL},
    {"poll odd", odd, BOTH},
    {"ppoll masks", masked, BOTH},
    {"progress while reading a pipe", progress, BOTH},
    END,
};
