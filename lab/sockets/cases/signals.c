// Calls that a signal interrupts: EINTR, and SA_RESTART.
#include "talk.h"
#include <sys/epoll.h>
#include <sys/select.h>

static uint8_t data[1 << 20];
static struct pair p;
static int flags;

static void alarm_in(int milliseconds) {
  struct itimerval when = {.it_value = {.tv_usec = milliseconds * 1000}};
  signals = 0;
  setitimer(ITIMER_REAL, &when, NULL);
}

// Runs a call that a signal meets after 40 ms; with SA_RESTART the peer ends it later.
#define MEETS(call, ...)                               \
  do {                                                 \
    if (flags & SA_RESTART) remote_later(120, __VA_ARGS__); \
    alarm_in(40);                                      \
    R(call);                                           \
    line("signals %d", (int)signals);                  \
  } while (0)

static void reading(void) {
  p = pair();
  catch_signal(SIGALRM, flags);
  MEETS(recv(p.fd, data, 10, 0), "send %d 10", p.peer);
  MEETS(read(p.fd, data, 10), "send %d 10", p.peer);
  struct iovec part = {data, 10};
  MEETS(readv(p.fd, &part, 1), "send %d 10", p.peer);
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  MEETS(recvmsg(p.fd, &message, 0), "send %d 10", p.peer);
  peer_sends(p.peer, 5);
  arrived(p.fd, 5);
  MEETS(recv(p.fd, data, 10, MSG_WAITALL), "send %d 5", p.peer);
  // A time limit makes a call that no flag restarts.
  struct timeval limit = {.tv_sec = 2};
  setsockopt(p.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  MEETS(recv(p.fd, data, 10, 0), "nothing");
}
static void reading_restarted(void) { flags = SA_RESTART, reading(); }

static void waiting(void) {
  p = pair();
  catch_signal(SIGALRM, flags);
  struct pollfd one = {.fd = p.fd, .events = POLLIN};
  MEETS(poll(&one, 1, 2000), "nothing");
  fd_set in;
  FD_ZERO(&in);
  FD_SET(p.fd, &in);
  struct timeval limit = {.tv_sec = 2};
  MEETS(select(p.fd + 1, &in, NULL, NULL, &limit), "nothing");
  int epoll = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN};
  epoll_ctl(epoll, EPOLL_CTL_ADD, p.fd, &event);
  MEETS(epoll_wait(epoll, &event, 1, 2000), "nothing");
  MEETS(epoll_wait(epoll, &event, 1, -1), "nothing");
  MEETS(pause(), "nothing");
}
static void waiting_restarted(void) { flags = SA_RESTART, waiting(); }

static void accepting(void) {
  int server = listening(5), version = mode.family == AF_INET6 ? 6 : 4, port = port_of(server);
  catch_signal(SIGALRM, flags);
  if (flags & SA_RESTART) remote_later(120, "connect %d %d", version, port);
  alarm_in(40);
  FD(accept(server, NULL, NULL));
  line("signals %d", (int)signals);
}
static void accepting_restarted(void) { flags = SA_RESTART, accepting(); }

