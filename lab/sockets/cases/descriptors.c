// dup and its kin, fcntl, ioctl.
#include "cases.h"
#include "talk.h"
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <termios.h>

static uint8_t data[4096];

static void duplicates(void) {
  struct pair p = pair();
  int copies[4];
  copies[0] = FD(dup(p.fd));
  copies[1] = FD(fcntl(p.fd, F_DUPFD, 100));
  YES(copies[1] >= 100 && copies[1] < 200);
  copies[2] = FD(fcntl(p.fd, F_DUPFD_CLOEXEC, 0));
  R(fcntl(copies[2], F_GETFD));
  R(fcntl(copies[1], F_GETFD));
  int free_number = dup(STDOUT_FILENO);
  close(free_number);
  copies[3] = free_number;
  R(dup2(p.fd, free_number) == free_number);
  for (int i = 0; i < 4; i++) R(write(copies[i], "word", 4));
  peer_reads(p.peer, 16);
  R(close(p.fd));
  R(send(p.fd, "x", 1, MSG_NOSIGNAL));
  peer_sends(p.peer, 40);
  arrived(copies[0], 40);
  for (int i = 0; i < 4; i++) R(read(copies[i], data, 10));
  bytes("last", data, 10);
  for (int i = 0; i < 3; i++) R(close(copies[i]));
  R(write(copies[3], "open", 4));
  peer_reads(p.peer, 4);
  R(close(copies[3]));
  peer_reads(p.peer, 1);
}

static void duplicates_wrong(void) {
  struct pair p = pair();
  FD(dup(-1));
  FD(dup(1000000));
  R(dup2(p.fd, -1));
  R(dup2(p.fd, 100000000));
  R(dup2(-1, p.fd));
  R(dup2(p.fd, p.fd) == p.fd);
  R(dup3(p.fd, p.fd, 0));
  R(dup3(p.fd, 50, 1));
  R(dup3(p.fd, 50, O_CLOEXEC));
  R(fcntl(50, F_GETFD));
  FD(fcntl(p.fd, F_DUPFD, -1));
  FD(fcntl(p.fd, F_DUPFD, 100000000));
  R(send(p.fd, "alive", 5, 0));
  peer_reads(p.peer, 5);
}

// dup2 onto a socket closes what was there.
static void replaced(void) {
  struct pair p = pair(), q = pair();
  R(dup2(p.fd, q.fd) == q.fd);
  peer_reads(q.peer, 1);
  R(send(q.fd, "through q", 9, 0));
  peer_reads(p.peer, 9);
  R(close(p.fd));
  R(send(q.fd, "still", 5, 0));
  peer_reads(p.peer, 5);
  int ends[2];
  R(pipe(ends));
  R(dup2(ends[1], q.fd) == q.fd);
  peer_reads(p.peer, 1);
  R(write(q.fd, "pipe", 4));
  R(read(ends[0], data, 10));
  R(send(q.fd, "x", 1, 0));
}

static void onto_file(void) {
  struct pair p = pair();
  int ends[2];
  R(pipe(ends));
  R(dup2(p.fd, ends[0]) == ends[0]);
  R(send(ends[0], "word", 4, 0));
  peer_reads(p.peer, 4);
  peer_sends(p.peer, 4);
  R(read(ends[0], data, 10));
  R(dup3(p.fd, ends[1], O_CLOEXEC) == ends[1]);
  R(fcntl(ends[1], F_GETFD));
  R(write(ends[1], "word", 4));
  peer_reads(p.peer, 4);
}

// As a shell redirects, and takes that back.
static void saved_and_restored(void) {
  struct pair p = pair();
  int saved = FD(dup(p.fd)), nothing = open("/dev/null", O_RDWR);
  R(dup2(nothing, p.fd) == p.fd);
  R(write(p.fd, "nowhere", 7));
  R(write(saved, "one", 3));
  peer_reads(p.peer, 3);
  R(dup2(saved, p.fd) == p.fd);
  R(close(saved));
  R(write(p.fd, "two", 3));
  peer_reads(p.peer, 3);
  peer_sends(p.peer, 4);
  R(recv(p.fd, data, 4, MSG_WAITALL));
  R(close(p.fd));
  peer_reads(p.peer, 1);
  R(fcntl(p.fd, F_GETFD));
}

