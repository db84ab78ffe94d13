// Calls that do not return: threads that are cancelled, handlers that leave by siglongjmp, handlers that call what they
// interrupt.
#include "cases.h"
#include <pthread.h>
#include <setjmp.h>
#include <sys/epoll.h>
#include <sys/select.h>

// siginterrupt is old, and programs use it.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static struct pair p;
static uint8_t data[4096];
static int server;

// Each blocks for ever.
static void in_recv(void) { recv(p.fd, data, 10, 0); }
static void in_read(void) { (void)!read(p.fd, data, 10); }
static void in_recvmsg(void) {
  struct iovec part = {data, 10};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  recvmsg(p.fd, &message, 0);
}
static void in_poll(void) {
  struct pollfd one = {.fd = p.fd, .events = POLLIN};
  poll(&one, 1, -1);
}
static void in_select(void) {
  fd_set in;
  FD_ZERO(&in);
  FD_SET(p.fd, &in);
  select(p.fd + 1, &in, NULL, NULL, NULL);
}
static void in_epoll_wait(void) {
  struct epoll_event event = {.events = EPOLLIN};
  int epoll = epoll_create1(0);
  epoll_ctl(epoll, EPOLL_CTL_ADD, p.fd, &event);
  epoll_wait(epoll, &event, 1, -1);
}
static void in_splice_from(void) {
  int ends[2];
  if (pipe(ends) == 0) splice(p.fd, NULL, ends[1], NULL, 10, 0);
}
static void in_splice_to(void) {
  int ends[2];
  if (pipe(ends) == 0) splice(ends[0], NULL, p.fd, NULL, 10, 0);
}
static void in_accept(void) { accept(server, NULL, NULL); }
static void (*const blocking[])(void) = {in_recv,       in_read,        in_recvmsg,   in_poll,  in_select,
                                         in_epoll_wait, in_splice_from, in_splice_to, in_accept};
enum { KINDS = sizeof blocking / sizeof *blocking };

static void end_of_thread(void *cleaned) { *(int *)cleaned = 1; }
static void *blocks(void *kind) {
  static int cleaned[KINDS];
  pthread_cleanup_push(end_of_thread, &cleaned[(intptr_t)kind]);
  blocking[(intptr_t)kind]();
  pthread_cleanup_pop(0);
  return &cleaned[(intptr_t)kind];
}

// What works before works afterwards.
static void works(void) {
  peer_sends(p.peer, 10);
  R(recv(p.fd, data, 10, 0));
  R(send(p.fd, data, 10, 0));
  peer_reads(p.peer, 10);
}

// A thread that is cancelled in a call of this kind.
static void cancel(void *(*run)(void *), intptr_t kind) {
  pthread_t thread;
  void *left = NULL;
  pthread_create(&thread, NULL, run, (void *)kind);
  pause_ms(30);
  R(pthread_cancel(thread));
  R(pthread_join(thread, &left));
  line("%d: %s", (int)kind, left == PTHREAD_CANCELED ? "cancelled" : "returned");
}

static void cancelled(void) {
  p = pair();
  server = listening(5);
  for (intptr_t kind = 0; kind < KINDS; kind++) cancel(blocks, kind);
  works();
}

// Each goes on until there is no room.
static void in_write(void) {
  while (write(p.fd, data, sizeof data) > 0) {}
}
static void in_send(void) {
  while (send(p.fd, data, sizeof data, 0) > 0) {}
}
static void in_writev(void) {
  struct iovec part = {data, sizeof data};
  while (writev(p.fd, &part, 1) > 0) {}
}
static void (*const writing[])(void) = {in_write, in_send, in_writev};

static void *writes(void *kind) {
  writing[(intptr_t)kind]();
  return kind;
}

static void cancelled_writers(void) {
  p = pair();
  for (intptr_t kind = 0; kind < (intptr_t)(sizeof writing / sizeof *writing); kind++) cancel(writes, kind);
}

static void *accepts(void *unused) {
  in_accept();
  return unused;
}

// Peers are answered also when the only thread that waited is no more, and no other makes a call.
static void cancelled_alone(void) {
  server = listening(5);
  int port = port_of(server);
  cancel(accepts, 0);
  remote("connect %d %d", mode.family == AF_INET6 ? 6 : 4, port);
  FD(accept(server, NULL, NULL));
}

// Each returns at once, again and again.
static void peeks(void) {
  for (;;) recv(p.fd, data, 1, MSG_PEEK);
}
static void polls(void) {
  for (struct pollfd one = {.fd = p.fd, .events = POLLIN};;) poll(&one, 1, -1);
}
static void selects(void) {
  for (fd_set in;;) {
    FD_ZERO(&in);
    FD_SET(p.fd, &in);
    select(p.fd + 1, &in, NULL, NULL, NULL);
  }
}
static void waits(void) {
  struct epoll_event event = {.events = EPOLLIN};
  int epoll = epoll_create1(0);
  epoll_ctl(epoll, EPOLL_CTL_ADD, p.fd, &event);
  for (;;) epoll_wait(epoll, &event, 1, -1);
}
static void (*const busy[])(void) = {peeks, polls, selects, waits};

