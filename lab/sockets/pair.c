// Sockets, addresses and connections of the mode in which a case runs.
#include "sockets.h"

volatile sig_atomic_t signals, pipes;

static int wire_family(void) { return mode.family == AF_INET6 && !mode.mapped ? 6 : 4; }

int stream(void) { return socket(mode.family, SOCK_STREAM, 0); }
int datagram(void) { return socket(mode.family, SOCK_DGRAM, 0); }

static struct sockaddr_storage place(const char *v4, const char *v6, int port, socklen_t *length) {
  struct sockaddr_storage out = {0};
  if (mode.family == AF_INET) {
    struct sockaddr_in *in = (struct sockaddr_in *)&out;
    in->sin_family = AF_INET;
    in->sin_port = htons(port);
    inet_pton(AF_INET, v4, &in->sin_addr);
    *length = sizeof *in;
  } else {
    struct sockaddr_in6 *in = (struct sockaddr_in6 *)&out;
    char text[64];
    snprintf(text, sizeof text, mode.mapped ? "::ffff:%s" : "%s", mode.mapped ? v4 : v6);
    in->sin6_family = AF_INET6;
    in->sin6_port = htons(port);
    inet_pton(AF_INET6, text, &in->sin6_addr);
    *length = sizeof *in;
  }
  return out;
}

struct sockaddr_storage to_peer(int port, socklen_t *length) { return place(peer4, peer6, port, length); }
struct sockaddr_storage to_own(int port, socklen_t *length) { return place(own4, own6, port, length); }

int port_of(int fd) {
  struct sockaddr_storage name = {0};
  socklen_t length = sizeof name;
  if (getsockname(fd, (struct sockaddr *)&name, &length) < 0) return -1;
  return ntohs(((struct sockaddr_in *)&name)->sin_port);
}

int bind_own(int fd, bool any, int port) {
  socklen_t length;
  struct sockaddr_storage name = to_own(port, &length);
  if (any && mode.family == AF_INET) ((struct sockaddr_in *)&name)->sin_addr.s_addr = htonl(INADDR_ANY);
  if (any && mode.family == AF_INET6) ((struct sockaddr_in6 *)&name)->sin6_addr = in6addr_any;
  if (bind(fd, (struct sockaddr *)&name, length) < 0) return -1;
  return port_of(fd);
}

int listening(int backlog) {
  int fd = stream();
  if (bind_own(fd, true, 0) < 0 || listen(fd, backlog) < 0) {
    line("cannot listen: %s", error_name(errno));
    _exit(4);
  }
  return fd;
}

static void give_up(const char *what) {
  line("no connection: %s: %s", what, error_name(errno));
  _exit(4);
}

struct pair pair(void) {
  struct pair p = {.fd = -1, .listener = -1};
  if (mode.passive) {
    p.listener = listening(16);
    p.port = port_of(p.listener);
    p.peer = remote("connect %d %d", wire_family(), p.port);
    if (p.peer < 0) give_up("the peer cannot connect");
    if (!(until(p.listener, POLLIN) & POLLIN)) give_up("nothing to accept");
    p.fd = accept(p.listener, NULL, NULL);
    if (p.fd < 0) give_up("accept");
  } else {
    int number = remote("listen %d 16", wire_family()), port = remote("port %d", number);
    socklen_t length;
    struct sockaddr_storage name = to_peer(port, &length);
    p.fd = stream();
    if (connect(p.fd, (struct sockaddr *)&name, length) < 0) give_up("connect");
    p.peer = remote("accept %d", number);
    if (p.peer < 0) give_up("the peer cannot accept");
    p.port = port_of(p.fd);
  }
  return p;
}

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

bool arrived(int fd, int length) {
  int64_t end = now_ms() + 3000;
  int there = 0;
  while (ioctl(fd, FIONREAD, &there) == 0 && there < length) {
    if (now_ms() > end) {
      line("only %d of %d bytes arrived", there, length);
      return false;
    }
    struct pollfd wait = {.fd = -1};
    poll(&wait, 1, 2);
  }
  return true;
}

short until(int fd, short wanted) {
  int64_t end = now_ms() + 3000;
  struct pollfd wait = {.fd = fd, .events = wanted};
  while (now_ms() < end) {
    wait.revents = 0;
    poll(&wait, 1, 100);
    if (wait.revents & (wanted | POLLNVAL)) return wait.revents;
  }
  line("%s never came, only %s", events(wanted), events(wait.revents));
  return wait.revents;
}

// Runs the stack that this process may have, as any poll does.
void pause_ms(int milliseconds) {
  int64_t end = now_ms() + milliseconds;
  for (int64_t left = milliseconds; left > 0; left = end - now_ms()) poll(NULL, 0, left);
}

void nonblocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

void pattern(void *data, size_t length, size_t offset) {
  for (size_t i = 0; i < length; i++) {
    uint64_t x = (offset + i + 1) * 0x9e3779b97f4a7c15;
    ((uint8_t *)data)[i] = (x ^ (x >> 29)) >> 24;
  }
}

int send_all(int fd, size_t length, size_t offset) {
  uint8_t *data = malloc(length);
  size_t done = 0;
  pattern(data, length, offset);
  while (done < length) {
    ssize_t n = send(fd, data + done, length - done, MSG_NOSIGNAL);
    if (n <= 0) break;
    done += n;
  }
  free(data);
  return done;
}

static void note(int number) {
  signals++;
  if (number == SIGPIPE) pipes++;
}

void catch_signal(int number, int flags) {
  struct sigaction action = {.sa_handler = note, .sa_flags = flags};
  sigaction(number, &action, NULL);
}
