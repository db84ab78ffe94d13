// shutdown in each direction, close, linger, and what the other side sees.
#include "cases.h"
#include <linux/close_range.h>

static uint8_t data[65536];

static void state(struct pair p, const char *when) {
  struct pollfd one = {.fd = p.fd, .events = POLLIN | POLLOUT | POLLRDHUP};
  poll(&one, 1, 0);
  line("%s: poll %s", when, events(one.revents));
}

static void everything(struct pair p) {
  R(recv(p.fd, data, 10, MSG_DONTWAIT));
  R(recv(p.fd, data, 10, MSG_DONTWAIT | MSG_PEEK));
  R(send(p.fd, "x", 1, MSG_NOSIGNAL));
  struct sockaddr_storage name;
  socklen_t length = sizeof name;
  R(getpeername(p.fd, (struct sockaddr *)&name, &length));
  length = sizeof name;
  R(getsockname(p.fd, (struct sockaddr *)&name, &length));
  int value = -1;
  length = sizeof value;
  R(getsockopt(p.fd, SOL_SOCKET, SO_ERROR, &value, &length));
  line("SO_ERROR %s", error_name(value));
  R(ioctl(p.fd, FIONREAD, &value));
  line("FIONREAD %d", value);
  R(shutdown(p.fd, SHUT_RD));
  R(shutdown(p.fd, SHUT_WR));
  R(shutdown(p.fd, SHUT_RDWR));
}

static void shut(int how) {
  struct pair p = pair();
  R(shutdown(p.fd, how));
  state(p, "shut");
  everything(p);
  state(p, "after all");
  peer_closes(p.peer);
  pause_ms(30);
  state(p, "the peer has closed");
  everything(p);
}
static void shut_read(void) { shut(SHUT_RD); }
static void shut_write(void) { shut(SHUT_WR); }
static void shut_both(void) { shut(SHUT_RDWR); }

static void shut_read_with_data(void) {
  struct pair p = pair();
  peer_sends(p.peer, 20);
  arrived(p.fd, 20);
  R(shutdown(p.fd, SHUT_RD));
  R(recv(p.fd, data, 5, 0));
  R(recv(p.fd, data, 100, 0));
  R(recv(p.fd, data, 100, 0));
  peer_sends(p.peer, 10);
  pause_ms(30);
  R(recv(p.fd, data, 100, 0));
  R(send(p.fd, "still", 5, MSG_NOSIGNAL));
  peer_reads(p.peer, 5);
}

static void half_closed(void) {
  struct pair p = pair();
  R(send(p.fd, "request", 7, 0));
  R(shutdown(p.fd, SHUT_WR));
  peer_reads(p.peer, 100);
  peer_sends(p.peer, 5000);
  R(recv(p.fd, data, 5000, MSG_WAITALL));
  bytes("answer", data, 5000);
  peer_closes(p.peer);
  R(recv(p.fd, data, 10, 0));
  state(p, "both ends are closed");
  R(close(p.fd));
}

static void peer_half_closes(void) {
  struct pair p = pair();
  peer_sends(p.peer, 10);
  peer_shuts(p.peer, SHUT_WR);
  line("poll %s", events(until(p.fd, POLLRDHUP)));
  arrived(p.fd, 10);
  R(recv(p.fd, data, 100, 0));
  R(recv(p.fd, data, 100, 0));
  R(send(p.fd, "late answer", 11, 0));
  peer_reads(p.peer, 11);
  R(close(p.fd));
  peer_reads(p.peer, 1);
}

static void shut_wrong(void) {
  int fd = stream();
  R(shutdown(fd, SHUT_RD));
  R(shutdown(fd, SHUT_WR));
  R(shutdown(fd, SHUT_RDWR));
  R(shutdown(fd, 3));
  R(shutdown(-1, SHUT_RD));
  R(shutdown(STDOUT_FILENO, SHUT_RD));
  struct pair p = pair();
  R(shutdown(p.fd, 3));
  R(shutdown(p.fd, -1));
  int udp = datagram();
  R(shutdown(udp, SHUT_RD));
}

static void close_plain(void) {
  struct pair p = pair();
  R(send(p.fd, "all of it", 9, 0));
  R(close(p.fd));
  peer_reads(p.peer, 100);
  R(close(p.fd));
}

