// fork, exec, posix_spawn, vfork, and descriptors that are passed on.
#include "cases.h"
#include <spawn.h>
#include <sys/select.h>

static uint8_t data[4096];
extern char **environ;

static int version(void) { return mode.family == AF_INET6 && !mode.mapped ? 6 : 4; }

static void ended(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  line("the child ended with %d", WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status));
}

// Serves one connection of a listener: sends a word, then what it receives, until the end.
static int serve_one(int server, const char *word) {
  int fd = accept(server, NULL, NULL);
  if (fd < 0) return 10;
  if (send(fd, word, strlen(word), 0) < 0) return 11;
  for (ssize_t n; (n = recv(fd, data, sizeof data, 0)) != 0;)
    if (n < 0 || send(fd, data, n, MSG_NOSIGNAL) != n) return 12;
  return 0;
}

static void child_accepts(void) {
  int server = listening(5), port = port_of(server);
  pid_t child = fork();
  if (child == 0) _exit(serve_one(server, "child"));
  int peer = remote("connect %d %d", version(), port);
  peer_reads(peer, 5);
  peer_sends(peer, 1000);
  peer_reads(peer, 1000);
  peer_closes(peer);
  ended(child);
  // And the parent still has it.
  peer = remote("connect %d %d", version(), port);
  until(server, POLLIN);
  FD(accept(server, NULL, NULL));
}

static void only_the_child(void) {
  int server = listening(5), port = port_of(server);
  pid_t child = fork();
  if (child == 0) _exit(serve_one(server, "child"));
  R(close(server));
  int peer = remote("connect %d %d", version(), port);
  peer_reads(peer, 5);
  peer_closes(peer);
  ended(child);
  line("connect after its end: %d", remote("connect %d %d", version(), port));
}

static void four_serve(int server, pid_t *children) {
  for (int i = 0; i < 4; i++)
    if ((children[i] = fork()) == 0)
      for (;;) {
        int fd = accept(server, NULL, NULL);
        if (fd < 0 || send(fd, "served", 6, 0) != 6) _exit(1);
        close(fd);
      }
}

static void four_end(const pid_t *children) {
  for (int i = 0; i < 4; i++) {
    kill(children[i], SIGTERM);
    waitpid(children[i], NULL, 0);
  }
}

// Four children on one listener: every connection is served once, and by someone.
static void four_children(void) {
  int server = listening(64), port = port_of(server);
  pid_t children[4];
  four_serve(server, children);
  for (int i = 0; i < 20; i++) peer_reads(remote("connect %d %d", version(), port), 100);
  four_end(children);
}

// All hear of a client on the own host, and those that it is not for go on to hear of others.
static void local_client_first(void) {
  int server = listening(64), port = port_of(server), own = stream();
  pid_t children[4];
  socklen_t length;
  struct sockaddr_storage name = to_own(port, &length);
  inet_pton(AF_INET, "127.0.0.1", &((struct sockaddr_in *)&name)->sin_addr);
  four_serve(server, children);
  pause_ms(100);
  R(connect(own, (struct sockaddr *)&name, length));
  R(recv(own, data, 6, MSG_WAITALL));
  for (int i = 0; i < 20; i++) peer_reads(remote("connect 4 %d", port), 100);
  four_end(children);
}

// A server of one process for each connection.
static void child_per_connection(void) {
  int server = listening(16);
  for (int i = 0; i < 5; i++) {
    int peer = remote("connect %d %d", version(), port_of(server));
    until(server, POLLIN);
    int fd = accept(server, NULL, NULL);
    pid_t child = fork();
    if (child == 0) {
      close(server);
      ssize_t n = recv(fd, data, 100, MSG_WAITALL);
      _exit(n != 100 || send(fd, data, n, 0) != n);
    }
    R(close(fd));
    peer_sends(peer, 100);
    peer_reads(peer, 1000);
    ended(child);
  }
}

static void shared_connection(void) {
  struct pair p = pair();
  pid_t child = fork();
  if (child == 0) {
    send(p.fd, "child", 5, 0);
    pause_ms(80);
    send(p.fd, "later", 5, 0);
    _exit(0);
  }
  peer_reads(p.peer, 5);
  R(close(p.fd));
  // The connection ends with its last holder.
  peer_reads(p.peer, 100);
  ended(child);
}

