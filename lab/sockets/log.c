// What the cases log. Each line is one write, so that processes and threads do not cut each other's.
#include "sockets.h"
#include <stdarg.h>

char prefix[128];

void line(const char *format, ...) {
  char text[1024];
  int length = snprintf(text, sizeof text, "%s: ", prefix);
  va_list arguments;
  va_start(arguments, format);
  length += vsnprintf(text + length, sizeof text - length - 1, format, arguments);
  va_end(arguments);
  if (length > (int)sizeof text - 2) length = sizeof text - 2;
  text[length++] = '\n';
  if (write(STDOUT_FILENO, text, length) != length) _exit(3);
}

const char *error_name(int error) {
  const char *name = error == EAGAIN ? "EAGAIN" : strerrorname_np(error);
  return name ? name : "?";
}

long result(const char *call, long value, int error) {
  if (value < 0)
    line("%s = %ld %s", call, value, error_name(error));
  else
    line("%s = %ld", call, value);
  errno = error;
  return value;
}

int descriptor(const char *call, int fd, int error) {
  if (fd < 0)
    line("%s = %d %s", call, fd, error_name(error));
  else
    line("%s = descriptor%s", call, fd < 1000 ? "" : " of a high number");
  errno = error;
  return fd;
}

void yes(const char *what, bool value) { line("%s: %s", what, value ? "yes" : "no"); }

uint64_t hash_of(const void *data, size_t length) {
  // FNV-1a, 64 bits.
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < length; i++) hash = (hash ^ ((const uint8_t *)data)[i]) * 0x100000001b3;
  return hash;
}

void bytes(const char *what, const void *data, long length) {
  line("%s: %ld bytes %016llx", what, length, (unsigned long long)hash_of(data, length > 0 ? length : 0));
}

const char *events(unsigned mask) {
  static const struct { unsigned bit; const char *name; } names[] = {
      {POLLIN, "IN"},         {POLLPRI, "PRI"},       {POLLOUT, "OUT"},       {POLLERR, "ERR"},
      {POLLHUP, "HUP"},       {POLLNVAL, "NVAL"},     {POLLRDNORM, "RDNORM"}, {POLLRDBAND, "RDBAND"},
      {POLLWRNORM, "WRNORM"}, {POLLWRBAND, "WRBAND"}, {POLLRDHUP, "RDHUP"},
  };
  static char text[4][128];
  static unsigned turn;
  char *out = text[turn++ % 4];
  out[0] = 0;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (mask & names[i].bit) {
      if (out[0]) strcat(out, "|");
      strcat(out, names[i].name);
      mask &= ~names[i].bit;
    }
  if (mask) sprintf(out + strlen(out), "|%#x", mask);
  return out[0] ? out : "0";
}

void address(const char *what, const void *given, socklen_t length) {
  const struct sockaddr *any = given;
  char text[INET6_ADDRSTRLEN] = "?";
  int port = -1;
  if (length < sizeof any->sa_family) {
    line("%s: no address, length %u", what, length);
    return;
  }
  if (any->sa_family == AF_INET && length >= sizeof(struct sockaddr_in)) {
    const struct sockaddr_in *v4 = given;
    inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text);
    port = ntohs(v4->sin_port);
  } else if (any->sa_family == AF_INET6 && length >= sizeof(struct sockaddr_in6)) {
    const struct sockaddr_in6 *v6 = given;
    inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text);
    port = ntohs(v6->sin6_port);
  }
  line("%s: family %d, %s, port %s, length %u", what, any->sa_family, text, port == 0 ? "0" : "given", length);
}
