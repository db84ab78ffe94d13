// A server whose connections move between processes, in the ways that C programs have.
//
// usage: mover fork|shut PORT               a process for each connection; one that the other shuts
//        mover half PORT TURNS              one that two processes use, so often in turn
//        mover inetd PORT PROGRAM [WORD...] a program for each connection, which is its standard input and output
//        mover pass PORT                    a process that accepts, and one that answers
//        mover burst PORT BYTES             writes so much, and ends
//        mover leave PORT BYTES             writes so much, closes, says so, and waits to be killed
//        mover wait PORT                    writes a line, and waits to be killed
// Each line is answered by who has read it: 'parent: LINE', 'child: LINE'.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int listening(const char *port) {
  struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_port = htons(atoi(port))};
  int one = 1, fd = socket(AF_INET6, SOCK_STREAM, 0);
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) ||
      bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, 16)) err(1, "listen");
  return fd;
}

static void say(int fd, const char *data, size_t length) {
  while (length > 0) {
    ssize_t sent = write(fd, data, length);
    if (sent < 0) err(1, "write");
    data += sent, length -= sent;
  }
}

// Reads a line byte by byte, so that what follows stays in the socket, and answers it. 0 at the end of data.
static int answer(int fd, const char *who) {
  char line[256];
  size_t length = snprintf(line, sizeof line, "%s: ", who);
  for (;;) {
    ssize_t got = read(fd, line + length, 1);
    if (got < 0) err(1, "%s: read", who);
    if (got == 0) return 0;
    if (line[length++] == '\n' || length == sizeof line) break;
  }
  say(fd, line, length);
  return 1;
}

static pid_t forked(void) {
  pid_t child = fork();
  if (child < 0) err(1, "fork");
  return child;
}

static void one_each(int listener) {
  for (;;) {
    int fd = accept(listener, 0, 0);
    if (fd < 0) err(1, "accept");
    if (forked() == 0) {
      close(listener);
      while (answer(fd, "child")) continue;
      exit(0);
    }
    close(fd);
  }
}

// Both use it in turn; what is not read when one stops is there for the other.
static void half(int listener, int turns) {
  int fd = accept(listener, 0, 0);
  while (turns-- > 0) {
    answer(fd, "parent");
    if (forked() == 0) {
      answer(fd, "child");
      _exit(0);
    }
    wait(0);
  }
  while (answer(fd, "parent")) continue;
  close(fd);
}

// The child's shutdown ends the parent's writing, not its reading.
static void shut(int listener) {
  int fd = accept(listener, 0, 0);
  answer(fd, "parent");
  if (forked() == 0) {
    if (shutdown(fd, SHUT_WR)) err(1, "shutdown");
    _exit(0);
  }
  wait(0);
  signal(SIGPIPE, SIG_IGN);
  int piped = write(fd, "x", 1) < 0 && errno == EPIPE;
  char rest[256];
  ssize_t got, all = 0;
  while ((got = read(fd, rest + all, sizeof rest - all)) > 0) all += got;
  printf("parent: %s, then read %zd bytes\n", piped ? "EPIPE" : "written", all);
  exit(0);
}

static void inetd(int listener, char **program) {
  for (;;) {
    int fd = accept(listener, 0, 0);
    if (fd < 0) err(1, "accept");
    if (forked() == 0) {
      dup2(fd, 0), dup2(fd, 1);
      close(fd), close(listener);
      execvp(program[0], program);
      err(1, "%s", program[0]);
    }
    close(fd);
  }
}

static void pass(int listener) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) err(1, "socketpair");
  char byte = 'f', space[CMSG_SPACE(sizeof(int))] = {0};
  struct iovec piece = {&byte, 1};
  struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
  if (forked() == 0) {
    close(listener), close(pair[0]);
    for (;;) {
      message.msg_controllen = sizeof space;
      if (recvmsg(pair[1], &message, 0) <= 0) exit(0);
      int fd;
      memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
      while (answer(fd, "child")) continue;
      close(fd);
    }
  }
  for (;;) {
    int fd = accept(listener, 0, 0);
    if (fd < 0) err(1, "accept");
    answer(fd, "parent");
    message.msg_controllen = sizeof space;
    struct cmsghdr *part = CMSG_FIRSTHDR(&message);
    *part = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fd)};
    memcpy(CMSG_DATA(part), &fd, sizeof fd);
    if (sendmsg(pair[0], &message, 0) < 0) err(1, "sendmsg");
    close(fd);
  }
}

static int burst(int listener, size_t bytes) {
  int fd = accept(listener, 0, 0), room = 4 << 20;
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
  unsigned char *data = malloc(bytes);
  for (size_t at = 0; at < bytes; at++) data[at] = at * 2654435761u >> 24;
  say(fd, (char *)data, bytes);
  return fd;
}

int main(int count, char **words) {
  if (count < 3) errx(2, "usage: mover MODE PORT [WORD...]");
  signal(SIGCHLD, SIG_DFL);
  int listener = listening(words[2]);
  if (!strcmp(words[1], "fork")) signal(SIGCHLD, SIG_IGN), one_each(listener);
  if (!strcmp(words[1], "inetd")) signal(SIGCHLD, SIG_IGN), inetd(listener, words + 3);
  if (!strcmp(words[1], "half")) half(listener, atoi(words[3]));
  if (!strcmp(words[1], "shut")) shut(listener);
  if (!strcmp(words[1], "pass")) pass(listener);
  if (!strcmp(words[1], "burst")) burst(listener, atoi(words[3])), _exit(0);
  if (!strcmp(words[1], "leave")) {
    close(burst(listener, atoi(words[3])));
    if (puts("closed") < 0 || fflush(stdout)) err(1, "stdout");
    for (;;) pause();
  }
  if (!strcmp(words[1], "wait")) {
    int fd = accept(listener, 0, 0);
    say(fd, "here\n", 5);
    for (;;) pause();
  }
  return 0;
}