static void child_ends(void) {
  struct pair p = pair();
  pid_t child = fork();
  if (child == 0) _exit(0);
  ended(child);
  R(send(p.fd, "parent", 6, MSG_NOSIGNAL));
  peer_reads(p.peer, 6);
  child = fork();
  if (child == 0) {
    close(p.fd);
    _exit(0);
  }
  ended(child);
  R(send(p.fd, "still", 5, MSG_NOSIGNAL));
  peer_reads(p.peer, 5);
}

// A child that leaves all files behind before it serves.
static void another_root(void) {
  char folder[] = "/tmp/sockets-XXXXXX";
  int server = listening(5), port = port_of(server);
  YES(mkdtemp(folder) != NULL);
  pid_t child = fork();
  if (child == 0) {
    if (chroot(folder) < 0 || chdir("/") < 0) _exit(9);
    _exit(serve_one(server, "child"));
  }
  R(close(server));
  int peer = remote("connect %d %d", version(), port);
  peer_reads(peer, 5);
  peer_closes(peer);
  ended(child);
  R(rmdir(folder));
}

static void killed(void) {
  struct pair p = pair();
  pid_t child = fork();
  if (child == 0)
    for (;;) pause();
  R(close(p.fd));
  usleep(30000);
  kill(child, SIGKILL);
  peer_reads(p.peer, 1);
  ended(child);
}

static void exits(void) {
  struct pair p = pair();
  pid_t child = fork();
  if (child == 0) {
    send(p.fd, "last words", 10, 0);
    exit(0);
  }
  close(p.fd);
  ended(child);
  peer_reads(p.peer, 100);
}

// Runs this program again: child-WHAT FD.
static pid_t spawn(const char *what, int fd, posix_spawn_file_actions_t *actions) {
  char number[16];
  snprintf(number, sizeof number, "%d", fd);
  char *words[] = {(char *)program, (char *)what, number, (char *)prefix, NULL};
  pid_t child = -1;
  int error = posix_spawn(&child, program, actions, NULL, words, environ);
  if (error) line("posix_spawn: %s", error_name(error));
  return child;
}

static void executed_as(const char *what) {
  int server = listening(5), port = port_of(server);
  pid_t child = fork();
  if (child == 0) {
    char number[16];
    snprintf(number, sizeof number, "%d", server);
    execl(program, program, what, number, prefix, NULL);
    _exit(100);
  }
  int peer = remote("connect %d %d", version(), port);
  peer_reads(peer, 8);
  peer_sends(peer, 500);
  peer_reads(peer, 500);
  peer_closes(peer);
  ended(child);
}
static void executed_listener(void) { executed_as("child-accept"); }
static void executed_and_polled(void) { executed_as("child-poll"); }
static void executed_and_selected(void) { executed_as("child-select"); }

