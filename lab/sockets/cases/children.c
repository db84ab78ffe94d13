// What the processes do that cases start, and those that wait for them.
#include "children.h"

static uint8_t data[4096];

void ended(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  line("the child ended with %d", WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status));
}

int serve_one(int server, const char *word) {
  int fd = accept(server, NULL, NULL);
  if (fd < 0) return 10;
  if (send(fd, word, strlen(word), 0) < 0) return 11;
  for (ssize_t n; (n = recv(fd, data, sizeof data, 0)) != 0;)
    if (n < 0 || send(fd, data, n, MSG_NOSIGNAL) != n) return 12;
  return 0;
}

void receives(pid_t child, int fd, int port) {
  int status = -1, peer = remote("udp %d", version());
  R(close(fd));
  // What comes before it has begun may find nobody.
  for (int i = 0; i < 100 && waitpid(child, &status, WNOHANG) == 0; i++) {
    remote("sendto %d %d %d 5", peer, version(), port);
    pause_ms(50);
  }
  kill(child, SIGKILL);
  line("the child ended with %d", status);
}
