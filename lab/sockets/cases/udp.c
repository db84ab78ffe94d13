// Datagrams: connected, unconnected, refused, truncated.
#include "talk.h"
#include <linux/sockios.h>

static uint8_t data[70000];

static void unconnected(void) {
  struct talk t = talk(true);
  pattern(data, 1000, 0);
  R(sendto(t.fd, data, 100, 0, (struct sockaddr *)&t.to, t.length));
  peer_gets(t);
  R(sendto(t.fd, data, 0, 0, (struct sockaddr *)&t.to, t.length));
  peer_gets(t);
  peer_sends_to(t, 50);
  line("poll %s", events(until(t.fd, POLLIN)));
  struct sockaddr_storage name;
  socklen_t length = sizeof name;
  R(recvfrom(t.fd, data, 1000, 0, (struct sockaddr *)&name, &length));
  address("from", &name, length);
  YES(((struct sockaddr_in *)&name)->sin_port == htons(t.peer_port));
  bytes("data", data, 50);
  R(recv(t.fd, data, 10, MSG_DONTWAIT));
  R(send(t.fd, data, 10, 0));
  peer_sends_to(t, 0);
  until(t.fd, POLLIN);
  R(recv(t.fd, data, 10, 0));
}

static void from_one_address(void) {
  struct talk t = talk(false);
  R(sendto(t.fd, "word", 4, 0, (struct sockaddr *)&t.to, t.length));
  peer_gets(t);
  peer_sends_to(t, 9);
  until(t.fd, POLLIN);
  R(recv(t.fd, data, 100, 0));
}

static void unbound(void) {
  struct talk t = {.fd = datagram(), .peer = remote("udp %d", version())};
  t.to = to_peer(remote("port %d", t.peer), &t.length);
  R(sendto(t.fd, "word", 4, 0, (struct sockaddr *)&t.to, t.length));
  YES(port_of(t.fd) > 0);
  peer_gets(t);
  peer_sends_to(t, 9);
  until(t.fd, POLLIN);
  R(recv(t.fd, data, 100, 0));
}

static void connected(void) {
  struct talk t = talk(false);
  R(connect(t.fd, (struct sockaddr *)&t.to, t.length));
  struct sockaddr_storage name;
  socklen_t length = sizeof name;
  R(getpeername(t.fd, (struct sockaddr *)&name, &length));
  address("peer", &name, length);
  length = sizeof name;
  R(getsockname(t.fd, (struct sockaddr *)&name, &length));
  address("own", &name, length);
  R(send(t.fd, "one", 3, 0));
  peer_gets(t);
  R(write(t.fd, "two", 3));
  peer_gets(t);
  R(sendto(t.fd, "three", 5, 0, (struct sockaddr *)&t.to, t.length));
  peer_gets(t);
  peer_sends_to(t, 20);
  until(t.fd, POLLIN);
  R(read(t.fd, data, 100));
  // Not from its peer: not for this socket.
  struct talk other = {.fd = t.fd, .peer = remote("udp %d", version())};
  peer_sends_to(other, 5);
  pause_ms(30);
  R(recv(t.fd, data, 100, MSG_DONTWAIT));
  struct sockaddr any = {.sa_family = AF_UNSPEC};
  R(connect(t.fd, &any, sizeof any));
  length = sizeof name;
  R(getpeername(t.fd, (struct sockaddr *)&name, &length));
  R(send(t.fd, "x", 1, 0));
}

static void refused(void) {
  int fd = datagram();
  socklen_t length;
  struct sockaddr_storage name = to_peer(closed_port(SOCK_DGRAM), &length);
  R(connect(fd, (struct sockaddr *)&name, length));
  R(send(fd, "x", 1, 0));
  line("poll %s", events(until(fd, POLLERR)));
  R(recv(fd, data, 10, MSG_DONTWAIT));
  R(recv(fd, data, 10, MSG_DONTWAIT));
  R(send(fd, "x", 1, 0));
  until(fd, POLLERR);
  int error = -1;
  socklen_t size = sizeof error;
  R(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size));
  line("SO_ERROR %s", error_name(error));
  R(send(fd, "x", 1, 0));
  until(fd, POLLERR);
  R(send(fd, "x", 1, 0));
  R(recv(fd, data, 10, MSG_DONTWAIT));
  int plain = datagram();
  R(sendto(plain, "x", 1, 0, (struct sockaddr *)&name, length));
  pause_ms(30);
  R(recv(plain, data, 10, MSG_DONTWAIT));
}

