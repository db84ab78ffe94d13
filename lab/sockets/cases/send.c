// write, send, sendto, writev and their flags; SIGPIPE.
#include "cases.h"
#include <linux/sockios.h>

static uint8_t data[1 << 20];

static void plain(void) {
  struct pair p = pair();
  pattern(data, 200, 0);
  R(send(p.fd, data, 50, 0));
  R(write(p.fd, data + 50, 50));
  R(sendto(p.fd, data + 100, 50, 0, NULL, 0));
  struct iovec parts[] = {{data + 150, 10}, {NULL, 0}, {data + 160, 40}};
  R(writev(p.fd, parts, 3));
  peer_reads(p.peer, 200);
  R(send(p.fd, data, 0, 0));
  R(write(p.fd, data, 0));
  R(writev(p.fd, parts, 0));
  R(writev(p.fd, parts, -1));
  R(writev(p.fd, parts, 1025));
  R(pwrite(p.fd, data, 10, 0));
  R(send(p.fd, data, 5, 0));
  peer_reads(p.peer, 5);
}

static void with_address(void) {
  struct pair p = pair();
  socklen_t length;
  struct sockaddr_storage name = to_peer(9, &length);
  R(sendto(p.fd, "hello", 5, 0, (struct sockaddr *)&name, length));
  R(sendto(p.fd, "hello", 5, 0, (struct sockaddr *)&name, 2));
  peer_reads(p.peer, 5);
  int fd = stream();
  R(sendto(fd, "hello", 5, MSG_NOSIGNAL, (struct sockaddr *)&name, length));
}

// Neither loses a byte nor holds one back for ever.
static void more(void) {
  struct pair p = pair();
  pattern(data, 100, 0);
  R(send(p.fd, data, 30, MSG_MORE));
  R(send(p.fd, data + 30, 30, MSG_MORE));
  R(send(p.fd, data + 60, 40, 0));
  peer_reads(p.peer, 100);
  int on = 1, off = 0;
  R(setsockopt(p.fd, IPPROTO_TCP, TCP_CORK, &on, sizeof on));
  R(send(p.fd, data, 60, 0));
  R(send(p.fd, data + 60, 40, 0));
  R(setsockopt(p.fd, IPPROTO_TCP, TCP_CORK, &off, sizeof off));
  peer_reads(p.peer, 100);
  R(send(p.fd, data, 100, MSG_MORE));
  peer_reads(p.peer, 100);
}

static void corked_close(void) {
  struct pair p = pair();
  int on = 1;
  R(setsockopt(p.fd, IPPROTO_TCP, TCP_CORK, &on, sizeof on));
  R(send(p.fd, "corked", 6, 0));
  R(close(p.fd));
  peer_reads(p.peer, 100);
}

// Writes until it would block; returns the bytes.
static size_t fill(int fd) {
  size_t total = 0;
  for (;;) {
    pattern(data, 65536, total);
    ssize_t n = send(fd, data, 65536, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) { total += n; continue; }
    // What is on its way may make room yet.
    int error = errno;
    pause_ms(30);
    n = send(fd, data, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n == 1) { total++; continue; }
    line("send ends with %s", error_name(error));
    return total;
  }
}

