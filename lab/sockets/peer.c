// The peer: does on the kernel's stack what subjects tell it, each in a process of its own.
#include "sockets.h"
#include "peer.h"
#include <sys/un.h>

static struct {
  int fd;
  size_t sent;
} held[1024];
static int count;

static int hold(int fd) {
  if (fd < 0) return -1;
  if (count == 1024) _exit(5);
  held[count].fd = fd;
  struct timeval limit = {.tv_sec = 5};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  return count++;
}

// A socket bound to the peer's own address: TYPE as socket(2) has it.
static int bound(int version, int type) {
  mode.family = version == 6 ? AF_INET6 : AF_INET;
  mode.mapped = false;
  int fd = socket(mode.family, type, 0);
  return fd < 0 || bind_own(fd, false, 0) < 0 ? -1 : fd;
}

static int make_listener(int version, int backlog) {
  int fd = bound(version, SOCK_STREAM);
  return fd < 0 || listen(fd, backlog) < 0 ? -1 : hold(fd);
}

static int make_connection(int version, int port) {
  socklen_t length;
  mode.family = version == 6 ? AF_INET6 : AF_INET;
  struct sockaddr_storage name = to_peer(port, &length);
  int number = hold(stream());
  return connect(held[number].fd, (struct sockaddr *)&name, length) < 0 ? -errno : number;
}

static int unused_port(int version, int type) {
  int fd = bound(version, type), port = port_of(fd);
  close(fd);
  return port;
}

static int send_pattern(int number, int length) {
  int done = send_all(held[number].fd, length, held[number].sent);
  held[number].sent += done;
  return done;
}

static int send_datagram(int number, int version, int port, int length) {
  uint8_t data[65536];
  socklen_t size;
  mode.family = version == 6 ? AF_INET6 : AF_INET;
  struct sockaddr_storage name = to_peer(port, &size);
  pattern(data, length, 0);
  return sendto(held[number].fd, data, length, 0, (struct sockaddr *)&name, size);
}

static int give_back(int number) {
  int fd = held[number].fd;
  held[number].fd = -1;
  return close(fd);
}

static int reset(int number) {
  struct linger now = {.l_onoff = 1};
  setsockopt(held[number].fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  return give_back(number);
}

// Reads until LENGTH bytes, the end or an error: 'COUNT bytes HASH, ENDED HOW'.
static void read_all(int number, int length, char *answer) {
  uint8_t *data = malloc(length + 1);
  int done = 0;
  const char *end = "more may come";
  while (done < length) {
    ssize_t n = recv(held[number].fd, data + done, length - done, 0);
    if (n > 0) { done += n; continue; }
    end = n == 0 ? "then the end" : error_name(errno);
    break;
  }
  sprintf(answer, "%d bytes %016llx, %s", done, (unsigned long long)hash_of(data, done), end);
  free(data);
}

// One datagram: 'COUNT bytes HASH from PORT'.
static void read_datagram(int number, char *answer) {
  uint8_t data[65536];
  struct sockaddr_storage from = {0};
  socklen_t length = sizeof from;
  ssize_t n = recvfrom(held[number].fd, data, sizeof data, 0, (struct sockaddr *)&from, &length);
  if (n < 0)
    sprintf(answer, "-1 %s", error_name(errno));
  else
    sprintf(answer, "%zd bytes %016llx from %d", n, (unsigned long long)hash_of(data, n),
            ntohs(((struct sockaddr_in *)&from)->sin_port));
}

static int state_of(int number) {
  struct tcp_info info;
  socklen_t length = sizeof info;
  if (getsockopt(held[number].fd, IPPROTO_TCP, TCP_INFO, &info, &length) < 0) return -1;
  return info.tcpi_state;
}

static int set(int number, int level, int option, int value) {
  return setsockopt(held[number].fd, level, option, &value, sizeof value);
}

static void act(char *text) {
  int a = 0, b = 0, c = 0, d = 0, at = 0, out = -1;
  char word[16];
  if (sscanf(text, "%15s %n", word, &at) < 1) return;
  const char *rest = text + at;
  sscanf(rest, "%d %d %d %d", &a, &b, &c, &d);
#define IS(name) (strcmp(word, name) == 0)
  if (IS("read")) return read_all(a, b, text);
  if (IS("datagram")) return read_datagram(a, text);
  if (IS("listen")) out = make_listener(a, b);
  if (IS("port")) out = port_of(held[a].fd);
  if (IS("accept")) out = hold(accept(held[a].fd, NULL, NULL));
  if (IS("connect")) out = make_connection(a, b);
  if (IS("closed")) out = unused_port(a, b);
  if (IS("udp")) out = hold(bound(a, SOCK_DGRAM));
  if (IS("sendto")) out = send_datagram(a, b, c, d);
  if (IS("send")) out = send_pattern(a, b);
  if (IS("urgent")) out = send(held[a].fd, "!", 1, MSG_OOB);
  if (IS("shutdown")) out = shutdown(held[a].fd, b);
  if (IS("close")) out = give_back(a);
  if (IS("reset")) out = reset(a);
  if (IS("state")) out = state_of(a);
  if (IS("set")) out = set(a, b, c, d);
  if (IS("nothing")) out = 0;
  sprintf(text, "%d", out);
}

static void attend(int fd) {
  char text[256];
  ssize_t length;
  while ((length = recv(fd, text, sizeof text - 1, 0)) > 0) {
    int wait = 0, at = 0;
    text[length] = 0;
    if (sscanf(text, "later %d %n", &wait, &at) == 1) {
      // The answer goes ahead of the deed.
      send(fd, "0", 1, MSG_NOSIGNAL);
      usleep(wait * 1000);
      memmove(text, text + at, length - at + 1);
      act(text);
    } else {
      act(text);
      send(fd, text, strlen(text), MSG_NOSIGNAL);
    }
  }
}

int be_peer(void) {
  struct sockaddr_un where = {.sun_family = AF_UNIX};
  int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  snprintf(where.sun_path, sizeof where.sun_path, "%s", control_path);
  if (bind(fd, (struct sockaddr *)&where, sizeof where) < 0 || listen(fd, 64) < 0) {
    fprintf(stderr, "sockets: %s: %s\n", control_path, strerror(errno));
    return 1;
  }
  signal(SIGCHLD, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  for (;;) {
    int subject = accept(fd, NULL, NULL);
    if (subject >= 0 && fork() == 0) {
      attend(subject);
      _exit(0);
    }
    close(subject);
  }
}
