// exec, posix_spawn, vfork: programs that have a case's sockets.
#include "children.h"
#include <spawn.h>
#include <sys/select.h>

static uint8_t data[4096];
extern char **environ;

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

// The child sends back what comes, until the end.
static void sends_back(struct pair p, pid_t child) {
  R(close(p.fd));
  peer_sends(p.peer, 1000);
  peer_reads(p.peer, 1000);
  peer_shuts(p.peer, SHUT_WR);
  peer_reads(p.peer, 1);
  ended(child);
}

static posix_spawn_file_actions_t standard_streams(int fd) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fd, 0);
  posix_spawn_file_actions_adddup2(&actions, fd, 1);
  return actions;
}

static void spawned(void) {
  struct pair p = pair();
  pid_t child = spawn("child-echo", p.fd, NULL);
  sends_back(p, child);
}

// As inetd starts a server: the connection is its standard input and output.
static void as_standard_input(void) {
  struct pair p = pair();
  posix_spawn_file_actions_t actions = standard_streams(p.fd);
  pid_t child = spawn("child-cat", 0, &actions);
  sends_back(p, child);
}

// Somebody else's program, which may know nothing of this stack.
static void to_cat(void) {
  struct pair p = pair();
  posix_spawn_file_actions_t actions = standard_streams(p.fd);
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

// As a server does that runs commands for whoever has connected.
static void by_shell(void) {
  struct pair p = pair();
  int saved = dup(STDOUT_FILENO), statuses[2] = {-1, -1};
  dup2(p.fd, STDOUT_FILENO);
  statuses[0] = system("echo word");
  FILE *into = popen("cat", "w");
  if (into) {
    fputs("through cat\n", into);
    statuses[1] = pclose(into);
  }
  dup2(saved, STDOUT_FILENO);
  line("the shells ended with %d, %d", statuses[0], statuses[1]);
  peer_reads(p.peer, 17);
  R(send(p.fd, "parent", 6, MSG_NOSIGNAL));
  peer_reads(p.peer, 6);
}

static void executed_at(void) {
  struct pair p = pair();
  char number[16];
  snprintf(number, sizeof number, "%d", p.fd);
  pid_t child = fork();
  if (child == 0) {
    char *words[] = {(char *)program, "child-echo", number, (char *)prefix, NULL};
    if (send(p.fd, "first", 5, 0) != 5) _exit(99);
    execveat(AT_FDCWD, program, words, environ, 0);
    _exit(100);
  }
  peer_reads(p.peer, 5);
  sends_back(p, child);
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

const struct test program_cases[] = {
    {"exec, listener", executed_listener, FAMILIES},
    {"exec, listener, polled", executed_and_polled, PASSIVE4},
    {"exec, listener, selected", executed_and_selected, PASSIVE4},
    {"exec, udp", executed_receiver, PASSIVE4 | PASSIVE6},
    {"exec, listener, empty environment", executed_clean, PASSIVE4},
    {"exec, spawned with a connection", spawned, ALL},
    {"exec, standard input", as_standard_input, BOTH},
    {"exec, cat", to_cat, BOTH},
    {"exec, shell", by_shell, BOTH},
    {"exec, close-on-exec", closed_by_exec, BOTH},
    {"exec, close-on-exec from the start", closed_by_exec_from_the_start, FAMILIES},
    {"exec, vfork", vforked, BOTH},
    {"exec, execveat", executed_at, BOTH},
    END,
};
