// select, pselect.
#include "cases.h"
#include <sys/resource.h>
#include <sys/select.h>

static uint8_t data[4096];

static void look(const char *what, int fd, int milliseconds) {
  fd_set in, out, special;
  FD_ZERO(&in);
  FD_ZERO(&out);
  FD_ZERO(&special);
  FD_SET(fd, &in);
  FD_SET(fd, &out);
  FD_SET(fd, &special);
  struct timeval limit = {.tv_usec = milliseconds * 1000};
  int n = select(fd + 1, &in, &out, &special, &limit);
  if (n < 0)
    line("%s: %s", what, error_name(errno));
  else
    line("%s: %d%s%s%s", what, n, FD_ISSET(fd, &in) ? " in" : "", FD_ISSET(fd, &out) ? " out" : "",
         FD_ISSET(fd, &special) ? " special" : "");
}

static void states(void) {
  int fd = stream();
  look("fresh", fd, 0);
  int server = listening(5);
  look("listening", server, 0);
  struct pair p = pair();
  look("connected", p.fd, 0);
  peer_sends(p.peer, 10);
  arrived(p.fd, 10);
  look("data", p.fd, 0);
  remote("urgent %d", p.peer);
  until(p.fd, POLLPRI);
  look("urgent", p.fd, 0);
  recv(p.fd, data, 100, 0);
  recv(p.fd, data, 1, MSG_OOB);
  peer_shuts(p.peer, SHUT_WR);
  until(p.fd, POLLRDHUP);
  recv(p.fd, data, 100, 0);
  look("the end", p.fd, 0);
  peer_resets(p.peer);
  shutdown(p.fd, SHUT_WR);
  pause_ms(20);
  look("reset", p.fd, 0);
  close(p.fd);
  look("closed", p.fd, 0);
}

static void wakes(void) {
  struct pair p = pair();
  fd_set in;
  FD_ZERO(&in);
  FD_SET(p.fd, &in);
  struct timeval limit = {.tv_sec = 3};
  remote_later(50, "send %d 10", p.peer);
  R(select(p.fd + 1, &in, NULL, NULL, &limit));
  YES(FD_ISSET(p.fd, &in));
  YES(limit.tv_sec < 3 && limit.tv_sec >= 1);
  recv(p.fd, data, 100, 0);
  limit = (struct timeval){.tv_usec = 30000};
  R(select(p.fd + 1, &in, NULL, NULL, &limit));
  YES(FD_ISSET(p.fd, &in));
  line("left %ld", (long)limit.tv_usec);
  FD_SET(p.fd, &in);
  remote_later(30, "close %d", p.peer);
  R(select(p.fd + 1, &in, NULL, NULL, NULL));
  int ends[2];
  R(pipe(ends));
  R(write(ends[1], "x", 1));
  struct pair q = pair();
  FD_ZERO(&in);
  FD_SET(q.fd, &in);
  FD_SET(ends[0], &in);
  int most = (q.fd > ends[0] ? q.fd : ends[0]) + 1;
  R(select(most, &in, NULL, NULL, NULL));
  YES(FD_ISSET(ends[0], &in) && !FD_ISSET(q.fd, &in));
}

