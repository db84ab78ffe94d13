// fork, and descriptors that are passed on.
#include "children.h"
#include <sched.h>
#include <sys/epoll.h>

static uint8_t data[4096];

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

// Each serves one client until that ends, and looks for no other: whoever comes meanwhile is for one that is free.
static void busy_children(void) {
  int server = listening(64), port = port_of(server), peers[4];
  pid_t children[4];
  for (int i = 0; i < 4; i++)
    if ((children[i] = fork()) == 0) {
      for (;;) {
        int fd = accept(server, NULL, NULL);
        if (fd < 0 || send(fd, "busy", 4, 0) != 4) _exit(1);
        while (recv(fd, data, sizeof data, 0) > 0) {
        }
        close(fd);
      }
    }
  for (int turn = 0; turn < 2; turn++) {
    for (int i = 0; i < 4; i++) peer_reads(peers[i] = remote("connect %d %d", version(), port), 4);
    for (int i = 0; i < 4; i++) peer_closes(peers[i]);
  }
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

// A process that has a connection goes into the background, as `ssh -f` does.
static void into_background(void) {
  struct pair p = pair();
  pid_t child = fork();
  if (child == 0) {
    if (send(p.fd, "first", 5, 0) != 5 || daemon(0, 1) < 0) _exit(9);
    _exit(send(p.fd, "second", 6, 0) != 6);
  }
  ended(child);
  R(close(p.fd));
  peer_reads(p.peer, 100);
}

static int closes(void *fd) {
  close(*(int *)fd);
  _exit(3);
}

// A child that has its parent's memory until that goes on, but not its descriptors.
static void cloned(void) {
  static char stack[65536] __attribute__((aligned(16)));
  struct pair p = pair();
  ended(clone(closes, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &p.fd));
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

// What a process may ask first of a connection that it was passed, as libuv and Python do.
static int is_stream(int fd) {
  int type = 0;
  socklen_t room = sizeof type;
  return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &room) < 0 || type != SOCK_STREAM;
}

static int has_name(int fd) {
  struct sockaddr_storage name = {0};
  socklen_t length = sizeof name;
  return getsockname(fd, (struct sockaddr *)&name, &length) < 0 || name.ss_family != mode.family;
}

static int has_peer(int fd) {
  struct sockaddr_storage name = {0};
  socklen_t length = sizeof name;
  return getpeername(fd, (struct sockaddr *)&name, &length) < 0 || name.ss_family != mode.family;
}

static void passed_asked(void) {
  struct pair p = pair();
  ended(passed_to_child(p.fd, is_stream));
  ended(passed_to_child(p.fd, has_name));
  ended(passed_to_child(p.fd, has_peer));
  R(send(p.fd, "kept", 4, 0));
  peer_reads(p.peer, 100);
}

static void passed(void) {
  struct pair p = pair();
  pid_t child = passed_to_child(p.fd, sends);
  R(close(p.fd));
  peer_reads(p.peer, 100);
  ended(child);
}

// Closes it at the end of what the peer sends, and goes on.
static int closes_at_end(int fd) {
  if (send(fd, "passed", 6, 0) != 6 || recv(fd, data, sizeof data, 0) != 0) return 1;
  close(fd);
  for (;;) pause();
}

// Passes a connection to a child, and waits for it in an epoll instance meanwhile.
static pid_t passed_while_awaited(struct pair p, int epoll, int (*use)(int fd)) {
  struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP};
  R(epoll_ctl(epoll, EPOLL_CTL_ADD, p.fd, &event));
  pid_t child = passed_to_child(p.fd, use);
  peer_reads(p.peer, 6);
  return child;
}

static void look(int epoll) {
  struct epoll_event event = {0};
  R(epoll_wait(epoll, &event, 1, 3000));
  line("events: %s", events(event.events));
}

static void passed_closed_there(void) {
  struct pair p = pair();
  int epoll = epoll_create1(0);
  pid_t child = passed_while_awaited(p, epoll, closes_at_end);
  peer_closes(p.peer);
  look(epoll);
  R(recv(p.fd, data, sizeof data, 0));
  kill(child, SIGKILL);
  ended(child);
}

// The same by a duplicate, while the child ends.
static void passed_come_back(void) {
  struct pair p = pair();
  int epoll = epoll_create1(0), first = p.fd;
  p.fd = dup(first);
  R(close(first));
  ended(passed_while_awaited(p, epoll, sends));
  peer_sends(p.peer, 100);
  look(epoll);
  R(recv(p.fd, data, 100, MSG_WAITALL));
  R(send(p.fd, "kept", 4, 0));
  peer_reads(p.peer, 4);
}

static void passed_receiver(void) {
  int fd = datagram(), port = bind_own(fd, true, 0);
  receives(passed_to_child(fd, receives_one), fd, port);
}

const struct test process_cases[] = {
    {"fork, child accepts", child_accepts, FAMILIES},
    {"fork, only the child", only_the_child, FAMILIES},
    {"fork, four children", four_children, FAMILIES},
    {"fork, busy children", busy_children, FAMILIES},
    {"fork, a local client first", local_client_first, PASSIVE4},
    {"fork, child per connection", child_per_connection, FAMILIES},
    {"fork, shared connection", shared_connection, ALL},
    {"fork, child ends", child_ends, ALL},
    {"fork, another root", another_root, PASSIVE4},
    {"fork, killed", killed, BOTH},
    {"fork, exits", exits, ALL},
    {"fork, into the background", into_background, BOTH},
    {"fork, clone", cloned, BOTH},
    {"passed by SCM_RIGHTS", passed, BOTH},
    {"passed by SCM_RIGHTS, asked", passed_asked, BOTH},
    {"passed by SCM_RIGHTS, closed there", passed_closed_there, BOTH},
    {"passed by SCM_RIGHTS, come back", passed_come_back, BOTH},
    {"passed by SCM_RIGHTS, udp", passed_receiver, PASSIVE4},
    END,
};