// The number of a connection that has others is free for another connection.
static void number_again(void) {
  struct pair p = pair();
  int copy = FD(dup(p.fd)), nothing = open("/dev/null", O_RDWR), epoll = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN, .data.u32 = 7};
  R(epoll_ctl(epoll, EPOLL_CTL_ADD, copy, &event));
  R(dup2(nothing, p.fd) == p.fd);
  int number = remote("listen %d 5", mode.family == AF_INET6 && !mode.mapped ? 6 : 4), fresh = stream();
  socklen_t length;
  struct sockaddr_storage name = to_peer(remote("port %d", number), &length);
  R(dup2(fresh, p.fd) == p.fd);
  R(close(fresh));
  R(connect(p.fd, (struct sockaddr *)&name, length));
  int peer = remote("accept %d", number);
  R(write(p.fd, "new", 3));
  R(write(copy, "old", 3));
  peer_reads(peer, 3);
  peer_reads(p.peer, 3);
  peer_sends(p.peer, 20);
  R(epoll_wait(epoll, &event, 1, 3000));
  line("%u", event.data.u32);
  R(recv(copy, data, 20, MSG_WAITALL));
  peer_sends(peer, 10);
  R(recv(p.fd, data, 10, MSG_WAITALL));
  R(close(copy));
  peer_reads(p.peer, 1);
  R(close(p.fd));
  peer_reads(peer, 1);
}

// A forked child has what the numbers stand for by then.
static void forked_after(void) {
  struct pair p = pair(), q = pair();
  int copy = FD(dup(p.fd)), status = -1;
  R(dup2(q.fd, p.fd) == p.fd);
  R(close(q.fd));
  pid_t child = fork();
  if (child == 0) _exit(write(copy, "first", 5) != 5 || write(p.fd, "second", 6) != 6);
  peer_reads(p.peer, 5);
  peer_reads(q.peer, 6);
  waitpid(child, &status, 0);
  line("the child ended with %d", status);
  R(write(copy, "third", 5));
  R(write(p.fd, "fourth", 6));
  peer_reads(p.peer, 5);
  peer_reads(q.peer, 6);
}

// Whatever the stack itself has among the highest numbers, a connection goes on.
static void onto_any_number(void) {
  struct pair p = pair();
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  int end = limit.rlim_cur < 4200 ? limit.rlim_cur : 4200, begin = end > 400 ? end - 300 : 100;
  for (int fd = begin; fd < end; fd++)
    if (dup2(STDOUT_FILENO, fd) == fd) close(fd);
  R(write(p.fd, "one", 3));
  peer_reads(p.peer, 3);
  remote_later(50, "send %d 10", p.peer);
  R(recv(p.fd, data, 10, MSG_WAITALL));
  struct pair q = pair();
  R(write(q.fd, "two", 3));
  peer_reads(q.peer, 3);
}

static void listener_copies(void) {
  int server = listening(5), copy = FD(dup(server)), port = port_of(server);
  int version = mode.family == AF_INET6 ? 6 : 4;
  R(close(server));
  remote("connect %d %d", version, port);
  until(copy, POLLIN);
  FD(accept(copy, NULL, NULL));
  FD(accept(server, NULL, NULL));
  YES(port_of(copy) == port);
  R(close(copy));
  line("connect after the close: %d", remote("connect %d %d", version, port));
}

