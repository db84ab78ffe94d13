// Other names of the same calls: fortified, 64-bit, glibc's own, syscall().
#include "cases.h"
#include <linux/close_range.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>

ssize_t __read_chk(int, void *, size_t, size_t);
ssize_t __recv_chk(int, void *, size_t, size_t, int);
ssize_t __recvfrom_chk(int, void *, size_t, size_t, int, struct sockaddr *, socklen_t *);
int __poll_chk(struct pollfd *, nfds_t, int, size_t);
int __ppoll_chk(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *, size_t);
ssize_t __read(int, void *, size_t);
ssize_t __write(int, const void *, size_t);
ssize_t __send(int, const void *, size_t, int);
int __connect(int, const struct sockaddr *, socklen_t);
int __close(int);
int __poll(struct pollfd *, nfds_t, int);
int __select(int, fd_set *, fd_set *, fd_set *, struct timeval *);
pid_t __fork(void);
int __fcntl(int, int, ...);
int __dup2(int, int);

static uint8_t data[4096];

static void fortified(void) {
  struct pair p = pair();
  struct sockaddr_storage name;
  socklen_t length = sizeof name;
  peer_sends(p.peer, 30);
  arrived(p.fd, 30);
  R(__read_chk(p.fd, data, 10, sizeof data));
  bytes("read", data, 10);
  R(__recv_chk(p.fd, data, 10, sizeof data, 0));
  R(__recvfrom_chk(p.fd, data, 100, sizeof data, MSG_DONTWAIT, (struct sockaddr *)&name, &length));
  R(__recv_chk(p.fd, data, 10, sizeof data, MSG_DONTWAIT));
  struct pollfd one = {.fd = p.fd, .events = POLLIN | POLLOUT};
  struct timespec limit = {0};
  R(__poll_chk(&one, 1, 0, sizeof one));
  line("poll %s", events(one.revents));
  R(__ppoll_chk(&one, 1, &limit, NULL, sizeof one));
}

static void of_64_bits(void) {
  struct pair p = pair();
  int file = memfd_create("file", 0);
  pattern(data, 100, 0);
  R(write(file, data, 100));
  off64_t offset = 20;
  R(sendfile64(p.fd, file, &offset, 50));
  line("offset %ld", (long)offset);
  peer_reads(p.peer, 50);
  R(fcntl64(p.fd, F_SETFL, O_NONBLOCK));
  R(fcntl64(p.fd, F_GETFL));
  R(recv(p.fd, data, 10, 0));
  FD(fcntl64(p.fd, F_DUPFD, 0));
  R(lseek64(p.fd, 0, SEEK_CUR));
}

static void of_glibc(void) {
  int number = remote("listen %d 5", mode.family == AF_INET6 && !mode.mapped ? 6 : 4);
  socklen_t length;
  struct sockaddr_storage name = to_peer(remote("port %d", number), &length);
  int fd = stream();
  R(__connect(fd, (struct sockaddr *)&name, length));
  int peer = remote("accept %d", number);
  R(__write(fd, "one", 3));
  R(__send(fd, "two", 3, 0));
  peer_reads(peer, 6);
  peer_sends(peer, 10);
  struct pollfd one = {.fd = fd, .events = POLLIN};
  R(__poll(&one, 1, 2000));
  R(__read(fd, data, 100));
  R(__fcntl(fd, F_GETFL));
  fd_set out;
  struct timeval limit = {0};
  FD_ZERO(&out);
  FD_SET(fd, &out);
  R(__select(fd + 1, NULL, &out, NULL, &limit));
  pid_t child = __fork();
  if (child == 0) _exit(__send(fd, "child", 5, 0) != 5);
  R(waitpid(child, NULL, 0) == child);
  peer_reads(peer, 5);
  R(__dup2(fd, 70) == 70);
  R(__close(fd));
  R(__write(70, "three", 5));
  R(__close(70));
  peer_reads(peer, 100);
}

