// What test suites for Linux look at, and programs seldom do.
#include "talk.h"
#include <limits.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>

static uint8_t data[4096];

// A socket that was connected can be bound and listen.
static void dissolved_and_bound(void) {
  int fd = stream(), number = remote("listen %d 5", version());
  struct sockaddr any = {.sa_family = AF_UNSPEC};
  socklen_t length;
  struct sockaddr_storage name = to_peer(remote("port %d", number), &length);
  R(connect(fd, (struct sockaddr *)&name, length));
  YES(bind_own(fd, true, 0) > 0);
  R(connect(fd, &any, sizeof any));
  YES(bind_own(fd, true, 0) > 0);
  R(listen(fd, 5));
  int peer = remote("connect %d %d", version(), port_of(fd));
  until(fd, POLLIN);
  int accepted = FD(accept(fd, NULL, NULL));
  R(send(accepted, "served", 6, 0));
  peer_reads(peer, 6);
}

static void nothing_of_a_datagram(void) {
  struct talk t = talk(true);
  struct iovec none[2] = {{data, 0}, {data, 0}};
  peer_sends_to(t, 7);
  until(t.fd, POLLIN);
  R(read(t.fd, data, 0));
  R(readv(t.fd, none, 2));
  R(recv(t.fd, data, 0, MSG_PEEK));
  R(read(t.fd, data, 100));
}

static void odd_messages(void) {
  struct pair p = pair();
  struct iovec piece = {data, 10};
  struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_name = data, .msg_namelen = -1};
  peer_sends(p.peer, 30);
  arrived(p.fd, 30);
  R(recvmsg(p.fd, &message, 0));
  R(sendmsg(p.fd, &message, 0));
  message.msg_namelen = 0;
  R(recvmsg(p.fd, &message, (int)0x80000000));
  R(sendmsg(p.fd, &message, (int)0x80000000));
  R(recvmsg(p.fd, &message, MSG_CMSG_CLOEXEC));
  line("flags %x", message.msg_flags);
  R(recv(p.fd, data, 10, -1));
  message = (struct msghdr){.msg_iov = &piece, .msg_iovlen = 1, .msg_controllen = 64};
  R(sendmsg(p.fd, &message, 0));
  R(sendto(p.fd, data, 5, 0, (struct sockaddr *)8, 16));
  R(sendto(p.fd, data, 5, 0, (struct sockaddr *)data, -1));
  R(sendto(p.fd, data, 5, 0, (struct sockaddr *)data, 129));
  off_t offset = 0;
  R(sendfile(p.fd, p.fd, &offset, 10));
  R(sendfile(p.fd, p.fd, NULL, 10));
  R(pwritev2(p.fd, &piece, 1, -1, RWF_APPEND));
  peer_reads(p.peer, 10);
}

static void huge_lengths(void) {
  struct pair p = pair();
  peer_sends(p.peer, 30);
  arrived(p.fd, 30);
  R(read(p.fd, data, SIZE_MAX));
  R(read(p.fd, data, (size_t)1 << 62));
  R(write(p.fd, data, SIZE_MAX));
  R(recv(p.fd, data, SIZE_MAX, 0));
  bytes("received", data, 30);
  struct iovec pieces[2] = {{data, (size_t)1 << 62}, {data, 1}};
  peer_sends(p.peer, 12);
  arrived(p.fd, 12);
  R(readv(p.fd, pieces, 2));
  R(readv(p.fd, pieces, 1));
}

// Sends five bytes with one control message.
static long said(struct talk t, int level, int kind, const void *what, size_t length) {
  union {
    char bytes[CMSG_SPACE(64)];
    struct cmsghdr head;
  } control = {0};
  struct iovec piece = {data, 5};
  struct msghdr message = {.msg_name = &t.to, .msg_namelen = t.length, .msg_iov = &piece, .msg_iovlen = 1,
                           .msg_control = control.bytes, .msg_controllen = CMSG_SPACE(length)};
  control.head = (struct cmsghdr){.cmsg_level = level, .cmsg_type = kind, .cmsg_len = CMSG_LEN(length)};
  memcpy(CMSG_DATA(&control.head), what, length);
  return sendmsg(t.fd, &message, 0);
}