static void status_flags(void) {
  struct pair p = pair();
  int copy = dup(p.fd);
  R(fcntl(p.fd, F_GETFL));
  R(fcntl(p.fd, F_SETFL, O_NONBLOCK));
  R(fcntl(p.fd, F_GETFL));
  R(fcntl(copy, F_GETFL));
  R(recv(copy, data, 1, 0));
  R(fcntl(p.fd, F_SETFL, O_NONBLOCK | O_APPEND | O_ASYNC | O_RDONLY | O_CREAT));
  R(fcntl(copy, F_GETFL));
  R(fcntl(p.fd, F_SETFL, O_DIRECT));
  R(fcntl(p.fd, F_SETFL, 0));
  R(fcntl(copy, F_GETFL));
  R(fcntl(p.fd, F_GETFD));
  R(fcntl(p.fd, F_SETFD, FD_CLOEXEC));
  R(fcntl(p.fd, F_GETFD));
  R(fcntl(copy, F_GETFD));
  R(fcntl(p.fd, F_SETFD, 0));
  R(fcntl(p.fd, F_GETFD));
  R(fcntl(p.fd, F_SETFD, 4));
  R(fcntl(p.fd, F_GETFD));
  R(fcntl(p.fd, 9999));
  R(fcntl(-1, F_GETFL));
  R(fcntl(p.fd, F_SETOWN, getpid()));
  R(fcntl(p.fd, F_GETOWN) == getpid());
  R(fcntl(p.fd, F_SETSIG, SIGUSR1));
  R(fcntl(p.fd, F_GETSIG) == SIGUSR1);
  struct f_owner_ex owner = {-1, -1};
  R(fcntl(p.fd, F_GETOWN_EX, &owner));
  YES(owner.type == F_OWNER_PID && owner.pid == getpid());
  owner = (struct f_owner_ex){F_OWNER_TID, gettid()};
  R(fcntl(p.fd, F_SETOWN_EX, &owner));
  R(fcntl(p.fd, F_GETOWN) == gettid());
  owner.type = 9;
  R(fcntl(p.fd, F_SETOWN_EX, &owner));
  owner = (struct f_owner_ex){F_OWNER_PGRP, getpgrp()};
  R(fcntl(p.fd, F_SETOWN_EX, &owner));
  owner = (struct f_owner_ex){-1, -1};
  R(fcntl(p.fd, F_GETOWN_EX, &owner));
  YES(owner.type == F_OWNER_PGRP && owner.pid == getpgrp());
  owner = (struct f_owner_ex){F_OWNER_PID, 0x3ffffff0};
  R(fcntl(p.fd, F_SETOWN_EX, &owner));
  R(fcntl(p.fd, F_SETOWN_EX, NULL));
  struct f_owner_ex other = {-1, -1};
  int another = pair().fd;
  R(fcntl(another, F_GETOWN_EX, &other));
  line("owner of another: %d %d", other.type, other.pid);
  struct flock lock = {.l_type = F_WRLCK};
  R(fcntl(p.fd, F_GETLK, &lock));
  R(fcntl(p.fd, F_GETPIPE_SZ));
  R(fcntl(p.fd, F_GET_SEALS));
}

static void controls(void) {
  struct pair p = pair();
  int value = 1;
  R(ioctl(p.fd, FIONBIO, &value));
  R(fcntl(p.fd, F_GETFL));
  R(recv(p.fd, data, 1, 0));
  value = 0;
  R(ioctl(p.fd, FIONBIO, &value));
  R(fcntl(p.fd, F_GETFL));
  value = 1;
  R(ioctl(p.fd, FIOASYNC, &value));
  R(fcntl(p.fd, F_GETFL));
  value = 0;
  R(ioctl(p.fd, FIOASYNC, &value));
  R(ioctl(p.fd, FIOCLEX));
  R(fcntl(p.fd, F_GETFD));
  R(ioctl(p.fd, FIONCLEX));
  R(fcntl(p.fd, F_GETFD));
  value = -1;
  R(ioctl(p.fd, FIONREAD, &value));
  line("FIONREAD %d", value);
  peer_sends(p.peer, 77);
  arrived(p.fd, 77);
  R(ioctl(p.fd, FIONREAD, &value));
  line("FIONREAD %d", value);
  peer_closes(p.peer);
  until(p.fd, POLLRDHUP);
  R(ioctl(p.fd, FIONREAD, &value));
  line("FIONREAD %d", value);
  R(ioctl(p.fd, SIOCOUTQ, &value));
  R(ioctl(p.fd, SIOCATMARK, &value));
  R(ioctl(p.fd, 0x12345678, &value));
  R(ioctl(p.fd, TCGETS, data));
  R(ioctl(p.fd, FIONREAD, NULL));
  R(ioctl(-1, FIONREAD, &value));
  struct ifreq interface = {.ifr_name = "lo"};
  R(ioctl(p.fd, SIOCGIFFLAGS, &interface));
  YES((interface.ifr_flags & IFF_LOOPBACK) != 0);
  R(ioctl(p.fd, SIOCSPGRP, &(int){getpid()}));
  R(ioctl(p.fd, SIOCGPGRP, &value));
  YES(value == getpid());
}

