// IPv6 and IPv4 on one socket, and the sockets that are not Millrace's to serve.
#include "cases.h"
#include <linux/netlink.h>
#include <sys/un.h>

static uint8_t data[4096];

static void dual_stack(void) {
  int server = listening(5), port = port_of(server);
  for (int version = 4; version <= 6; version += 2) {
    remote("connect %d %d", version, port);
    until(server, POLLIN);
    struct sockaddr_storage name;
    socklen_t length = sizeof name;
    int fd = FD(accept(server, (struct sockaddr *)&name, &length));
    address("from", &name, length);
    length = sizeof name;
    R(getsockname(fd, (struct sockaddr *)&name, &length));
    address("own", &name, length);
    int value = -1;
    length = sizeof value;
    R(getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &value, &length));
    line("SO_DOMAIN %d", value);
    R(getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &value, &length));
    line("IPV6_V6ONLY %d", value);
  }
}

static void six_only(void) {
  int server, four, on = 1, port;
  struct sockaddr_in name = {.sin_family = AF_INET};
  // A port that is free for IPv4: connections of cases before may still be in TIME-WAIT.
  for (int i = 0; i < 20; i++) {
    server = stream();
    four = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(server, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    port = bind_own(server, true, 0);
    name.sin_port = htons(port);
    if (bind(four, (struct sockaddr *)&name, sizeof name) == 0) break;
    close(server);
    close(four);
  }
  YES(port_of(four) == port);
  R(listen(server, 5));
  line("IPv4 %d", remote("connect 4 %d", port));
  line("IPv6 %d", remote("connect 6 %d", port) >= 0);
  on = 0;
  R(setsockopt(server, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on));
  R(listen(four, 5));
  line("IPv4 %d", remote("connect 4 %d", port) >= 0);
  until(four, POLLIN);
  FD(accept(four, NULL, NULL));
}

static void taken_by_both(void) {
  int server = listening(5), four = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(port_of(server))};
  R(bind(four, (struct sockaddr *)&name, sizeof name));
}

static void six_only_and_mapped(void) {
  int fd = stream(), on = 1;
  socklen_t length;
  R(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on));
  struct sockaddr_storage name = to_own(0, &length);
  R(bind(fd, (struct sockaddr *)&name, length));
  name = to_peer(80, &length);
  R(connect(fd, (struct sockaddr *)&name, length));
}

static void to_any(void) {
  // The wildcard as destination is the host itself.
  int server = listening(5), fd = stream();
  struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(port_of(server))};
  R(connect(fd, (struct sockaddr *)&name, sizeof name));
  until(server, POLLIN);
  FD(accept(server, NULL, NULL));
}

static void unix_sockets(void) {
  int ends[2];
  R(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
  R(send(ends[0], "word", 4, 0));
  R(recv(ends[1], data, 10, 0));
  R(shutdown(ends[0], SHUT_WR));
  R(recv(ends[1], data, 10, 0));
  int server = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  socklen_t length = sizeof(sa_family_t);
  R(bind(server, (struct sockaddr *)&name, length));
  R(listen(server, 5));
  length = sizeof name;
  R(getsockname(server, (struct sockaddr *)&name, &length));
  R(connect(client, (struct sockaddr *)&name, length));
  int fd = FD(accept(server, NULL, NULL));
  R(write(client, "hello", 5));
  R(read(fd, data, 10));
  R(fcntl(fd, F_GETFL));
  R(ioctl(fd, FIONREAD, data));
  int packets[2];
  R(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, packets));
  R(send(packets[0], "packet", 6, 0));
  R(recv(packets[1], data, 3, MSG_TRUNC));
}

static void netlink(void) {
  int fd = FD(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
  struct sockaddr_nl name = {.nl_family = AF_NETLINK};
  R(bind(fd, (struct sockaddr *)&name, sizeof name));
  struct { struct nlmsghdr header; unsigned char family; } request = {
      .header = {.nlmsg_len = sizeof request, .nlmsg_type = 18, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}};
  YES(send(fd, &request, sizeof request, 0) == sizeof request);
  YES(recv(fd, data, sizeof data, 0) > 0);
}

// Over the kernel's loopback, bound there and not elsewhere.
static void loopback_only(void) {
  int server = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  R(bind(server, (struct sockaddr *)&name, sizeof name));
  R(listen(server, 5));
  line("from outside %d", remote("connect 4 %d", port_of(server)));
  name.sin_port = htons(port_of(server));
  R(connect(fd, (struct sockaddr *)&name, sizeof name));
  int accepted = FD(accept(server, NULL, NULL));
  R(send(fd, "word", 4, 0));
  R(recv(accepted, data, 10, 0));
  R(close(fd));
  R(recv(accepted, data, 10, 0));
}

// UDP-Lite is the kernel's alone.
static void udp_lite(void) {
  int server = FD(socket(AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE)), fd = FD(socket(AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE));
  struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof name;
  R(bind(server, (struct sockaddr *)&name, length));
  R(getsockname(server, (struct sockaddr *)&name, &length));
  R(connect(fd, (struct sockaddr *)&name, length));
  R(send(fd, "word", 4, 0));
  until(server, POLLIN);
  length = sizeof name;
  R(recvfrom(server, data, 10, 0, (struct sockaddr *)&name, &length));
  R(sendto(server, "answer", 6, 0, (struct sockaddr *)&name, length));
  until(fd, POLLIN);
  R(recv(fd, data, 10, 0));
  int value = -1;
  length = sizeof value;
  R(getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &value, &length));
  line("SO_PROTOCOL %d", value);
  R(close(server));
  R(send(fd, "x", 1, 0));
  until(fd, POLLERR);
  R(recv(fd, data, 10, MSG_DONTWAIT));
}

static void foreign_address(void) {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in name = {.sin_family = AF_INET};
  inet_pton(AF_INET, "203.0.113.7", &name.sin_addr);
  R(bind(fd, (struct sockaddr *)&name, sizeof name));
  int six = socket(AF_INET6, SOCK_STREAM, 0);
  struct sockaddr_in6 name6 = {.sin6_family = AF_INET6};
  inet_pton(AF_INET6, "2001:db8:ffff::7", &name6.sin6_addr);
  R(bind(six, (struct sockaddr *)&name6, sizeof name6));
}

const struct test family_cases[] = {
    {"dual stack", dual_stack, PASSIVE6},
    {"dual stack, IPv6 only", six_only, PASSIVE6},
    {"dual stack, port taken", taken_by_both, PASSIVE6},
    {"dual stack, mapped on IPv6 only", six_only_and_mapped, MAPPED},
    {"connect to the wildcard", to_any, PASSIVE4},
    {"unix sockets", unix_sockets, ONCE},
    {"netlink", netlink, ONCE},
    {"loopback only", loopback_only, ONCE},
    {"udp-lite", udp_lite, ONCE},
    {"bind to a foreign address", foreign_address, ONCE},
    END,
};