static void said_of_datagrams(void) {
  struct talk t = talk(true);
  int nine = 9, none = 0, large = 300;
  struct in_pktinfo four = {.ipi_ifindex = INT_MAX};
  struct in6_pktinfo six = {.ipi6_ifindex = INT_MAX};
  R(said(t, SOL_SOCKET, 1234, &nine, 4));
  R(said(t, IPPROTO_UDP, 1234, &nine, 4));
  R(said(t, IPPROTO_TCP, 1234, &nine, 4));
  R(said(t, SOL_IP, 1234, &nine, 4));
  R(said(t, SOL_IPV6, 1234, &nine, 4));
  R(said(t, SOL_IP, IP_TTL, &nine, 4));
  R(said(t, SOL_IP, IP_TTL, &nine, 1));
  R(said(t, SOL_IP, IP_TTL, &none, 4));
  R(said(t, SOL_IP, IP_TOS, &nine, 1));
  R(said(t, SOL_IP, IP_TOS, &large, 4));
  R(said(t, SOL_IPV6, IPV6_HOPLIMIT, &nine, 4));
  R(said(t, SOL_IPV6, IPV6_HOPLIMIT, &nine, 1));
  R(said(t, SOL_IPV6, IPV6_TCLASS, &nine, 1));
  R(said(t, SOL_IPV6, IPV6_TCLASS, &large, 4));
  R(said(t, SOL_IP, IP_PKTINFO, &four, sizeof four));
  R(said(t, SOL_IPV6, IPV6_PKTINFO, &six, sizeof six));
  six.ipi6_ifindex = 0;
  R(said(t, SOL_IPV6, IPV6_PKTINFO, &six, sizeof six));
  struct msghdr message = {.msg_name = &t.to, .msg_namelen = t.length, .msg_control = data, .msg_controllen = 1 << 30};
  R(sendmsg(t.fd, &message, 0));
}

static void watched_alone(void) {
  struct pair p = pair();
  int epoll = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN | EPOLLEXCLUSIVE};
  R(epoll_ctl(epoll, EPOLL_CTL_ADD, p.fd, &event));
  event.events = EPOLLIN;
  R(epoll_ctl(epoll, EPOLL_CTL_MOD, p.fd, &event));
  peer_sends(p.peer, 5);
  arrived(p.fd, 5);
  R(epoll_wait(epoll, (struct epoll_event *)8, 1, 500));
  R(epoll_wait(epoll, &event, 1, 500));
}

// By number, calls that wait say how much of their time is left.
static void time_left(void) {
  struct pair p = pair();
  struct pollfd one = {.fd = p.fd, .events = POLLIN};
  struct timespec time = {.tv_sec = 2};
  remote_later(300, "send %d 5", p.peer);
  R(syscall(SYS_ppoll, &one, 1, &time, NULL, 8));
  YES(time.tv_sec < 2 && (time.tv_sec > 0 || time.tv_nsec > 0));
  fd_set set;
  FD_ZERO(&set);
  FD_SET(p.fd, &set);
  time = (struct timespec){.tv_sec = 2};
  R(syscall(SYS_pselect6, p.fd + 1, &set, NULL, NULL, &time, NULL));
  YES(time.tv_sec <= 2 && time.tv_sec > 0);
}

// Signals say which descriptor they are about.
static void told_which(void) {
  struct pair p = pair();
  sigset_t set;
  siginfo_t told = {0};
  struct timespec time = {.tv_sec = 3};
  sigemptyset(&set);
  sigaddset(&set, SIGRTMIN + 3);
  sigprocmask(SIG_BLOCK, &set, NULL);
  R(fcntl(p.fd, F_SETOWN, getpid()));
  R(fcntl(p.fd, F_SETSIG, SIGRTMIN + 3));
  R(fcntl(p.fd, F_SETFL, O_ASYNC));
  remote_later(100, "send %d 5", p.peer);
  YES(sigtimedwait(&set, &told, &time) == SIGRTMIN + 3);
  YES(told.si_fd == p.fd);
  line("events: %s", events(told.si_band));
}

const struct test edge_cases[] = {
    {"dissolved, then it listens", dissolved_and_bound, PASSIVE4 | PASSIVE6},
    {"nothing of a datagram", nothing_of_a_datagram, PASSIVE4 | PASSIVE6},
    {"odd messages", odd_messages, BOTH},
    {"huge lengths", huge_lengths, BOTH},
    {"said of datagrams", said_of_datagrams, FAMILIES},
    {"EPOLLEXCLUSIVE stays", watched_alone, BOTH},
    {"time left by number", time_left, BOTH},
    {"F_SETSIG says which", told_which, BOTH},
    END,
};
