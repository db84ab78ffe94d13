// Datagrams that no link takes whole.
#include "talk.h"

static uint8_t data[70000];

static void set(int fd, int level, int name, int value) {
  R(setsockopt(fd, level, name, &value, sizeof value));
}

static void path(void) {
  struct talk t = talk(false);
  pattern(data, sizeof data, 0);
  R(connect(t.fd, (struct sockaddr *)&t.to, t.length));
  bool four = version() == 4;
  int level = four ? IPPROTO_IP : IPPROTO_IPV6, whole = four ? 1472 : 1452;
  int mtu = 0;
  socklen_t length = sizeof mtu;
  R(getsockopt(t.fd, level, four ? IP_MTU : IPV6_MTU, &mtu, &length));
  line("MTU %d", mtu);
  if (!four) {
    // An address, and the MTU.
    uint32_t info[8] = {0};
    length = sizeof info;
    R(getsockopt(t.fd, level, IPV6_PATHMTU, info, &length));
    line("MTU %u", info[7]);
  }
  // IPv6's have the same numbers.
  static const int ways[] = {IP_PMTUDISC_DONT, IP_PMTUDISC_WANT, IP_PMTUDISC_DO, IP_PMTUDISC_PROBE, IP_PMTUDISC_OMIT};
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    line("way %d", ways[i]);
    set(t.fd, level, four ? IP_MTU_DISCOVER : IPV6_MTU_DISCOVER, ways[i]);
    R(send(t.fd, data, whole, 0));
    peer_gets(t);
    if (R(send(t.fd, data, whole + 1, 0)) > 0) peer_gets(t);
    if (R(send(t.fd, data, 30000, 0)) > 0) peer_gets(t);
  }
}

static void send_buffer(void) {
  struct talk t = talk(false);
  pattern(data, sizeof data, 0);
  set(t.fd, SOL_SOCKET, SO_SNDBUF, 1);
  R(sendto(t.fd, data, 60000, 0, (struct sockaddr *)&t.to, t.length));
  R(sendto(t.fd, data, 1000, 0, (struct sockaddr *)&t.to, t.length));
  peer_gets(t);
  set(t.fd, SOL_SOCKET, SO_SNDBUF, 200000);
  R(sendto(t.fd, data, 60000, 0, (struct sockaddr *)&t.to, t.length));
  peer_gets(t);
}

static void receive_buffer(void) {
  struct talk t = talk(true);
  set(t.fd, SOL_SOCKET, SO_RCVBUF, 1);
  for (int i = 0; i < 2; i++) {
    peer_sends_to(t, 20000);
    until(t.fd, POLLIN);
    peer_sends_to(t, 10);
    peer_sends_to(t, 5000);
    pause_ms(30);
    R(recv(t.fd, data, sizeof data, MSG_DONTWAIT));
    bytes("data", data, 20000);
    R(recv(t.fd, data, sizeof data, MSG_DONTWAIT));
  }
}

static void receive(void) {
  struct talk t = talk(true);
  for (int i = 0; i < 4; i++) peer_sends_to(t, 30000);
  until(t.fd, POLLIN);
  pause_ms(30);
  int there = -1;
  R(ioctl(t.fd, FIONREAD, &there));
  line("FIONREAD %d", there);
  R(recv(t.fd, data, 20000, MSG_PEEK));
  R(recv(t.fd, data, 10, MSG_PEEK | MSG_TRUNC));
  struct iovec parts[] = {{data, 10000}, {data + 10000, 10000}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
  R(recvmsg(t.fd, &message, 0));
  line("flags %#x", message.msg_flags);
  bytes("data", data, 20000);
  struct iovec whole[] = {{data, 30000}, {data + 30000, 20000}};
  struct mmsghdr messages[3] = {0};
  for (int i = 0; i < 2; i++) messages[i].msg_hdr = (struct msghdr){.msg_iov = &whole[i], .msg_iovlen = 1};
  R(recvmmsg(t.fd, messages, 2, MSG_DONTWAIT, NULL));
  line("lengths %u %u, flags %#x %#x", messages[0].msg_len, messages[1].msg_len, messages[0].msg_hdr.msg_flags,
       messages[1].msg_hdr.msg_flags);
  bytes("data", data, 50000);
  R(recv(t.fd, data, sizeof data, MSG_DONTWAIT | MSG_TRUNC));
  R(recv(t.fd, data, sizeof data, MSG_DONTWAIT));
}

static void segments(void) {
  struct talk t = talk(false);
  pattern(data, sizeof data, 0);
  R(connect(t.fd, (struct sockaddr *)&t.to, t.length));
  set(t.fd, IPPROTO_UDP, 103, 1000);
  R(send(t.fd, data, 2500, 0));
  peer_gets(t), peer_gets(t), peer_gets(t);
  set(t.fd, IPPROTO_UDP, 103, 1473);
  R(send(t.fd, data, 3000, 0));
  set(t.fd, IPPROTO_UDP, 103, 10);
  R(send(t.fd, data, 1281, 0));
  set(t.fd, IPPROTO_UDP, 103, 65536);
}

const struct test udp_long_cases[] = {
    {"udp path", path, PASSIVE4 | PASSIVE6},
    {"udp send buffer", send_buffer, PASSIVE4 | PASSIVE6},
    // Over IPv4 they do not come by a port of AF_PACKET, which has the kernel put fragments together and truncates the packet.
    {"udp receive buffer", receive_buffer, PASSIVE6},
    {"udp long ones received", receive, PASSIVE6},
    {"udp segments", segments, PASSIVE4 | PASSIVE6},
    END,
};