static void controls_unconnected(void) {
  int fd = stream(), value = -1;
  R(ioctl(fd, FIONREAD, &value));
  R(ioctl(fd, SIOCOUTQ, &value));
  R(ioctl(fd, SIOCATMARK, &value));
  int server = listening(5);
  R(ioctl(server, FIONREAD, &value));
  R(ioctl(server, SIOCOUTQ, &value));
  value = 1;
  R(ioctl(server, FIONBIO, &value));
  FD(accept(server, NULL, NULL));
}

// SIGIO when data comes.
static void signalled(void) {
  struct pair p = pair();
  catch_signal(SIGIO, 0);
  R(fcntl(p.fd, F_SETOWN, getpid()));
  R(fcntl(p.fd, F_SETFL, O_ASYNC | O_NONBLOCK));
  signals = 0;
  peer_sends(p.peer, 10);
  for (int i = 0; i < 100 && !signals; i++) pause_ms(5);
  YES(signals > 0);
  R(recv(p.fd, data, 100, 0));
}

// Numbers are the lowest that are free, as programs expect that hand sockets to dup-less children.
static void lowest(void) {
  int first = stream(), second = stream();
  YES(second == first + 1);
  close(first);
  int again = stream();
  YES(again == first);
  struct pair p = pair();
  YES(p.fd < 64);
  close(again);
  int file = open("/dev/null", O_RDONLY);
  YES(file == again);
}

// Of the numbers of connections that were closed, the lowest is the next.
static void lowest_of_closed(void) {
  int server = listening(5), port = port_of(server), fds[5];
  for (int i = 0; i < 5; i++) {
    remote("connect %d %d", version(), port);
    until(server, POLLIN);
    fds[i] = accept(server, NULL, NULL);
    if (i != 2) continue;
    R(close(fds[0]));
    R(close(fds[1]));
  }
  YES(fds[3] == fds[0]);
  YES(fds[4] == fds[1]);
}

// What fits into the process's limit, and no more.
static void limits(void) {
  int count = 0, fds[2000];
  while (count < 2000 && (fds[count] = stream()) >= 0) count++;
  YES(count >= 900 || errno == EMFILE);
  for (int i = 0; i < count; i++) close(fds[i]);
  FD(stream());
}

// A process that has one thread has a table of descriptors of its own already: what it closes is closed.
static void own_table(void) {
  struct pair p = pair();
  int server = listening(5), port = port_of(server);
  R(unshare(CLONE_FILES));
  R(close(server));
  YES(bind_own(stream(), true, port) == port);
  R(send(p.fd, "word", 4, 0));
  peer_reads(p.peer, 4);
}

const struct test descriptor_cases[] = {
    {"dup", duplicates, ALL},
    {"dup wrong", duplicates_wrong, BOTH},
    {"dup replaces", replaced, ALL},
    {"dup onto a file", onto_file, BOTH},
    {"dup saved and restored", saved_and_restored, BOTH},
    {"dup, the number again", number_again, BOTH},
    {"dup, then fork", forked_after, BOTH},
    {"dup onto any number", onto_any_number, BOTH},
    {"dup listener", listener_copies, PASSIVE4 | PASSIVE6},
    {"fcntl", status_flags, ALL},
    {"ioctl", controls, ALL},
    {"ioctl unconnected", controls_unconnected, FAMILIES},
    {"SIGIO", signalled, BOTH},
    {"lowest numbers", lowest, BOTH},
    {"lowest numbers of those closed", lowest_of_closed, PASSIVE4 | PASSIVE6},
    {"many sockets", limits, PASSIVE4},
    {"unshare", own_table, BOTH},
    END,
};
