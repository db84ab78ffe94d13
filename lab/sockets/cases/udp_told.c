// What is told of datagrams beside their data: errors, and when they came.
#include "talk.h"
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>

static uint8_t data[70000];
static uint8_t space[512];

static void set(int fd, int level, int name, int value) {
  R(setsockopt(fd, level, name, &value, sizeof value));
}

// IP_RECVERR, on an IPv6 socket both.
static void want_errors(int fd, int on) {
  set(fd, IPPROTO_IP, IP_RECVERR, on);
  if (mode.family == AF_INET6) set(fd, IPPROTO_IPV6, IPV6_RECVERR, on);
}

static void extended(struct cmsghdr *c) {
  struct sock_extended_err *e = (void *)CMSG_DATA(c);
  line("error %s, origin %d, type %d, code %d, info %u, data %u", error_name(e->ee_errno), e->ee_origin, e->ee_type,
       e->ee_code, e->ee_info, e->ee_data);
  struct sockaddr *offender = SO_EE_OFFENDER(e);
  if (offender->sa_family == AF_UNSPEC)
    line("no offender");
  else
    address("offender", offender, c->cmsg_len - CMSG_LEN(sizeof *e));
}

// Whether a time is that of this moment, or nearly so.
static bool is_now(const struct timespec *time) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return time->tv_sec >= now.tv_sec - 3 && time->tv_sec <= now.tv_sec + 1 && time->tv_nsec < 1000000000;
}

static void controls(struct msghdr *message) {
  for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
    line("level %d type %d length %zu", c->cmsg_level, c->cmsg_type, c->cmsg_len - CMSG_LEN(0));
    bool four = c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR;
    if (four || (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR)) extended(c);
    if (c->cmsg_level != SOL_SOCKET) continue;
    const struct timespec *times = (void *)CMSG_DATA(c);
    YES(is_now(times));
    if (c->cmsg_len == CMSG_LEN(48)) line("others %ld %ld", (long)times[1].tv_sec, (long)times[2].tv_sec);
  }
}

static void receive(int fd, int flags, int length) {
  struct sockaddr_storage name = {0};
  struct iovec part = {data, length};
  struct msghdr message = {.msg_name = &name, .msg_namelen = sizeof name, .msg_iov = &part, .msg_iovlen = 1,
                           .msg_control = space, .msg_controllen = sizeof space, .msg_flags = -1};
  long n = R(recvmsg(fd, &message, flags | MSG_DONTWAIT));
  if (n < 0) return;
  line("flags %#x", message.msg_flags);
  address("name", &name, message.msg_namelen);
  bytes("data", data, n);
  controls(&message);
}

static void ready(int fd) {
  struct pollfd one = {.fd = fd, .events = POLLIN | POLLOUT | POLLPRI};
  R(poll(&one, 1, 0));
  line("poll %s", events(one.revents));
}

static void pending(int fd) {
  int error = -1;
  socklen_t size = sizeof error;
  R(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size));
  line("SO_ERROR %s", error ? error_name(error) : "none");
}

static void error_queue(void) {
  int fd = datagram();
  socklen_t length;
  struct sockaddr_storage to = to_peer(closed_port(SOCK_DGRAM), &length);
  pattern(data, 1000, 0);
  receive(fd, MSG_ERRQUEUE, 100);
  want_errors(fd, 1);
  R(sendto(fd, data, 100, 0, (struct sockaddr *)&to, length));
  until(fd, POLLERR);
  ready(fd);
  R(recv(fd, data, 10, MSG_DONTWAIT));
  ready(fd);
  receive(fd, MSG_ERRQUEUE | MSG_PEEK, 60);
  receive(fd, MSG_ERRQUEUE, 60);
  ready(fd);
  // The pending error follows the queue.
  for (int i = 1; i < 4; i++) {
    pattern(data, 1000, i);
    R(sendto(fd, data, 10 * i, 0, (struct sockaddr *)&to, length));
    until(fd, POLLERR);
    pause_ms(20);
    pending(fd);
  }
  receive(fd, MSG_ERRQUEUE, 100);
  pending(fd);
  receive(fd, MSG_ERRQUEUE, 100);
  receive(fd, MSG_ERRQUEUE, 100);
  pending(fd);
  R(sendto(fd, "x", 1, 0, (struct sockaddr *)&to, length));
  until(fd, POLLERR);
  want_errors(fd, 0);
  receive(fd, MSG_ERRQUEUE, 100);
  pending(fd);
}

static void connected_queue(void) {
  int fd = datagram();
  socklen_t length;
  struct sockaddr_storage to = to_peer(closed_port(SOCK_DGRAM), &length);
  want_errors(fd, 1);
  R(connect(fd, (struct sockaddr *)&to, length));
  R(send(fd, "word", 4, 0));
  until(fd, POLLERR);
  R(send(fd, "x", 1, 0));
  receive(fd, MSG_ERRQUEUE, 100);
  R(recv(fd, data, 10, MSG_DONTWAIT));
  ready(fd);
}