static void sending(void) {
  p = pair();
  int size = 20000;
  remote("set %d %d %d %d", p.peer, SOL_SOCKET, SO_RCVBUF, size);
  setsockopt(p.fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  catch_signal(SIGALRM, flags);
  alarm_in(80);
  ssize_t n = send(p.fd, data, sizeof data, 0);
  YES(n > 0 && n < (ssize_t)sizeof data);
  line("signals %d", (int)signals);
  if (flags & SA_RESTART) remote_later(150, "read %d %d", p.peer, (int)n);
  alarm_in(80);
  n = send(p.fd, data, 1000, 0);
  line("send = %zd %s, signals %d", n, n < 0 ? error_name(errno) : "", (int)signals);
}
static void sending_restarted(void) { flags = SA_RESTART, sending(); }

static void connecting(void) {
  int fd = stream();
  socklen_t length;
  struct sockaddr_storage name = to_peer(80, &length);
  ((uint8_t *)&((struct sockaddr_in *)&name)->sin_addr)[3] = 77;
  catch_signal(SIGALRM, flags);
  alarm_in(40);
  R(connect(fd, (struct sockaddr *)&name, length));
  line("signals %d", (int)signals);
  nonblocking(fd);
  R(connect(fd, (struct sockaddr *)&name, length));
}
// Goes on until the peer turns out to be nobody.
static void connecting_restarted(void) { flags = SA_RESTART, connecting(); }

// A close that lingers is over when a signal comes, and has not failed.
static void closing(void) {
  p = pair();
  int size = 20000;
  struct linger linger = {.l_onoff = 1, .l_linger = 5};
  remote("set %d %d %d %d", p.peer, SOL_SOCKET, SO_RCVBUF, size);
  setsockopt(p.fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  setsockopt(p.fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
  nonblocking(p.fd);
  // More than the peer takes.
  for (int i = 0; i < 100 && send(p.fd, data, sizeof data, MSG_NOSIGNAL) != 0; i++) pause_ms(1);
  catch_signal(SIGALRM, 0);
  alarm_in(80);
  R(close(p.fd));
  line("signals %d", (int)signals);
  R(close(p.fd));
}

// The handler itself uses the socket.
static int answered;
static void answer(int number) {
  (void)number;
  int before = errno;
  answered = send(answered, "from the handler", 16, MSG_DONTWAIT);
  errno = before;
}

static void in_the_handler(void) {
  p = pair();
  struct sigaction action = {.sa_handler = answer, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  answered = p.fd;
  remote_later(120, "send %d 5", p.peer);
  alarm_in(40);
  R(recv(p.fd, data, 5, 0));
  line("the handler sent %d", answered);
  peer_reads(p.peer, 16);
}

static void owned(int fd) {
  catch_signal(SIGIO, SA_RESTART);
  R(fcntl(fd, F_SETOWN, getpid()));
  R(fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK));
}

static void signal_comes(void) {
  for (int i = 0; i < 100 && !signals; i++) pause_ms(5);
  YES(signals > 0);
  signals = 0;
}

// Connects, and gives the peer's end.
static int connected(int fd) {
  int number = remote("listen %d 5", version());
  socklen_t length;
  struct sockaddr_storage name = to_peer(remote("port %d", number), &length);
  R(connect(fd, (struct sockaddr *)&name, length));
  return remote("accept %d", number);
}

// SIGIO of a socket that has an owner before it has a connection.
static void owned_early(void) {
  int fd = stream();
  owned(fd);
  int peer = connected(fd);
  signal_comes();
  peer_sends(peer, 10);
  signal_comes();
  R(recv(fd, data, 100, 0));
}

// The same, where signals are asked for later.
static void owner_stays(void) {
  int fd = stream();
  catch_signal(SIGIO, SA_RESTART);
  R(fcntl(fd, F_SETOWN, getpid()));
  int peer = connected(fd);
  YES(fcntl(fd, F_GETOWN) == getpid());
  R(fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK));
  signals = 0;
  peer_sends(peer, 10);
  signal_comes();
  R(recv(fd, data, 100, 0));
}

static void owned_listener(void) {
  int server = listening(5);
  owned(server);
  signals = 0;
  remote("connect %d %d", version(), port_of(server));
  signal_comes();
  FD(accept(server, NULL, NULL));
}

static void owned_datagrams(void) {
  struct talk t = talk(true);
  owned(t.fd);
  signals = 0;
  peer_sends_to(t, 5);
  signal_comes();
  R(recv(t.fd, data, 100, 0));
  R(ioctl(t.fd, FIOASYNC, &(int){0}));
  peer_sends_to(t, 5);
  pause_ms(50);
  line("signals %d", (int)signals);
  R(recv(t.fd, data, 100, 0));
}

const struct test signal_cases[] = {
    {"EINTR reading", reading, BOTH},
    {"EINTR reading, restarted", reading_restarted, BOTH},
    {"EINTR waiting", waiting, BOTH},
    {"EINTR waiting, restarted", waiting_restarted, BOTH},
    {"EINTR accepting", accepting, PASSIVE4},
    {"EINTR accepting, restarted", accepting_restarted, PASSIVE4},
    {"EINTR sending", sending, BOTH},
    {"EINTR sending, restarted", sending_restarted, BOTH},
    {"EINTR connecting", connecting, PASSIVE4},
    {"EINTR connecting, restarted", connecting_restarted, PASSIVE4},
    {"EINTR closing", closing, BOTH},
    {"send in a handler", in_the_handler, BOTH},
    {"SIGIO from the start", owned_early, PASSIVE4 | PASSIVE6},
    {"owner from the start", owner_stays, PASSIVE4 | PASSIVE6},
    {"SIGIO of a listener", owned_listener, PASSIVE4 | PASSIVE6},
    {"SIGIO of datagrams", owned_datagrams, PASSIVE4 | PASSIVE6},
    END,
};