static void odd(void) {
  struct pair p = pair();
  fd_set in;
  FD_ZERO(&in);
  FD_SET(p.fd, &in);
  struct timeval limit = {0};
  R(select(-1, &in, NULL, NULL, &limit));
  R(select(0, NULL, NULL, NULL, &limit));
  R(select(p.fd, &in, NULL, NULL, &limit));
  FD_SET(p.fd, &in);
  limit.tv_usec = -1;
  R(select(p.fd + 1, &in, NULL, NULL, &limit));
  limit = (struct timeval){.tv_usec = 2000000};
  FD_ZERO(&in);
  FD_SET(60, &in);
  R(select(61, &in, NULL, NULL, &limit));
  // Microseconds for more than a second, as many programs have them.
  peer_sends(p.peer, 5);
  arrived(p.fd, 5);
  limit = (struct timeval){.tv_usec = 3000000};
  FD_ZERO(&in);
  FD_SET(p.fd, &in);
  R(select(p.fd + 1, &in, NULL, NULL, &limit));
  line("left %ld s and more", (long)limit.tv_sec);
  recv(p.fd, data, 10, 0);
  sigset_t none;
  sigemptyset(&none);
  struct timespec time = {.tv_nsec = 10000000};
  FD_ZERO(&in);
  FD_SET(p.fd, &in);
  R(pselect(p.fd + 1, &in, NULL, NULL, &time, &none));
  line("left %ld", time.tv_nsec);
  time.tv_nsec = 1000000000;
  R(pselect(p.fd + 1, &in, NULL, NULL, &time, NULL));
  sigset_t all;
  sigfillset(&all);
  catch_signal(SIGUSR1, 0);
  sigprocmask(SIG_BLOCK, &all, NULL);
  raise(SIGUSR1);
  time = (struct timespec){.tv_sec = 2};
  R(pselect(p.fd + 1, &in, NULL, NULL, &time, &none));
  line("signals %d", (int)signals);
  R(select(p.fd + 1, (fd_set *)8, NULL, NULL, &limit));
  R(select(p.fd + 1, &in, NULL, NULL, (struct timeval *)8));
  R(pselect(p.fd + 1, &in, NULL, NULL, (struct timespec *)8, NULL));
  // A time that cannot be written is none the worse for it.
  static const struct timeval constant = {.tv_usec = 1000};
  FD_ZERO(&in);
  FD_SET(p.fd, &in);
  R(select(p.fd + 1, &in, NULL, NULL, (struct timeval *)&constant));
}

// Sets may be longer than the type, as programs with many descriptors make them.
static void high_numbers(void) {
  enum { HIGH = 2000, WORD = 8 * sizeof(unsigned long) };
  static unsigned long in[4096 / WORD];
  fd_set *set = (fd_set *)in;
  struct rlimit files = {4096, 4096};
  struct timeval limit = {.tv_usec = 20000};
  struct pair p = pair();
  R(setrlimit(RLIMIT_NOFILE, &files));
  R(dup2(p.fd, HIGH) == HIGH);
  in[HIGH / WORD] = 1UL << HIGH % WORD;
  R(select(HIGH + 1, set, NULL, NULL, &limit));
  YES(in[HIGH / WORD] == 1UL << HIGH % WORD);
  in[HIGH / WORD] = 1UL << HIGH % WORD;
  limit = (struct timeval){.tv_sec = 3};
  remote_later(50, "send %d 10", p.peer);
  R(select(HIGH + 1, set, NULL, NULL, &limit));
  YES(in[HIGH / WORD] == 1UL << HIGH % WORD);
  R(recv(HIGH, data, 10, 0));
  // Numbers beyond all that are open.
  limit = (struct timeval){0};
  R(select(INT_MAX, set, NULL, NULL, &limit));
  in[HIGH / WORD] = 2UL << HIGH % WORD;
  R(select(HIGH + 2, set, NULL, NULL, &limit));
}

// A call that a signal has ended says how much time was left, so that whoever calls again does not begin anew.
static void interrupted(void) {
  struct pair p = pair();
  struct timeval limit = {.tv_sec = 5};
  fd_set in;
  FD_ZERO(&in);
  FD_SET(p.fd, &in);
  struct itimerval soon = {.it_value.tv_usec = 50000};
  catch_signal(SIGALRM, SA_RESTART);
  R(setitimer(ITIMER_REAL, &soon, NULL));
  R(select(p.fd + 1, &in, NULL, NULL, &limit));
  YES(limit.tv_sec < 5);
}

const struct test select_cases[] = {
    {"select states", states, ALL},
    {"select wakes", wakes, ALL},
    {"select odd", odd, BOTH},
    {"select high numbers", high_numbers, BOTH},
    {"select interrupted", interrupted, BOTH},
    END,
};