// A server that does nothing but receive by the socket that it was started with, or passed.
static void receives(pid_t child, int fd, int port) {
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

static void executed_receiver(void) {
  int fd = datagram(), port = bind_own(fd, true, 0);
  char number[16];
  snprintf(number, sizeof number, "%d", fd);
  pid_t child = fork();
  if (child == 0) {
    execl(program, program, "child-receive", number, prefix, NULL);
    _exit(100);
  }
  receives(child, fd, port);
}

static void executed_clean(void) {
  int server = listening(5), port = port_of(server);
  pid_t child = fork();
  if (child == 0) {
    char number[16];
    snprintf(number, sizeof number, "%d", server);
    // As NGINX does at an upgrade, but for what the loader needs.
    char preload[PATH_MAX] = "LD_PRELOAD=", *kept[] = {preload, NULL};
    if (getenv("LD_PRELOAD")) strncat(preload, getenv("LD_PRELOAD"), sizeof preload - 20);
    char sessions[PATH_MAX] = "MILLRACE_SESSIONS=", *both[] = {preload, sessions, NULL};
    if (getenv("MILLRACE_SESSIONS")) strncat(sessions, getenv("MILLRACE_SESSIONS"), sizeof sessions - 20);
    execle(program, program, "child-accept", number, prefix, NULL, getenv("MILLRACE_SESSIONS") ? both : kept);
    _exit(100);
  }
  close(server);
  int peer = remote("connect %d %d", version(), port);
  peer_reads(peer, 8);
  peer_closes(peer);
  ended(child);
}

static void spawned(void) {
  struct pair p = pair();
  pid_t child = spawn("child-echo", p.fd, NULL);
  R(close(p.fd));
  peer_sends(p.peer, 1000);
  peer_reads(p.peer, 1000);
  peer_shuts(p.peer, SHUT_WR);
  peer_reads(p.peer, 1);
  ended(child);
}

// As inetd starts a server: the connection is its standard input and output.
static void as_standard_input(void) {
  struct pair p = pair();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, p.fd, 0);
  posix_spawn_file_actions_adddup2(&actions, p.fd, 1);
  pid_t child = spawn("child-cat", 0, &actions);
  R(close(p.fd));
  peer_sends(p.peer, 1000);
  peer_reads(p.peer, 1000);
  peer_shuts(p.peer, SHUT_WR);
  peer_reads(p.peer, 1);
  ended(child);
}

// Somebody else's program, which may know nothing of this stack.
static void to_cat(void) {
  struct pair p = pair();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, p.fd, 0);
  posix_spawn_file_actions_adddup2(&actions, p.fd, 1);
  char *words[] = {"cat", NULL};
  pid_t child = -1;
  R(posix_spawnp(&child, "cat", &actions, NULL, words, environ));
  R(close(p.fd));
  peer_sends(p.peer, 1000);
  peer_reads(p.peer, 1000);
  peer_shuts(p.peer, SHUT_WR);
  ended(child);
}

static void closed_by_exec(void) {
  struct pair p = pair();
  R(fcntl(p.fd, F_SETFD, FD_CLOEXEC));
  pid_t child = spawn("child-look", p.fd, NULL);
  ended(child);
  R(send(p.fd, "parent", 6, MSG_NOSIGNAL));
  peer_reads(p.peer, 6);
}