static void by_number(void) {
  struct pair p = pair();
  pattern(data, 100, 0);
  R(syscall(SYS_write, p.fd, data, 20));
  R(syscall(SYS_sendto, p.fd, data + 20, 20, 0, NULL, 0));
  struct iovec part = {data + 40, 20};
  R(syscall(SYS_writev, p.fd, &part, 1));
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  part.iov_base = data + 60;
  R(syscall(SYS_sendmsg, p.fd, &message, 0));
  peer_reads(p.peer, 80);
  peer_sends(p.peer, 60);
  arrived(p.fd, 60);
  R(syscall(SYS_read, p.fd, data, 20));
  bytes("read", data, 20);
  R(syscall(SYS_recvfrom, p.fd, data, 20, 0, NULL, NULL));
  part = (struct iovec){data, 10};
  R(syscall(SYS_readv, p.fd, &part, 1));
  R(syscall(SYS_recvmsg, p.fd, &message, 0));
  R(syscall(SYS_recvfrom, p.fd, data, 20, MSG_DONTWAIT, NULL, NULL));
  R(syscall(SYS_fcntl, p.fd, F_GETFL));
  int value = -1;
  socklen_t length = sizeof value;
  R(syscall(SYS_getsockopt, p.fd, SOL_SOCKET, SO_TYPE, &value, &length));
  line("SO_TYPE %d", value);
  R(syscall(SYS_setsockopt, p.fd, SOL_SOCKET, SO_KEEPALIVE, &value, length));
  R(syscall(SYS_ioctl, p.fd, FIONREAD, &value));
  struct pollfd one = {.fd = p.fd, .events = POLLOUT};
  struct timespec limit = {0};
  R(syscall(SYS_ppoll, &one, 1, &limit, NULL, 8));
  sigset_t set;
  sigemptyset(&set);
  R(syscall(SYS_ppoll, &one, 1, &limit, &set, 8));
  R(syscall(SYS_ppoll, &one, 1, &limit, &set, 4));
  struct sockaddr_storage name;
  length = sizeof name;
  R(syscall(SYS_getsockname, p.fd, &name, &length));
  R(syscall(SYS_getpeername, p.fd, &name, &length));
  int copy = FD(syscall(SYS_dup, p.fd));
  R(syscall(SYS_dup3, p.fd, 80, 0) == 80);
  R(syscall(SYS_shutdown, p.fd, SHUT_WR));
  R(syscall(SYS_close, p.fd));
  R(syscall(SYS_close, copy));
  R(syscall(SYS_close, 80));
  R(syscall(SYS_read, p.fd, data, 1));
  peer_reads(p.peer, 100);
}

static void server_by_number(void) {
  int fd = FD(syscall(SYS_socket, mode.family, SOCK_STREAM, 0));
  socklen_t length;
  struct sockaddr_storage name = to_own(0, &length);
  R(syscall(SYS_bind, fd, &name, length));
  R(syscall(SYS_listen, fd, 5));
  int peer = remote("connect %d %d", mode.family == AF_INET6 && !mode.mapped ? 6 : 4, port_of(fd));
  int epoll = FD(syscall(SYS_epoll_create1, 0));
  struct epoll_event event = {.events = EPOLLIN};
  R(syscall(SYS_epoll_ctl, epoll, EPOLL_CTL_ADD, fd, &event));
  R(syscall(SYS_epoll_pwait, epoll, &event, 1, 2000, NULL, 8));
  int accepted = FD(syscall(SYS_accept4, fd, NULL, NULL, SOCK_NONBLOCK));
  R(syscall(SYS_fcntl, accepted, F_GETFL));
  R(syscall(SYS_write, accepted, "hello", 5));
  peer_reads(peer, 5);
  R(syscall(-1));
  R(syscall(100000));
}

// Calls that wait, and those that share sockets with files.
static void others_by_number(void) {
  struct pair p = pair();
  int ends[2], file = memfd_create("file", 0), epoll = FD(epoll_create1(0));
  fd_set in;
  sigset_t none;
  sigemptyset(&none);
  struct { sigset_t *set; size_t length; } mask = {&none, 8};
  struct timespec limit = {.tv_sec = 3};
  R(pipe(ends));
  remote_later(50, "send %d 10", p.peer);
  FD_ZERO(&in);
  FD_SET(p.fd, &in);
  R(syscall(SYS_pselect6, p.fd + 1, &in, NULL, NULL, &limit, &mask));
  YES(FD_ISSET(p.fd, &in));
  mask.length = 4;
  R(syscall(SYS_pselect6, p.fd + 1, &in, NULL, NULL, &limit, &mask));
  struct epoll_event event = {.events = EPOLLIN};
  R(syscall(SYS_epoll_ctl, epoll, EPOLL_CTL_ADD, p.fd, &event));
  limit = (struct timespec){.tv_sec = 3};
  R(syscall(SYS_epoll_pwait2, epoll, &event, 1, &limit, NULL, 8));
  R(syscall(SYS_splice, p.fd, NULL, ends[1], NULL, 10, 0));
  R(syscall(SYS_splice, ends[0], NULL, p.fd, NULL, 10, 0));
  peer_reads(p.peer, 10);
  pattern(data, 100, 0);
  R(write(file, data, 100));
  off_t offset = 5;
  R(syscall(SYS_sendfile, p.fd, file, &offset, 10));
  line("offset %ld", (long)offset);
  peer_reads(p.peer, 10);
  R(syscall(SYS_close_range, p.fd, p.fd, 0));
  peer_reads(p.peer, 1);
  // Whatever else lies there stays.
  R(syscall(SYS_close_range, 100u, ~0u, 0));
  R(close_range(100, ~0u, CLOSE_RANGE_UNSHARE));
  struct pair q = pair();
  R(send(q.fd, "alive", 5, 0));
  peer_reads(q.peer, 5);
}

const struct test name_cases[] = {
    {"names, fortified", fortified, ALL},
    {"names, 64 bits", of_64_bits, BOTH},
    {"names, of glibc", of_glibc, BOTH},
    {"names, syscall()", by_number, BOTH},
    {"names, syscall() of a server", server_by_number, FAMILIES},
    {"names, syscall() of others", others_by_number, BOTH},
    END,
};