static void small_buffers(struct pair p) {
  int size = 20000;
  remote("set %d %d %d %d", p.peer, SOL_SOCKET, SO_RCVBUF, size);
  setsockopt(p.fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
}

static void full(void) {
  struct pair p = pair();
  small_buffers(p);
  size_t total = fill(p.fd);
  YES(total > 1000 && total < 2000000);
  struct pollfd one = {.fd = p.fd, .events = POLLOUT};
  R(poll(&one, 1, 0));
  int waiting = 0;
  R(ioctl(p.fd, SIOCOUTQ, &waiting));
  YES(waiting > 0);
  nonblocking(p.fd);
  R(write(p.fd, data, 10));
  remote_later(0, "read %d %d", p.peer, (int)total);
  line("poll %s", events(until(p.fd, POLLOUT)));
  remote("nothing");
  for (int i = 0; i < 200 && waiting; i++) {
    pause_ms(5);
    ioctl(p.fd, SIOCOUTQ, &waiting);
  }
  line("SIOCOUTQ when all is acknowledged: %d", waiting);
  R(ioctl(p.fd, SIOCOUTQNSD, &waiting));
  line("SIOCOUTQNSD %d", waiting);
}

static void blocks(void) {
  struct pair p = pair();
  small_buffers(p);
  remote_later(50, "read %d 1000000", p.peer);
  pattern(data, 1000000, 0);
  R(send(p.fd, data, 1000000, 0));
  R(send(p.fd, "end", 3, 0));
  peer_reads(p.peer, 3);
}

static void time_limit(void) {
  struct pair p = pair();
  small_buffers(p);
  struct timeval limit = {.tv_usec = 80000};
  R(setsockopt(p.fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit));
  ssize_t n = send(p.fd, data, sizeof data, 0);
  YES(n > 0 && n < (ssize_t)sizeof data);
  R(send(p.fd, data, sizeof data, 0));
}

static void much(void) {
  struct pair p = pair();
  for (int i = 0; i < 10; i++) {
    // In pieces that the path cannot hold at once.
    remote_later(0, "read %d 300000", p.peer);
    line("sent %d", send_all(p.fd, 300000, i * 300000));
  }
  line("sent %d", send_all(p.fd, 3000, 3000000));
  peer_reads(p.peer, 3000);
}

// What comes back after the own end was shut: each call once, with the signal it raises.
static void broken(void) {
  struct pair p = pair();
  catch_signal(SIGPIPE, 0);
  R(shutdown(p.fd, SHUT_WR));
#define PIPE(call) (pipes = 0, R(call), line("SIGPIPE %d", (int)pipes))
  PIPE(send(p.fd, "x", 1, 0));
  PIPE(send(p.fd, "x", 1, MSG_NOSIGNAL));
  PIPE(write(p.fd, "x", 1));
  struct iovec part = {"x", 1};
  PIPE(writev(p.fd, &part, 1));
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  PIPE(sendmsg(p.fd, &message, 0));
  PIPE(sendmsg(p.fd, &message, MSG_NOSIGNAL));
  PIPE(sendto(p.fd, "x", 1, 0, NULL, 0));
  PIPE(send(p.fd, "", 0, 0));
  PIPE(send(p.fd, "x", 1, MSG_DONTWAIT));
  signal(SIGPIPE, SIG_IGN);
  PIPE(write(p.fd, "x", 1));
}

static void killed_by_pipe(void) {
  struct pair p = pair();
  shutdown(p.fd, SHUT_WR);
  line("SIGPIPE's default ends the process");
  send(p.fd, "x", 1, 0);
  line("it did not");
}

static void after_close(void) {
  struct pair p = pair();
  catch_signal(SIGPIPE, 0);
  peer_closes(p.peer);
  until(p.fd, POLLRDHUP);
  PIPE(send(p.fd, "x", 1, 0));
  line("poll %s", events(until(p.fd, POLLERR | POLLHUP)));
  PIPE(send(p.fd, "x", 1, 0));
  PIPE(send(p.fd, "x", 1, 0));
  PIPE(recv(p.fd, data, 10, 0));
}

static void after_reset(void) {
  struct pair p = pair();
  catch_signal(SIGPIPE, 0);
  peer_resets(p.peer);
  until(p.fd, POLLERR | POLLHUP);
  PIPE(send(p.fd, "x", 1, 0));
  PIPE(send(p.fd, "x", 1, 0));
  PIPE(recv(p.fd, data, 10, 0));
  PIPE(write(p.fd, "x", 1));
}

static void not_connected(void) {
  int fd = stream();
  catch_signal(SIGPIPE, 0);
  PIPE(send(fd, "x", 1, 0));
  PIPE(send(fd, "x", 1, MSG_NOSIGNAL));
  PIPE(write(fd, "x", 1));
  PIPE(send(-1, "x", 1, 0));
  PIPE(send(STDOUT_FILENO, "x", 1, 0));
  int udp = datagram();
  PIPE(send(udp, "x", 1, 0));
  PIPE(write(udp, "x", 1));
}

static void urgent(void) {
  struct pair p = pair();
  int on = 1;
  remote("set %d %d %d %d", p.peer, SOL_SOCKET, SO_OOBINLINE, on);
  R(send(p.fd, "abc", 3, MSG_OOB));
  R(send(p.fd, "d", 1, 0));
  peer_reads(p.peer, 4);
}

// Whoever only sends hears of a reset, too.
static void reset_while_sending(void) {
  struct pair p = pair();
  struct timespec millisecond = {.tv_nsec = 1000000};
  struct pollfd wait = {.fd = p.fd, .events = POLLIN};
  R(poll(&wait, 1, 150));
  peer_resets(p.peer);
  int error = 0;
  for (int i = 0; i < 30 && error == 0; i++) {
    nanosleep(&millisecond, NULL);
    if (send(p.fd, "x", 1, MSG_NOSIGNAL) < 0) error = errno;
  }
  line("error %s", error_name(error));
}

static void say_error(int fd) {
  int error = -1;
  socklen_t length = sizeof error;
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
  line("SO_ERROR %s", error_name(error));
}

// A call that has sent something when the connection is reset says how much, and leaves the error to those who ask.
static void reset_midway(void) {
  catch_signal(SIGPIPE, 0);
  for (int asks = 1; asks >= 0; asks--) {
    struct pair p = pair();
    small_buffers(p);
    remote_later(100, "reset %d", p.peer);
    ssize_t n = send(p.fd, data, sizeof data, 0);
    YES(n > 0 && n < (ssize_t)sizeof data);
    line("poll %s", events(until(p.fd, POLLERR)));
    if (asks) say_error(p.fd);
    PIPE(send(p.fd, "x", 1, 0));
    say_error(p.fd);
    PIPE(send(p.fd, "x", 1, 0));
  }
}

const struct test send_cases[] = {
    {"send", plain, ALL},
    {"send with an address", with_address, ALL},
    {"send more", more, ALL},
    {"send corked and close", corked_close, BOTH},
    {"send full", full, ALL},
    {"send blocks", blocks, ALL},
    {"send time limit", time_limit, BOTH},
    {"send much", much, ALL},
    {"send broken pipe", broken, ALL},
    {"send killed", killed_by_pipe, BOTH},
    {"send after close", after_close, ALL},
    {"send after reset", after_reset, ALL},
    {"send not connected", not_connected, FAMILIES},
    {"send urgent", urgent, BOTH},
    {"send until reset", reset_while_sending, ALL},
    {"send reset midway", reset_midway, ALL},
    END,
};