// What socket(2) was told holds for the connection too: a program that was started does not keep it open.
static void closed_by_exec_from_the_start(void) {
  int number = remote("listen %d 16", version()), fd = socket(mode.family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  socklen_t length;
  struct sockaddr_storage name = to_peer(remote("port %d", number), &length);
  R(connect(fd, (struct sockaddr *)&name, length));
  int peer = remote("accept %d", number);
  R(fcntl(fd, F_GETFD));
  ended(spawn("child-look", fd, NULL));
  R(fcntl(fd, F_GETFD));
  pid_t child = fork();
  if (child == 0) {
    execlp("sleep", "sleep", "60", NULL);
    _exit(100);
  }
  R(close(fd));
  peer_reads(peer, 1);
  kill(child, SIGKILL);
  ended(child);
}

static void vforked(void) {
  struct pair p = pair();
  char number[16];
  snprintf(number, sizeof number, "%d", p.fd);
  pid_t child = vfork();
  if (child == 0) {
    execl(program, program, "child-look", number, prefix, NULL);
    _exit(100);
  }
  ended(child);
  R(send(p.fd, "parent", 6, MSG_NOSIGNAL));
  peer_reads(p.peer, 6);
}

// Passes a descriptor to a child, which does nothing but `use` it and end with what that gives.
static pid_t passed_to_child(int fd, int (*use)(int fd)) {
  int ends[2];
  R(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
  pid_t child = fork();
  struct iovec part = {data, 1};
  union { struct cmsghdr header; char space[CMSG_SPACE(sizeof(int))]; } extra = {0};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &extra, .msg_controllen = sizeof extra};
  if (child == 0) {
    close(fd);
    if (recvmsg(ends[1], &message, 0) != 1) _exit(20);
    _exit(use(*(int *)CMSG_DATA(CMSG_FIRSTHDR(&message))));
  }
  extra.header.cmsg_len = CMSG_LEN(sizeof(int));
  extra.header.cmsg_level = SOL_SOCKET;
  extra.header.cmsg_type = SCM_RIGHTS;
  *(int *)CMSG_DATA(&extra.header) = fd;
  R(sendmsg(ends[0], &message, 0));
  return child;
}

static int sends(int fd) { return send(fd, "passed", 6, 0) != 6; }
static int receives_one(int fd) { return recv(fd, data, sizeof data, 0) != 5; }

static void passed(void) {
  struct pair p = pair();
  pid_t child = passed_to_child(p.fd, sends);
  R(close(p.fd));
  peer_reads(p.peer, 100);
  ended(child);
}

static void passed_receiver(void) {
  int fd = datagram(), port = bind_own(fd, true, 0);
  receives(passed_to_child(fd, receives_one), fd, port);
}

// What the program does when a case has executed it.
int executed(int count, char **words) {
  if (count < 4) return 30;
  int fd = atoi(words[2]);
  snprintf(prefix, sizeof prefix, "%s", words[3]);
  if (strcmp(words[1], "child-accept") == 0) {
    struct sockaddr_storage name;
    socklen_t length = sizeof name;
    if (getsockname(fd, (struct sockaddr *)&name, &length) < 0) return 31;
    int listens = 0;
    length = sizeof listens;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) < 0 || !listens) return 32;
    return serve_one(fd, "executed");
  }
  // As a service that knows its sockets by their numbers.
  if (strcmp(words[1], "child-poll") == 0) {
    struct pollfd one = {.fd = fd, .events = POLLIN};
    return poll(&one, 1, 6000) == 1 ? serve_one(fd, "executed") : 34;
  }
  if (strcmp(words[1], "child-select") == 0) {
    fd_set in;
    FD_ZERO(&in);
    FD_SET(fd, &in);
    struct timeval limit = {.tv_sec = 6};
    return select(fd + 1, &in, NULL, NULL, &limit) == 1 ? serve_one(fd, "executed") : 35;
  }
  if (strcmp(words[1], "child-receive") == 0) return recv(fd, data, sizeof data, 0) == 5 ? 0 : 36;
  if (strcmp(words[1], "child-echo") == 0 || strcmp(words[1], "child-cat") == 0) {
    int out = strcmp(words[1], "child-cat") == 0 ? 1 : fd;
    for (ssize_t n; (n = read(fd, data, sizeof data)) != 0;)
      if (n < 0 || write(out, data, n) != n) return 33;
    return 0;
  }
  return fcntl(fd, F_GETFD) < 0 ? 40 : 41;
}

const struct test process_cases[] = {
    {"fork, child accepts", child_accepts, FAMILIES},
    {"fork, only the child", only_the_child, FAMILIES},
    {"fork, four children", four_children, FAMILIES},
    {"fork, a local client first", local_client_first, PASSIVE4},
    {"fork, child per connection", child_per_connection, FAMILIES},
    {"fork, shared connection", shared_connection, ALL},
    {"fork, child ends", child_ends, ALL},
    {"fork, another root", another_root, PASSIVE4},
    {"fork, killed", killed, BOTH},
    {"fork, exits", exits, ALL},
    {"exec, listener", executed_listener, FAMILIES},
    {"exec, listener, polled", executed_and_polled, PASSIVE4},
    {"exec, listener, selected", executed_and_selected, PASSIVE4},
    {"exec, udp", executed_receiver, PASSIVE4 | PASSIVE6},
    {"exec, listener, empty environment", executed_clean, PASSIVE4},
    {"exec, spawned with a connection", spawned, ALL},
    {"exec, standard input", as_standard_input, BOTH},
    {"exec, cat", to_cat, BOTH},
    {"exec, close-on-exec", closed_by_exec, BOTH},
    {"exec, close-on-exec from the start", closed_by_exec_from_the_start, FAMILIES},
    {"exec, vfork", vforked, BOTH},
    {"passed by SCM_RIGHTS", passed, BOTH},
    {"passed by SCM_RIGHTS, udp", passed_receiver, PASSIVE4},
    END,
};
