// Every option of SOL_SOCKET, IPPROTO_TCP, IPPROTO_IP and IPPROTO_IPV6 on every kind of socket: its value at first,
// what setting it answers, what it is then, and lengths that are wrong.
#include "cases.h"
#include <linux/udp.h>

// <linux/in6.h> and <netinet/in.h> exclude each other, and old headers lack the newest.
enum {
  IP_LOCAL_PORT_RANGE = 51,
  IP_PROTOCOL = 52,
  IPV6_FLOWINFO = 11,
  IPV6_FLOWLABEL_MGR = 32,
  IPV6_FLOWINFO_SEND = 33,
};

struct option {
  int level, number;
  const char *name;
  bool varies; // a value of this host, this moment or this path: only the answers are compared
};
#define OF(level, name) {level, name, #level " " #name, false}
#define VARIES(level, name) {level, name, #level " " #name, true}
static const struct option all[] = {
#include "option_list.h"
};

enum kind { FRESH, LISTENING, CONNECTED, DATAGRAM };

static int make(enum kind kind) {
  switch (kind) {
    case LISTENING: return listening(5);
    case CONNECTED: return pair().fd;
    case DATAGRAM: return datagram();
    default: return stream();
  }
}

static void show(const struct option *option, int fd, const char *what, socklen_t given) {
  uint8_t value[512];
  socklen_t length = given;
  memset(value, 0xaa, sizeof value);
  if (getsockopt(fd, option->level, option->number, value, &length) < 0) {
    line("%s: %s: %s", option->name, what, error_name(errno));
    return;
  }
  char text[80] = "a value";
  if (!option->varies) {
    int at = 0;
    for (socklen_t i = 0; i < length && i < 32; i++) at += sprintf(text + at, "%02x", value[i]);
    text[at] = 0;
  }
  line("%s: %s: length %u, %s", option->name, what, option->varies ? 0 : length, text);
}

static void try(const struct option *option, int fd, const char *what, const void *value, socklen_t length) {
  int done = setsockopt(fd, option->level, option->number, value, length);
  line("%s: set to %s: %s", option->name, what, done < 0 ? error_name(errno) : "done");
  show(option, fd, "then", 512);
}

// Options whose setting ends the usefulness of the process's socket or needs what no test has.
static bool only_read(const struct option *option) {
  return option->level == SOL_SOCKET && (option->number == SO_ATTACH_FILTER || option->number == SO_ATTACH_BPF ||
                                         option->number == SO_ATTACH_REUSEPORT_CBPF ||
                                         option->number == SO_ATTACH_REUSEPORT_EBPF);
}

// The kernel gives a connection buffers as it goes, until the program has said how large they are to be.
static bool grows(const struct option *option) {
  return option->level == SOL_SOCKET && (option->number == SO_SNDBUF || option->number == SO_RCVBUF);
}

static void one(const struct option *option, int fd, enum kind kind) {
  static const struct { const char *name; int value; } values[] = {
      {"1", 1}, {"0", 0}, {"2", 2}, {"100", 100}, {"70000", 70000}, {"-1", -1}, {"INT_MAX", INT_MAX}, {"INT_MIN", INT_MIN},
  };
  struct option at_first = *option;
  if (kind == CONNECTED && grows(option)) at_first.varies = true;
  show(&at_first, fd, "at first", 512);
  show(&at_first, fd, "4 bytes of it", 4);
  show(&at_first, fd, "1 byte of it", 1);
  show(&at_first, fd, "0 bytes of it", 0);
  show(&at_first, fd, "-1 bytes of it", -1);
  if (only_read(option)) return;
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) try(option, fd, values[i].name, &values[i].value, 4);
  int two[4] = {1, 1, 0, 0};
  try(option, fd, "one byte", two, 1);
  try(option, fd, "no byte", two, 0);
  try(option, fd, "three bytes", two, 3);
  try(option, fd, "8 bytes", two, 8);
  try(option, fd, "16 bytes", two, 16);
  try(option, fd, "-1 bytes", two, -1);
  try(option, fd, "NULL", NULL, 4);
  try(option, fd, "0 again", &(int){0}, 4);
}

static void run(enum kind kind) {
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    int fd = make(kind);
    one(&all[i], fd, kind);
    close(fd);
  }
}
static void fresh(void) { run(FRESH); }
static void listener(void) { run(LISTENING); }
static void connected(void) { run(CONNECTED); }
static void datagrams(void) { run(DATAGRAM); }