static void truncation(void) {
  struct talk t = talk(true);
  peer_sends_to(t, 100);
  peer_sends_to(t, 100);
  peer_sends_to(t, 100);
  peer_sends_to(t, 100);
  until(t.fd, POLLIN);
  pause_ms(20);
  int there = -1;
  R(ioctl(t.fd, FIONREAD, &there));
  line("FIONREAD %d", there);
  R(recv(t.fd, data, 10, MSG_PEEK));
  R(recv(t.fd, data, 10, MSG_PEEK | MSG_TRUNC));
  R(recv(t.fd, data, 10, 0));
  bytes("data", data, 10);
  R(recv(t.fd, data, 10, MSG_TRUNC));
  struct iovec part = {data, 30};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  R(recvmsg(t.fd, &message, 0));
  line("flags %#x", message.msg_flags);
  R(recvmsg(t.fd, &message, MSG_TRUNC));
  line("flags %#x", message.msg_flags);
  R(recv(t.fd, data, 0, MSG_DONTWAIT));
  R(ioctl(t.fd, SIOCOUTQ, &there));
  line("SIOCOUTQ %d", there);
}

static void sizes(void) {
  struct talk t = talk(false);
  // Longer ones do not come by a port of AF_PACKET, which has the kernel put fragments together and truncates the packet.
  static const int lengths[] = {1, 1400, 1472, 1473, 1900};
  pattern(data, sizeof data, 0);
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    R(sendto(t.fd, data, lengths[i], 0, (struct sockaddr *)&t.to, t.length));
    peer_gets(t);
    peer_sends_to(t, lengths[i]);
    until(t.fd, POLLIN);
    R(recv(t.fd, data, sizeof data, 0));
    bytes("data", data, lengths[i]);
  }
  R(sendto(t.fd, data, 5000, 0, (struct sockaddr *)&t.to, t.length));
  peer_gets(t);
  R(sendto(t.fd, data, 60000, 0, (struct sockaddr *)&t.to, t.length));
  peer_gets(t);
  // Over IPv6 the kernel takes 48 bytes more (docs/sockets.md).
  R(sendto(t.fd, data, version() == 4 ? 65507 : 65479, 0, (struct sockaddr *)&t.to, t.length));
  peer_gets(t);
  R(sendto(t.fd, data, 65528, 0, (struct sockaddr *)&t.to, t.length));
  R(sendto(t.fd, data, 70000, 0, (struct sockaddr *)&t.to, t.length));
}

static void several(void) {
  struct talk t = talk(false);
  pattern(data, 600, 0);
  struct iovec parts[] = {{data, 100}, {data + 100, 200}, {data + 300, 300}};
  struct mmsghdr messages[3] = {0};
  for (int i = 0; i < 3; i++)
    messages[i].msg_hdr = (struct msghdr){.msg_name = &t.to, .msg_namelen = t.length, .msg_iov = &parts[i], .msg_iovlen = 1};
  R(sendmmsg(t.fd, messages, 3, 0));
  line("lengths %u %u %u", messages[0].msg_len, messages[1].msg_len, messages[2].msg_len);
  peer_gets(t), peer_gets(t), peer_gets(t);
  for (int i = 1; i < 4; i++) peer_sends_to(t, 10 * i);
  until(t.fd, POLLIN);
  pause_ms(30);
  struct sockaddr_storage names[3];
  for (int i = 0; i < 3; i++) messages[i].msg_hdr.msg_name = &names[i], messages[i].msg_hdr.msg_namelen = sizeof names[i];
  R(recvmmsg(t.fd, messages, 3, MSG_DONTWAIT, NULL));
  line("lengths %u %u %u", messages[0].msg_len, messages[1].msg_len, messages[2].msg_len);
  address("from", &names[2], messages[2].msg_hdr.msg_namelen);
  R(recvmmsg(t.fd, messages, 3, MSG_DONTWAIT, NULL));
  struct timespec limit = {.tv_nsec = 30000000};
  peer_sends_to(t, 10);
  R(recvmmsg(t.fd, messages, 1, 0, &limit));
  // What goes wrong with the second, the next call says.
  for (int i = 1; i < 3; i++) peer_sends_to(t, 10 * i);
  until(t.fd, POLLIN);
  pause_ms(30);
  messages[1].msg_hdr.msg_iov = (struct iovec *)1;
  R(recvmmsg(t.fd, messages, 2, MSG_DONTWAIT, NULL));
  messages[1].msg_hdr.msg_iov = &parts[1];
  R(recvmmsg(t.fd, messages, 2, MSG_DONTWAIT, NULL));
  R(recvmmsg(t.fd, messages, 2, MSG_DONTWAIT, NULL));
}

