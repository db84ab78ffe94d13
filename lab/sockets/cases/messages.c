// sendmsg, recvmsg, sendmmsg, recvmmsg on connections.
#include "cases.h"

static uint8_t data[65536];

static void message(void) {
  struct pair p = pair();
  pattern(data, 100, 0);
  struct iovec parts[] = {{data, 10}, {data + 10, 0}, {data + 10, 90}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
  R(sendmsg(p.fd, &message, 0));
  peer_reads(p.peer, 100);
  peer_sends(p.peer, 100);
  arrived(p.fd, 100);
  struct sockaddr_storage name;
  uint8_t space[256];
  struct iovec into[] = {{data + 1000, 60}, {data + 2000, 10}};
  struct msghdr got = {.msg_name = &name, .msg_namelen = sizeof name, .msg_iov = into, .msg_iovlen = 2,
                       .msg_control = space, .msg_controllen = sizeof space, .msg_flags = -1};
  R(recvmsg(p.fd, &got, 0));
  line("name %u, control %zu, flags %#x", got.msg_namelen, got.msg_controllen, got.msg_flags);
  bytes("first", data + 1000, 60);
  bytes("second", data + 2000, 10);
  R(recvmsg(p.fd, &got, MSG_PEEK));
  R(recvmsg(p.fd, &got, MSG_DONTWAIT));
  R(recvmsg(p.fd, &got, MSG_DONTWAIT));
  got.msg_iovlen = 0;
  R(recvmsg(p.fd, &got, MSG_DONTWAIT));
  peer_closes(p.peer);
  until(p.fd, POLLIN);
  got.msg_iovlen = 1;
  R(recvmsg(p.fd, &got, 0));
}

static void message_errors(void) {
  struct pair p = pair();
  struct iovec part = {data, 10};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1025};
  R(sendmsg(p.fd, &message, 0));
  R(recvmsg(p.fd, &message, 0));
  message.msg_iovlen = 1;
  R(sendmsg(p.fd, NULL, 0));
  R(recvmsg(p.fd, NULL, MSG_DONTWAIT));
  R(sendmsg(-1, &message, 0));
  R(sendmsg(STDOUT_FILENO, &message, 0));
  part.iov_len = -1;
  R(sendmsg(p.fd, &message, 0));
  part.iov_len = 10;
  // Ancillary data that no TCP socket knows.
  union { struct cmsghdr header; char space[64]; } extra = {0};
  extra.header.cmsg_len = CMSG_LEN(4);
  extra.header.cmsg_level = SOL_SOCKET;
  extra.header.cmsg_type = 9999;
  message.msg_control = &extra;
  message.msg_controllen = CMSG_SPACE(4);
  R(sendmsg(p.fd, &message, MSG_NOSIGNAL));
  extra.header.cmsg_len = 1;
  R(sendmsg(p.fd, &message, MSG_NOSIGNAL));
  extra.header.cmsg_len = CMSG_LEN(4);
  extra.header.cmsg_level = IPPROTO_IP;
  R(sendmsg(p.fd, &message, MSG_NOSIGNAL));
}

static void several(void) {
  struct pair p = pair();
  pattern(data, 300, 0);
  struct iovec parts[] = {{data, 100}, {data + 100, 100}, {data + 200, 100}};
  struct mmsghdr messages[3] = {0};
  for (int i = 0; i < 3; i++) messages[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1};
  R(sendmmsg(p.fd, messages, 3, 0));
  line("lengths %u %u %u", messages[0].msg_len, messages[1].msg_len, messages[2].msg_len);
  peer_reads(p.peer, 300);
  R(sendmmsg(p.fd, messages, 0, 0));
  peer_sends(p.peer, 150);
  arrived(p.fd, 150);
  for (int i = 0; i < 3; i++) parts[i].iov_base = data + 1000 * (i + 1);
  R(recvmmsg(p.fd, messages, 3, MSG_DONTWAIT, NULL));
  line("lengths %u %u", messages[0].msg_len, messages[1].msg_len);
  bytes("second", data + 2000, 50);
  R(recvmmsg(p.fd, messages, 3, MSG_DONTWAIT, NULL));
  R(recvmmsg(p.fd, messages, 0, MSG_DONTWAIT, NULL));
  peer_sends(p.peer, 10);
  R(recvmmsg(p.fd, messages, 3, MSG_WAITFORONE, NULL));
  struct timespec limit = {.tv_sec = -1};
  R(recvmmsg(p.fd, messages, 1, 0, &limit));
  R(recvmmsg(p.fd, messages, 1, 0, (struct timespec *)8));
}

// A message that was taken in part is the last: the next would follow a hole.
static void in_part(void) {
  struct pair p = pair();
  int size = 20000;
  struct timeval limit = {.tv_usec = 500000};
  struct timespec before, after;
  struct iovec parts[64], last = {data, 10};
  for (int i = 0; i < 64; i++) parts[i] = (struct iovec){data, sizeof data};
  struct mmsghdr messages[2] = {
      {.msg_hdr = {.msg_iov = parts, .msg_iovlen = 64}},
      {.msg_hdr = {.msg_iov = &last, .msg_iovlen = 1}},
  };
  remote("set %d %d %d %d", p.peer, SOL_SOCKET, SO_RCVBUF, size);
  R(setsockopt(p.fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size));
  R(setsockopt(p.fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit));
  clock_gettime(CLOCK_MONOTONIC, &before);
  R(sendmmsg(p.fd, messages, 2, 0));
  clock_gettime(CLOCK_MONOTONIC, &after);
  YES(messages[0].msg_len > 0 && messages[0].msg_len < 64 * sizeof data);
  YES((after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000 < 900);
}

const struct test message_cases[] = {
    {"sendmsg and recvmsg", message, ALL},
    {"sendmsg errors", message_errors, BOTH},
    {"sendmmsg and recvmmsg", several, ALL},
    {"sendmmsg in part", in_part, PASSIVE4},
    END,
};