static void close_unread(void) {
  struct pair p = pair();
  peer_sends(p.peer, 10);
  arrived(p.fd, 10);
  R(close(p.fd));
  peer_reads(p.peer, 100);
}

static void close_much(void) {
  struct pair p = pair();
  line("sent %d", send_all(p.fd, 100000, 0));
  R(close(p.fd));
  peer_reads(p.peer, 200000);
}

static void close_then_data(void) {
  struct pair p = pair();
  R(close(p.fd));
  peer_sends(p.peer, 10);
  pause_ms(20);
  peer_reads(p.peer, 1);
}

static void linger(int seconds) {
  struct pair p = pair();
  struct linger linger = {.l_onoff = 1, .l_linger = seconds};
  R(setsockopt(p.fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
  R(send(p.fd, "data", 4, 0));
  peer_reads(p.peer, 4);
  R(close(p.fd));
  peer_reads(p.peer, 1);
}
static void linger_zero(void) { linger(0); }
static void linger_two(void) { linger(2); }

static void linger_unsent(void) {
  struct pair p = pair();
  struct linger linger = {.l_onoff = 1, .l_linger = 0};
  R(setsockopt(p.fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
  R(shutdown(p.fd, SHUT_WR));
  peer_reads(p.peer, 1);
  R(close(p.fd));
  peer_sends(p.peer, 1);
  peer_reads(p.peer, 1);
}

static void peer_reset(void) {
  struct pair p = pair();
  peer_resets(p.peer);
  until(p.fd, POLLERR | POLLHUP);
  state(p, "reset");
  int value = -1;
  socklen_t length = sizeof value;
  R(getsockopt(p.fd, SOL_SOCKET, SO_ERROR, &value, &length));
  line("SO_ERROR %s", error_name(value));
  state(p, "asked");
  everything(p);
}

static void closed_calls(void) {
  struct pair p = pair();
  R(close(p.fd));
  R(recv(p.fd, data, 1, 0));
  R(read(p.fd, data, 1));
  R(send(p.fd, data, 1, 0));
  R(shutdown(p.fd, SHUT_RDWR));
  R(listen(p.fd, 1));
  FD(accept(p.fd, NULL, NULL));
  FD(dup(p.fd));
  R(fcntl(p.fd, F_GETFL));
  R(ioctl(p.fd, FIONREAD, data));
  int value = 0;
  socklen_t length = sizeof value;
  R(getsockopt(p.fd, SOL_SOCKET, SO_ERROR, &value, &length));
  R(setsockopt(p.fd, SOL_SOCKET, SO_KEEPALIVE, &value, length));
  R(bind_own(p.fd, true, 0));
  struct pollfd one = {.fd = p.fd, .events = POLLIN};
  R(poll(&one, 1, 0));
  line("poll %s", events(one.revents));
}

static void ranges(void) {
  struct pair p = pair();
  struct pair q = pair();
  R(close_range(q.fd, q.fd, 0));
  peer_reads(q.peer, 1);
  R(send(q.fd, "x", 1, MSG_NOSIGNAL));
  R(send(p.fd, "x", 1, MSG_NOSIGNAL));
  R(close_range(p.fd, p.fd, CLOSE_RANGE_CLOEXEC));
  R(fcntl(p.fd, F_GETFD));
  // The number is free for another.
  R(dup2(STDOUT_FILENO, q.fd) == q.fd);
  R(recv(q.fd, data, 1, 0));
}

const struct test close_cases[] = {
    {"shutdown read", shut_read, ALL},
    {"shutdown write", shut_write, ALL},
    {"shutdown both", shut_both, ALL},
    {"shutdown read with data", shut_read_with_data, BOTH},
    {"shutdown wrong", shut_wrong, BOTH},
    {"half closed", half_closed, ALL},
    {"half closed by the peer", peer_half_closes, ALL},
    {"close", close_plain, ALL},
    {"close unread", close_unread, ALL},
    {"close much", close_much, ALL},
    {"close then data", close_then_data, BOTH},
    {"close linger 0", linger_zero, ALL},
    {"close linger 2", linger_two, BOTH},
    {"close linger after shutdown", linger_unsent, BOTH},
    {"close by reset", peer_reset, ALL},
    {"closed", closed_calls, BOTH},
    {"close range", ranges, BOTH},
    END,
};