static void unknown(void) {
  struct pair p = pair();
  int value = 0;
  socklen_t length = sizeof value;
  static const int levels[] = {-1, SOL_SOCKET, IPPROTO_TCP, IPPROTO_IP, IPPROTO_IPV6, IPPROTO_UDP, SOL_NETLINK, 9999};
  for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
    line("level %d", levels[i]);
    R(getsockopt(p.fd, levels[i], 12345, &value, &length));
    R(setsockopt(p.fd, levels[i], 12345, &value, sizeof value));
    R(getsockopt(p.fd, levels[i], -1, &value, &length));
  }
  R(getsockopt(-1, SOL_SOCKET, SO_TYPE, &value, &length));
  R(setsockopt(-1, SOL_SOCKET, SO_KEEPALIVE, &value, sizeof value));
  R(getsockopt(STDOUT_FILENO, SOL_SOCKET, SO_TYPE, &value, &length));
  R(setsockopt(STDOUT_FILENO, SOL_SOCKET, SO_KEEPALIVE, &value, sizeof value));
  R(getsockopt(p.fd, SOL_SOCKET, SO_TYPE, NULL, &length));
  R(getsockopt(p.fd, SOL_SOCKET, SO_TYPE, &value, NULL));
}

// Options of more than one word, with sensible values.
static void structures(void) {
  struct pair p = pair();
  struct linger linger = {.l_onoff = 5, .l_linger = 12};
  struct timeval time = {.tv_sec = 3, .tv_usec = 500000};
  static const struct option of_linger = OF(SOL_SOCKET, SO_LINGER), of_receive = OF(SOL_SOCKET, SO_RCVTIMEO),
                             of_send = OF(SOL_SOCKET, SO_SNDTIMEO), of_congestion = OF(IPPROTO_TCP, TCP_CONGESTION);
  try(&of_linger, p.fd, "5, 12", &linger, sizeof linger);
  try(&of_receive, p.fd, "3.5 s", &time, sizeof time);
  try(&of_send, p.fd, "3.5 s", &time, sizeof time);
  time = (struct timeval){.tv_sec = 1, .tv_usec = 1000000};
  try(&of_receive, p.fd, "1,000,000 us", &time, sizeof time);
  time = (struct timeval){.tv_sec = -1};
  try(&of_receive, p.fd, "-1 s", &time, sizeof time);
  try(&of_congestion, p.fd, "reno", "reno", 4);
  try(&of_congestion, p.fd, "cubic", "cubic", 5);
  try(&of_congestion, p.fd, "a name that nobody has", "nobody", 6);
  linger.l_onoff = 0;
  try(&of_linger, p.fd, "0, 12", &linger, sizeof linger);
}

// What is set of a socket before it connects or listens, its connections have.
static void set_before(void) {
  static const struct { struct option option; int value; socklen_t length; } early[] = {
      {OF(IPPROTO_TCP, TCP_MAXSEG), 1000, 4},        {OF(SOL_SOCKET, SO_MAX_PACING_RATE), 5000000, 8},
      {OF(IPPROTO_TCP, TCP_USER_TIMEOUT), 7000, 4},  {OF(IPPROTO_IP, IP_TOS), 0x28, 4},
      {OF(IPPROTO_IP, IP_TTL), 33, 4},               {OF(IPPROTO_IP, IP_MTU_DISCOVER), 2, 4},
  };
  enum { COUNT = sizeof early / sizeof *early };
  int fd = stream(), version = mode.family == AF_INET6 && !mode.mapped ? 6 : 4;
  for (int i = 0; i < COUNT; i++) {
    const struct option *option = &early[i].option;
    R(setsockopt(fd, option->level, option->number, &early[i].value, sizeof(int)));
  }
  if (mode.passive) {
    YES(bind_own(fd, true, 0) > 0);
    R(listen(fd, 5));
    remote("connect %d %d", version, port_of(fd));
    until(fd, POLLIN);
    fd = accept(fd, NULL, NULL);
  } else {
    int number = remote("listen %d 16", version);
    socklen_t length;
    struct sockaddr_storage name = to_peer(remote("port %d", number), &length);
    R(connect(fd, (struct sockaddr *)&name, length));
  }
  for (int i = 0; i < COUNT; i++) show(&early[i].option, fd, "of the connection", early[i].length);
}

// Buffers: doubled and bounded as the kernel does before it is asked on what.
static void buffers(void) {
  static const struct option options[] = {OF(SOL_SOCKET, SO_SNDBUF), OF(SOL_SOCKET, SO_RCVBUF)};
  static const int sizes[] = {0, 1, 1000, 2304, 4608, 10000, 100000, 212992, 1000000000};
  for (int i = 0; i < 2; i++)
    for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++) {
      int fd = stream();
      char text[32];
      sprintf(text, "%d", sizes[j]);
      try(&options[i], fd, text, &sizes[j], 4);
      close(fd);
    }
}

const struct test option_cases[] = {
    {"options fresh", fresh, PASSIVE4 | PASSIVE6},
    {"options listening", listener, PASSIVE4 | PASSIVE6},
    {"options connected", connected, ALL},
    {"options datagram", datagrams, PASSIVE4 | PASSIVE6},
    {"options unknown", unknown, BOTH},
    {"options of structures", structures, BOTH},
    {"options set before", set_before, ALL},
    {"options buffers", buffers, PASSIVE4},
    END,
};