// The control messages of the ICMP message come with it.
static void error_info(void) {
  int fd = datagram(), six = mode.family == AF_INET6;
  socklen_t length;
  struct sockaddr_storage to = to_peer(closed_port(SOCK_DGRAM), &length);
  want_errors(fd, 1);
  set(fd, SOL_SOCKET, SO_TIMESTAMP, 1);
  set(fd, six ? IPPROTO_IPV6 : IPPROTO_IP, six ? IPV6_RECVHOPLIMIT : IP_RECVTTL, 1);
  R(sendto(fd, "word", 4, 0, (struct sockaddr *)&to, length));
  until(fd, POLLERR);
  receive(fd, MSG_ERRQUEUE, 100);
}

static void error_of_length(void) {
  struct talk t = talk(false);
  set(t.fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
  want_errors(t.fd, 1);
  R(sendto(t.fd, data, 1473, 0, (struct sockaddr *)&t.to, t.length));
  ready(t.fd);
  pending(t.fd);
  receive(t.fd, MSG_ERRQUEUE, 100);
  R(connect(t.fd, (struct sockaddr *)&t.to, t.length));
  R(send(t.fd, data, 2000, 0));
  receive(t.fd, MSG_ERRQUEUE, 100);
  receive(t.fd, MSG_ERRQUEUE, 100);
}

static void stamps(void) {
  struct talk t = talk(true);
  static const int names[] = {SO_TIMESTAMP_OLD, SO_TIMESTAMPNS_OLD, SO_TIMESTAMP_NEW, SO_TIMESTAMPNS_NEW};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    set(t.fd, SOL_SOCKET, names[i], 1);
    for (size_t j = 0; j < sizeof names / sizeof *names; j++) {
      int value = -1;
      socklen_t size = sizeof value;
      R(getsockopt(t.fd, SOL_SOCKET, names[j], &value, &size));
      line("%d: %d", names[j], value);
    }
    peer_sends_to(t, 10);
    until(t.fd, POLLIN);
    receive(t.fd, 0, 100);
  }
  set(t.fd, SOL_SOCKET, SO_TIMESTAMPNS_OLD, 0);
  peer_sends_to(t, 10);
  until(t.fd, POLLIN);
  receive(t.fd, 0, 100);
  // Where nothing can be written, nothing is told.
  set(t.fd, SOL_SOCKET, SO_TIMESTAMPNS_OLD, 1);
  peer_sends_to(t, 10);
  until(t.fd, POLLIN);
  struct iovec part = {data, 100};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = (void *)8, .msg_controllen = 64};
  R(recvmsg(t.fd, &message, MSG_DONTWAIT));
  line("control %zu, flags %#x", message.msg_controllen, message.msg_flags);
}

static void stamping(void) {
  struct talk t = talk(true);
  static const int names[] = {SO_TIMESTAMPING_OLD, SO_TIMESTAMPING_NEW};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    set(t.fd, SOL_SOCKET, names[i], SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE);
    peer_sends_to(t, 10);
    until(t.fd, POLLIN);
    receive(t.fd, 0, 100);
    set(t.fd, SOL_SOCKET, SO_TIMESTAMPNS_OLD, 1);
    peer_sends_to(t, 10);
    until(t.fd, POLLIN);
    receive(t.fd, 0, 100);
    set(t.fd, SOL_SOCKET, SO_TIMESTAMPNS_OLD, 0);
  }
  set(t.fd, SOL_SOCKET, SO_TIMESTAMPING_OLD, -1);
  set(t.fd, SOL_SOCKET, SO_TIMESTAMPING_OLD, 0);
  peer_sends_to(t, 10);
  until(t.fd, POLLIN);
  receive(t.fd, 0, 100);
}

static void gathered(void) {
  struct talk t = talk(true);
  set(t.fd, IPPROTO_UDP, 104, 1);
  int value = -1;
  socklen_t size = sizeof value;
  R(getsockopt(t.fd, IPPROTO_UDP, 104, &value, &size));
  line("UDP_GRO %d", value);
  peer_sends_to(t, 1000);
  until(t.fd, POLLIN);
  receive(t.fd, MSG_PEEK, 2000);
  receive(t.fd, 0, 2000);
}

const struct test udp_told_cases[] = {
    {"udp error queue", error_queue, FAMILIES},
    {"udp error queue, connected", connected_queue, FAMILIES},
    {"udp error info", error_info, FAMILIES},
    {"udp error of length", error_of_length, PASSIVE4},
    {"udp stamps", stamps, FAMILIES},
    {"udp stamping", stamping, FAMILIES},
    {"udp gathered", gathered, FAMILIES},
    END,
};