// Where a datagram arrived, and from where an answer goes.
static void packet_info(void) {
  struct talk t = talk(true);
  int on = 1, six = mode.family == AF_INET6;
  R(setsockopt(t.fd, six ? IPPROTO_IPV6 : IPPROTO_IP, six ? IPV6_RECVPKTINFO : IP_PKTINFO, &on, sizeof on));
  R(setsockopt(t.fd, six ? IPPROTO_IPV6 : IPPROTO_IP, six ? IPV6_RECVHOPLIMIT : IP_RECVTTL, &on, sizeof on));
  R(setsockopt(t.fd, six ? IPPROTO_IPV6 : IPPROTO_IP, six ? IPV6_RECVTCLASS : IP_RECVTOS, &on, sizeof on));
  peer_sends_to(t, 10);
  until(t.fd, POLLIN);
  uint8_t space[512];
  struct iovec part = {data, 100};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
  R(recvmsg(t.fd, &message, 0));
  line("flags %#x", message.msg_flags);
  for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
    int value = -1;
    if (c->cmsg_len == CMSG_LEN(4) || c->cmsg_len == CMSG_LEN(1)) memcpy(&value, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
    line("level %d type %d length %zu value %d", c->cmsg_level, c->cmsg_type, c->cmsg_len - CMSG_LEN(0), value);
  }
  peer_sends_to(t, 10);
  until(t.fd, POLLIN);
  message.msg_controllen = 20;
  R(recvmsg(t.fd, &message, 0));
  line("flags %#x", message.msg_flags);
}

