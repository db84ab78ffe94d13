// socket, bind, getsockname, getpeername.
#include "cases.h"

static void kinds(void) {
  FD(socket(AF_INET, SOCK_STREAM, 0));
  FD(socket(AF_INET, SOCK_STREAM, IPPROTO_TCP));
  FD(socket(AF_INET, SOCK_STREAM, IPPROTO_UDP));
  FD(socket(AF_INET, SOCK_DGRAM, IPPROTO_TCP));
  FD(socket(AF_INET, SOCK_DGRAM, IPPROTO_UDP));
  FD(socket(AF_INET, SOCK_SEQPACKET, 0));
  FD(socket(AF_INET, SOCK_RDM, 0));
  FD(socket(AF_INET, 99, 0));
  FD(socket(AF_INET, 0, 0));
  FD(socket(AF_INET, SOCK_STREAM, 255));
  FD(socket(AF_INET, SOCK_STREAM, -1));
  FD(socket(AF_INET, SOCK_STREAM, 1000));
  FD(socket(AF_INET, SOCK_STREAM | 0x100000, 0));
  FD(socket(AF_INET6, SOCK_STREAM, 0));
  FD(socket(AF_INET6, SOCK_DGRAM, IPPROTO_UDP));
  FD(socket(AF_INET6, SOCK_STREAM, IPPROTO_UDP));
  FD(socket(AF_UNSPEC, SOCK_STREAM, 0));
  FD(socket(-1, SOCK_STREAM, 0));
  FD(socket(999, SOCK_STREAM, 0));
  FD(socket(AF_UNIX, SOCK_STREAM, 0));
  FD(socket(AF_NETLINK, SOCK_RAW, 0));
}

static void creation_flags(void) {
  int plain = FD(stream());
  int both = FD(socket(mode.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  R(fcntl(plain, F_GETFD));
  R(fcntl(plain, F_GETFL));
  R(fcntl(both, F_GETFD));
  R(fcntl(both, F_GETFL));
  int pair[2];
  R(socketpair(mode.family, SOCK_STREAM, 0, pair));
  R(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
}

static void named(const char *what, int fd) {
  struct sockaddr_storage name;
  socklen_t length = sizeof name;
  line("%s", what);
  if (R(getsockname(fd, (struct sockaddr *)&name, &length)) == 0) address("own name", &name, length);
  length = sizeof name;
  if (R(getpeername(fd, (struct sockaddr *)&name, &length)) == 0) address("peer's name", &name, length);
}

static void names_before(void) {
  int fd = stream();
  named("fresh", fd);
  YES(bind_own(fd, true, 0) > 0);
  named("bound", fd);
  R(listen(fd, 5));
  named("listening", fd);
  int other = stream();
  YES(bind_own(other, false, 0) > 0);
  named("bound to one address", other);
  int unbound = stream();
  R(listen(unbound, 5));
  YES(port_of(unbound) > 0);
  named("listening without a bind", unbound);
  int udp = datagram();
  named("datagram", udp);
  YES(bind_own(udp, false, 0) > 0);
  named("datagram, bound", udp);
}

static void names_connected(void) {
  struct pair p = pair();
  named("connected", p.fd);
  YES(port_of(p.fd) == p.port);
  peer_closes(p.peer);
  until(p.fd, POLLRDHUP);
  named("the peer has closed", p.fd);
  R(shutdown(p.fd, SHUT_WR));
  pause_ms(50);
  struct sockaddr_storage name;
  socklen_t length = sizeof name;
  R(getpeername(p.fd, (struct sockaddr *)&name, &length));
}

static void name_lengths(void) {
  struct pair p = pair();
  struct sockaddr_storage name;
  for (int given = -1; given < 20; given += 7) {
    socklen_t length = given;
    memset(&name, 0xaa, sizeof name);
    line("given %d", given);
    R(getsockname(p.fd, (struct sockaddr *)&name, &length));
    line("length %d, byte 8 %s", (int)length, ((uint8_t *)&name)[8] == 0xaa ? "untouched" : "written");
    length = given;
    R(getpeername(p.fd, (struct sockaddr *)&name, &length));
    line("length %d", (int)length);
  }
  socklen_t length = sizeof name;
  R(getsockname(p.fd, NULL, &length));
  R(getpeername(p.fd, NULL, &length));
  R(getsockname(p.fd, (struct sockaddr *)&name, NULL));
  R(getsockname(-1, (struct sockaddr *)&name, &length));
  R(getpeername(STDOUT_FILENO, (struct sockaddr *)&name, &length));
}

static void bind_errors(void) {
  int fd = stream();
  socklen_t length;
  struct sockaddr_storage name = to_own(0, &length);
  struct sockaddr *any = (struct sockaddr *)&name;
  R(bind(fd, any, 0));
  R(bind(fd, any, 8));
  R(bind(fd, any, 200));
  R(bind(fd, NULL, length));
  R(bind(-1, any, length));
  R(bind(STDOUT_FILENO, any, length));
  any->sa_family = AF_UNIX;
  R(bind(fd, any, length));
  any->sa_family = AF_UNSPEC;
  R(bind(fd, any, length));
  any->sa_family = mode.family == AF_INET ? AF_INET6 : AF_INET;
  R(bind(fd, any, length));
  any->sa_family = mode.family;
  YES(bind_own(fd, false, 0) > 0);
  line("once more");
  YES(bind_own(fd, false, 0) > 0);
  line("errno %s", error_name(errno));
}

static void bind_taken(void) {
  int one = stream(), two = stream(), three = stream();
  int port = bind_own(one, false, 0);
  YES(port > 0);
  R(bind_own(two, false, port));
  R(listen(one, 5));
  R(bind_own(two, false, port));
  R(bind_own(two, true, port));
  int on = 1;
  R(setsockopt(two, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
  R(bind_own(two, false, port));
  R(setsockopt(three, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on));
  R(bind_own(three, false, port));
  R(close(one));
  YES(bind_own(two, false, port) == port);
  R(listen(two, 5));
}

static void bind_privileged(void) {
  if (getuid() == 0 && setuid(65534) < 0) return;
  int fd = stream();
  R(bind_own(fd, true, 81));
  int port = bind_own(fd, true, 0);
  YES(port > 1024);
}

static void bind_shared(void) {
  int on = 1, one = stream(), two = stream(), none = stream();
  R(setsockopt(one, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on));
  R(setsockopt(two, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on));
  int port = bind_own(one, true, 0);
  YES(bind_own(two, true, port) == port);
  R(listen(one, 5));
  R(listen(two, 5));
  R(bind_own(none, true, port));
}

const struct test address_cases[] = {
    {"kinds", kinds, ONCE},
    {"creation flags", creation_flags, FAMILIES},
    {"names before", names_before, PASSIVE4 | PASSIVE6},
    {"names connected", names_connected, ALL},
    {"name lengths", name_lengths, ALL},
    {"bind errors", bind_errors, PASSIVE4 | PASSIVE6},
    {"bind taken", bind_taken, FAMILIES},
    {"bind privileged", bind_privileged, PASSIVE4 | PASSIVE6},
    {"bind shared", bind_shared, FAMILIES},
    END,
};
