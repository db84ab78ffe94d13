// The subject's side of the conversation with its peer: one command, one answer, over a Unix socket.
#include "sockets.h"
#include <stdarg.h>
#include <sys/un.h>

int control = -1;

void meet_peer(void) {
  struct sockaddr_un where = {.sun_family = AF_UNIX};
  snprintf(where.sun_path, sizeof where.sun_path, "%s", control_path);
  control = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (control < 0 || connect(control, (struct sockaddr *)&where, sizeof where) < 0) {
    line("no peer at %s: %s", control_path, error_name(errno));
    _exit(4);
  }
}

// Sends a command and waits for the answer with poll: a stack that lives in this process runs meanwhile.
static char *ask(char *text, size_t size) {
  if (send(control, text, strlen(text), MSG_NOSIGNAL) < 0) {
    line("the peer is gone: %s", error_name(errno));
    _exit(4);
  }
  ssize_t length;
  do {
    struct pollfd wait = {.fd = control, .events = POLLIN};
    poll(&wait, 1, -1);
    length = recv(control, text, size - 1, MSG_DONTWAIT);
  } while (length < 0 && (errno == EINTR || errno == EAGAIN));
  if (length <= 0) {
    line("the peer is gone");
    _exit(4);
  }
  text[length] = 0;
  return text;
}

int remote(const char *format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  int before = errno, number = -1;
  sscanf(ask(text, sizeof text), "%d", &number);
  errno = before;
  return number;
}

void remote_later(int milliseconds, const char *format, ...) {
  char text[256];
  int length = snprintf(text, sizeof text, "later %d ", milliseconds);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text + length, sizeof text - length, format, arguments);
  va_end(arguments);
  ask(text, sizeof text);
}

void peer_reads(int peer, int length) {
  char text[256];
  snprintf(text, sizeof text, "read %d %d", peer, length);
  line("the peer reads %d: %s", length, ask(text, sizeof text));
}

void peer_sends(int peer, int length) { remote("send %d %d", peer, length); }
void peer_closes(int peer) { remote("close %d", peer); }
void peer_resets(int peer) { remote("reset %d", peer); }
void peer_shuts(int peer, int how) { remote("shutdown %d %d", peer, how); }
int closed_port(int type) { return remote("closed %d %d", mode.family == AF_INET6 && !mode.mapped ? 6 : 4, type); }