static void errors(void) {
  struct talk t = talk(false);
  R(sendto(t.fd, "x", 1, 0, (struct sockaddr *)&t.to, 3));
  R(sendto(t.fd, "x", 1, 0, NULL, 0));
  R(sendto(t.fd, "x", 1, MSG_OOB, (struct sockaddr *)&t.to, t.length));
  struct sockaddr_storage zero = to_peer(0, &t.length);
  R(sendto(t.fd, "x", 1, 0, (struct sockaddr *)&zero, t.length));
  R(listen(t.fd, 5));
  FD(accept(t.fd, NULL, NULL));
  R(recv(t.fd, data, 10, MSG_OOB | MSG_DONTWAIT));
  zero.ss_family = AF_UNIX;
  R(sendto(t.fd, "x", 1, 0, (struct sockaddr *)&zero, t.length));
  R(shutdown(t.fd, SHUT_RD));
  struct timeval limit = {.tv_usec = 30000};
  R(setsockopt(t.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
  R(recv(t.fd, data, 10, 0));
  R(close(t.fd));
  R(sendto(t.fd, "x", 1, 0, (struct sockaddr *)&t.to, t.length));
}

static void shut(void) {
  struct talk t = talk(false);
  R(connect(t.fd, (struct sockaddr *)&t.to, t.length));
  R(shutdown(t.fd, SHUT_WR));
  R(send(t.fd, "x", 1, MSG_NOSIGNAL));
  R(shutdown(t.fd, SHUT_RD));
  R(recv(t.fd, data, 10, 0));
  struct pollfd one = {.fd = t.fd, .events = POLLIN | POLLOUT | POLLRDHUP};
  R(poll(&one, 1, 0));
  line("poll %s", events(one.revents));
}

static void corked(void) {
  struct talk t = talk(false);
  R(connect(t.fd, (struct sockaddr *)&t.to, t.length));
  R(send(t.fd, "one ", 4, MSG_MORE));
  R(send(t.fd, "two ", 4, MSG_MORE));
  R(send(t.fd, "three", 5, 0));
  peer_gets(t);
}

// To the own address, at a port that nobody has.
static void refused_by_self(void) {
  int fd = datagram(), other = datagram(), port = bind_own(other, false, 0);
  R(close(other));
  socklen_t length;
  struct sockaddr_storage name = to_own(port, &length);
  R(connect(fd, (struct sockaddr *)&name, length));
  R(send(fd, "x", 1, 0));
  line("poll %s", events(until(fd, POLLERR)));
  R(recv(fd, data, 10, MSG_DONTWAIT));
  R(recv(fd, data, 10, MSG_DONTWAIT));
  int plain = datagram();
  R(sendto(plain, "x", 1, 0, (struct sockaddr *)&name, length));
  pause_ms(30);
  R(recv(plain, data, 10, MSG_DONTWAIT));
}

// A process asks itself, and a child of it answers: the client's port was leased, and the child has never heard of it.
static void answered_by_a_child(void) {
  int server = datagram(), client = datagram(), status = -1;
  socklen_t length;
  struct sockaddr_storage name = to_own(bind_own(server, false, 0), &length), from;
  R(sendto(client, "question", 8, 0, (struct sockaddr *)&name, length));
  length = sizeof from;
  R(recvfrom(server, data, 100, 0, (struct sockaddr *)&from, &length));
  YES(((struct sockaddr_in *)&from)->sin_port == htons(port_of(client)));
  pid_t child = fork();
  if (child == 0) _exit(sendto(server, "answer", 6, 0, (struct sockaddr *)&from, length) != 6);
  line("poll %s", events(until(client, POLLIN)));
  R(recv(client, data, 100, MSG_DONTWAIT));
  waitpid(child, &status, 0);
  line("the child ended with %d", status);
}

// The time of a call for several messages is looked at when one has come.
static void several_in_time(void) {
  struct talk t = talk(false);
  struct iovec parts[4];
  struct mmsghdr messages[4] = {0};
  struct timespec limit = {.tv_nsec = 100000000};
  for (int i = 0; i < 4; i++) {
    parts[i] = (struct iovec){data + 100 * i, 100};
    messages[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1};
  }
  peer_sends_to(t, 10);
  peer_sends_to(t, 11);
  remote_later(300, "sendto %d %d %d 12", t.peer, version(), port_of(t.fd));
  R(recvmmsg(t.fd, messages, 4, 0, &limit));
  line("left %ld.%09ld", (long)limit.tv_sec, limit.tv_nsec);
  for (int i = 0; i < 3; i++) line("length %u", messages[i].msg_len);
}

// What is bound to a device hears of nothing that comes elsewhere, whenever that was said; and again when it is free.
static void of_a_device(void) {
  struct talk t = talk(true);
  struct pollfd one = {.fd = t.fd, .events = POLLIN};
  peer_sends_to(t, 10);
  R(poll(&one, 1, 3000));
  R(recv(t.fd, data, 100, MSG_DONTWAIT));
  R(setsockopt(t.fd, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3));
  peer_sends_to(t, 11);
  R(poll(&one, 1, 100));
  R(recv(t.fd, data, 100, MSG_DONTWAIT));
  R(setsockopt(t.fd, SOL_SOCKET, SO_BINDTODEVICE, "", 0));
  peer_sends_to(t, 12);
  R(poll(&one, 1, 3000));
  R(recv(t.fd, data, 100, MSG_DONTWAIT));
}

const struct test udp_cases[] = {
    {"udp unconnected", unconnected, FAMILIES},
    {"udp from one address", from_one_address, FAMILIES},
    {"udp unbound", unbound, FAMILIES},
    {"udp connected", connected, FAMILIES},
    {"udp refused", refused, FAMILIES},
    {"udp refused by self", refused_by_self, FAMILIES},
    {"udp answered by a child", answered_by_a_child, FAMILIES},
    {"udp truncation", truncation, FAMILIES},
    {"udp sizes", sizes, PASSIVE4 | PASSIVE6},
    {"udp several", several, FAMILIES},
    {"udp several in time", several_in_time, PASSIVE4},
    {"udp packet info", packet_info, FAMILIES},
    {"udp errors", errors, FAMILIES},
    {"udp shut", shut, FAMILIES},
    {"udp of a device", of_a_device, PASSIVE4 | PASSIVE6},
    {"udp corked", corked, PASSIVE4 | PASSIVE6},
    END,
};