static void *keeps_busy(void *kind) {
  busy[(intptr_t)kind]();
  return kind;
}

static void cancelled_while_busy(void) {
  p = pair();
  peer_sends(p.peer, 10);
  arrived(p.fd, 10);
  for (intptr_t kind = 0; kind < (intptr_t)(sizeof busy / sizeof *busy); kind++) cancel(keeps_busy, kind);
  R(recv(p.fd, data, 10, 0));
  works();
}

static sigjmp_buf back;
static volatile sig_atomic_t jumps;
static void jump(int number) {
  (void)number;
  jumps++;
  siglongjmp(back, 1);
}

static void timer(int every_us) {
  struct itimerval when = {.it_interval = {.tv_usec = every_us}, .it_value = {.tv_usec = every_us}};
  setitimer(ITIMER_REAL, &when, NULL);
}

static void left_by_jump(void) {
  p = pair();
  server = listening(5);
  signal(SIGALRM, jump);
  for (volatile int kind = 0; kind < KINDS; kind++) {
    if (sigsetjmp(back, 1) != 0) continue;
    struct itimerval when = {.it_value = {.tv_usec = 30000}};
    setitimer(ITIMER_REAL, &when, NULL);
    blocking[kind]();
    line("%d returned", kind);
  }
  line("%d jumps", (int)jumps);
  works();
  // At any moment of a call.
  sigsetjmp(back, 1);
  timer(300);
  while (jumps < 500) {
    struct pollfd one = {.fd = p.fd, .events = POLLIN};
    poll(&one, 1, 0);
    recv(p.fd, data, 10, MSG_DONTWAIT);
  }
  timer(0);
  works();
}

// The handler does what the thread that it interrupts is doing.
static volatile sig_atomic_t answers;
static void same_call(int number) {
  (void)number;
  int before = errno;
  struct pollfd one = {.fd = p.fd, .events = POLLIN};
  poll(&one, 1, 0);
  recv(p.fd, data, 10, MSG_DONTWAIT);
  answers++;
  errno = before;
}

static void handlers_among_calls(void) {
  p = pair();
  signal(SIGALRM, same_call);
  timer(300);
  int other = 0;
  while (answers < 500) {
    if (recv(p.fd, data, 10, MSG_DONTWAIT) != -1 || errno != EAGAIN) other++;
    struct pollfd one = {.fd = p.fd, .events = POLLIN};
    poll(&one, 1, 0);
  }
  timer(0);
  line("%d calls returned something else", other);
  works();
}

static void show_action(const char *what, int number) {
  struct sigaction action;
  R(sigaction(number, NULL, &action));
  const char *handler = action.sa_handler == SIG_DFL  ? "default"
                        : action.sa_handler == SIG_IGN ? "ignored"
                        : action.sa_handler == same_call ? "same_call"
                        : action.sa_handler == jump      ? "jump"
                                                         : "another";
  line("%s: %s, flags %#x, itself %d", what, handler, action.sa_flags & ~0x4000000, sigismember(&action.sa_mask, number));
}

// What was set is what is said, whoever calls the handlers.
static void actions(void) {
  show_action("first", SIGUSR1);
  YES(signal(SIGUSR1, same_call) == SIG_DFL);
  show_action("signal", SIGUSR1);
  R(siginterrupt(SIGUSR1, 1));
  show_action("siginterrupt", SIGUSR1);
  YES(signal(SIGUSR1, jump) == same_call);
  show_action("signal again", SIGUSR1);
  struct sigaction action = {.sa_handler = same_call, .sa_flags = SA_RESETHAND | SA_NODEFER}, old;
  R(sigaction(SIGUSR1, &action, &old));
  YES(old.sa_handler == jump);
  show_action("once", SIGUSR1);
  p = pair();
  R(raise(SIGUSR1));
  line("answers %d", (int)answers);
  show_action("after it", SIGUSR1);
  YES(signal(SIGUSR1, SIG_IGN) == SIG_DFL);
  YES(sigset(SIGUSR2, same_call) == SIG_DFL);
  show_action("sigset", SIGUSR2);
  YES(sigset(SIGUSR2, SIG_HOLD) == same_call);
  YES(sigset(SIGUSR2, jump) == SIG_HOLD);
  YES(sigset(SIGUSR2, SIG_IGN) == jump);
  YES(sigset(0, same_call) == SIG_ERR);
  R(sigaction(SIGKILL, &action, NULL));
  R(sigaction(65, &action, NULL));
  YES(signal(0, same_call) == SIG_ERR);
}

const struct test interrupted_cases[] = {
    {"cancelled threads", cancelled, BOTH | PASSIVE6},
    {"cancelled writers", cancelled_writers, BOTH},
    {"cancelled, and no other", cancelled_alone, PASSIVE4 | PASSIVE6},
    {"cancelled busy threads", cancelled_while_busy, BOTH},
    {"left by siglongjmp", left_by_jump, BOTH | PASSIVE6},
    {"handlers among calls", handlers_among_calls, BOTH},
    {"actions of signals", actions, PASSIVE4},
    END,
};
