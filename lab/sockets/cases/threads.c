// Threads that share sockets, listeners, an epoll.
#include "cases.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>

static struct pair p;
static int server, epoll;
static atomic_int served, wakes;

static void *accepts(void *unused) {
  for (;;) {
    int fd = accept(server, NULL, NULL);
    if (fd < 0) break;
    if (send(fd, "served", 6, MSG_NOSIGNAL) == 6) served++;
    close(fd);
  }
  return unused;
}

static void shared_listener(void) {
  int version = mode.family == AF_INET6 && !mode.mapped ? 6 : 4;
  pthread_t threads[4];
  server = listening(64);
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, accepts, NULL);
  for (int i = 0; i < 20; i++) peer_reads(remote("connect %d %d", version, port_of(server)), 100);
  line("served %d", served);
  R(shutdown(server, SHUT_RD));
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}

static void *accepts_one(void *unused) {
  int fd = accept(server, NULL, NULL);
  if (fd >= 0 && send(fd, "served", 6, MSG_NOSIGNAL) == 6) served++;
  close(fd);
  return unused;
}

// All hear of a client on the own host, and those that it is not for go on to hear of others.
static void local_client_first(void) {
  pthread_t threads[4];
  char word[8];
  int own = stream();
  socklen_t length;
  server = listening(64);
  struct sockaddr_storage name = to_own(port_of(server), &length);
  inet_pton(AF_INET, "127.0.0.1", &((struct sockaddr_in *)&name)->sin_addr);
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, accepts_one, NULL);
  pause_ms(50);
  R(connect(own, (struct sockaddr *)&name, length));
  R(recv(own, word, 6, MSG_WAITALL));
  for (int i = 0; i < 3; i++) peer_reads(remote("connect 4 %d", port_of(server)), 100);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  line("served %d", served);
}

static void *serves(void *unused) {
  struct epoll_event event;
  char data[100];
  while (epoll_wait(epoll, &event, 1, 300) == 1) {
    wakes++;
    ssize_t n = recv(event.data.fd, data, sizeof data, MSG_DONTWAIT);
    if (n == 10 && send(event.data.fd, data, n, 0) == n) served++;
    event.events = EPOLLIN | EPOLLONESHOT;
    epoll_ctl(epoll, EPOLL_CTL_MOD, event.data.fd, &event);
  }
  return unused;
}

static void shared_epoll(void) {
  pthread_t threads[4];
  struct pair pairs[8];
  epoll = epoll_create1(0);
  for (int i = 0; i < 8; i++) {
    pairs[i] = pair();
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.fd = pairs[i].fd};
    epoll_ctl(epoll, EPOLL_CTL_ADD, pairs[i].fd, &event);
  }
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, serves, NULL);
  for (int i = 0; i < 8; i++) peer_sends(pairs[i].peer, 10);
  for (int i = 0; i < 8; i++) peer_reads(pairs[i].peer, 10);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  line("served %d in %d wakes", served, wakes);
}

static uint8_t received[200000];
static ssize_t received_length;
static int received_error;

static void *receives(void *size) {
  received_length = recv(p.fd, received, (size_t)size, MSG_WAITALL);
  received_error = errno;
  return NULL;
}

static void ended(pthread_t thread) {
  pthread_join(thread, NULL);
  line("the thread received %zd %s", received_length, received_length < 0 ? error_name(received_error) : "");
  bytes("data", received, received_length);
}

static void both_ways(void) {
  pthread_t thread;
  p = pair();
  pthread_create(&thread, NULL, receives, (void *)200000);
  remote_later(0, "send %d 200000", p.peer);
  int sent = send_all(p.fd, 200000, 0);
  ended(thread);
  line("sent %d", sent);
  peer_reads(p.peer, 200000);
}

static void woken_by_shutdown(void) {
  pthread_t thread;
  p = pair();
  pthread_create(&thread, NULL, receives, (void *)10);
  pause_ms(50);
  R(shutdown(p.fd, SHUT_RD));
  ended(thread);
  server = listening(5);
  pthread_create(&thread, NULL, accepts, NULL);
  pause_ms(50);
  R(shutdown(server, SHUT_RDWR));
  pthread_join(thread, NULL);
}

// A close in one thread leaves a call of another alone, which holds the description.
static void closed_meanwhile(void) {
  pthread_t thread;
  p = pair();
  pthread_create(&thread, NULL, receives, (void *)10);
  pause_ms(50);
  R(close(p.fd));
  peer_sends(p.peer, 10);
  ended(thread);
  peer_reads(p.peer, 1);
}

// As Java closes a socket in which another thread waits: by another file in its place.
static void replaced_meanwhile(void) {
  pthread_t thread;
  int ends[2];
  char byte;
  p = pair();
  R(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
  pthread_create(&thread, NULL, receives, (void *)10);
  pause_ms(50);
  R(dup2(ends[0], p.fd) == p.fd);
  peer_sends(p.peer, 10);
  ended(thread);
  peer_reads(p.peer, 1);
  R(write(p.fd, "x", 1));
  R(read(ends[1], &byte, 1));
  R(close(p.fd));
  R(close(p.fd));
  struct pair q = pair();
  R(send(q.fd, "another", 7, 0));
  peer_reads(q.peer, 7);
}

static void *adds(void *unused) {
  struct epoll_event event = {.events = EPOLLIN, .data.fd = p.fd};
  pause_ms(50);
  epoll_ctl(epoll, EPOLL_CTL_ADD, p.fd, &event);
  return unused;
}

// What is registered while another thread waits wakes that thread.
static void added_meanwhile(void) {
  pthread_t thread;
  struct epoll_event event;
  p = pair();
  epoll = epoll_create1(0);
  peer_sends(p.peer, 10);
  arrived(p.fd, 10);
  pthread_create(&thread, NULL, adds, NULL);
  R(epoll_wait(epoll, &event, 1, 3000));
  pthread_join(thread, NULL);
}

static void *waits(void *unused) {
  struct epoll_event event;
  int n = epoll_wait(epoll, &event, 1, 5000);
  line("the thread has %d events", n);
  return unused;
}

// A thread that waits before the program has any socket hears of those that another opens, as in Tokio's programs.
static void waits_first(void) {
  pthread_t thread;
  epoll = epoll_create1(0);
  pthread_create(&thread, NULL, waits, NULL);
  pause_ms(100);
  server = listening(5);
  struct epoll_event event = {.events = EPOLLIN};
  R(epoll_ctl(epoll, EPOLL_CTL_ADD, server, &event));
  remote("connect %d %d", mode.family == AF_INET6 ? 6 : 4, port_of(server));
  pthread_join(thread, NULL);
  FD(accept(server, NULL, NULL));
}

static void *writes(void *word) {
  for (int i = 0; i < 100; i++)
    if (send(p.fd, word, 4, 0) != 4) line("send: %s", error_name(errno));
  return NULL;
}

// Small writes of several threads do not cut each other.
static void many_writers(void) {
  pthread_t threads[4];
  char *words[] = {"aaaa", "aaaa", "aaaa", "aaaa"};
  p = pair();
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, writes, words[i]);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  peer_reads(p.peer, 1600);
}

static struct sockaddr_storage there;
static socklen_t there_length;
static pthread_barrier_t all_here;
static atomic_int strange;

static void *connects(void *unused) {
  pthread_barrier_wait(&all_here);
  if (connect(p.fd, (struct sockaddr *)&there, there_length) == 0) return unused;
  if (errno != EINPROGRESS && errno != EALREADY && errno != EISCONN) strange++;
  return unused;
}

// Threads that connect one socket at the same moment have one connection.
static void connect_together(void) {
  pthread_t threads[4];
  int number = remote("listen %d 5", mode.family == AF_INET6 ? 6 : 4);
  there = to_peer(remote("port %d", number), &there_length);
  pthread_barrier_init(&all_here, NULL, 4);
  for (int i = 0; i < 20; i++) {
    p.fd = stream();
    nonblocking(p.fd);
    for (int j = 0; j < 4; j++) pthread_create(&threads[j], NULL, connects, NULL);
    for (int j = 0; j < 4; j++) pthread_join(threads[j], NULL);
    YES(strange == 0);
    p.peer = remote("accept %d", number);
    peer_sends(p.peer, 5);
    YES(arrived(p.fd, 5));
    close(p.fd);
    peer_closes(p.peer);
  }
}

static int lock_got;
static void *locks(void *unused) {
  struct flock lock = {.l_type = F_WRLCK};
  lock_got = fcntl(server, F_SETLKW, &lock);
  return unused;
}

// A thread that waits for a lock keeps no other from anything.
static void waits_for_lock(void) {
  pthread_t thread;
  int ends[2];
  char byte;
  p = pair();
  server = listening(5);
  R(pipe(ends));
  pid_t child = fork();
  if (child == 0) {
    struct flock lock = {.l_type = F_WRLCK};
    if (fcntl(server, F_SETLK, &lock) == 0 && write(ends[1], "x", 1) == 1) pause();
    _exit(1);
  }
  R(read(ends[0], &byte, 1));
  pthread_create(&thread, NULL, locks, NULL);
  pause_ms(50);
  R(send(p.fd, "word", 4, 0));
  peer_reads(p.peer, 4);
  R(kill(child, SIGKILL));
  R(waitpid(child, NULL, 0) == child);
  pthread_join(thread, NULL);
  line("the lock = %d", lock_got);
}

static int closed;
static void *lingers(void *unused) {
  closed = close(p.fd);
  return unused;
}

// A thread whose close waits for the peer keeps no other from anything, and waits no longer than the peer is there.
static void lingers_meanwhile(void) {
  static char lots[100000];
  struct timespec begin, end;
  pthread_t thread;
  struct linger linger = {.l_onoff = 1, .l_linger = 10};
  struct pair other = pair();
  p = pair();
  remote("set %d %d %d %d", p.peer, SOL_SOCKET, SO_RCVBUF, 20000);
  R(setsockopt(p.fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
  // More than the peer takes.
  send(p.fd, lots, sizeof lots, MSG_DONTWAIT);
  pthread_create(&thread, NULL, lingers, NULL);
  pause_ms(50);
  R(send(other.fd, "word", 4, 0));
  peer_reads(other.peer, 4);
  clock_gettime(CLOCK_MONOTONIC, &begin);
  peer_resets(p.peer);
  pthread_join(thread, NULL);
  clock_gettime(CLOCK_MONOTONIC, &end);
  line("close = %d, at once %d", closed, end.tv_sec - begin.tv_sec < 5);
}

const struct test thread_cases[] = {
    {"threads share a listener", shared_listener, FAMILIES},
    {"threads accept, a local client first", local_client_first, PASSIVE4},
    {"threads share an epoll", shared_epoll, ALL},
    {"threads read and write", both_ways, ALL},
    {"threads woken by shutdown", woken_by_shutdown, BOTH},
    {"threads close meanwhile", closed_meanwhile, BOTH},
    {"threads replace meanwhile", replaced_meanwhile, BOTH},
    {"threads add meanwhile", added_meanwhile, BOTH},
    {"threads wait first", waits_first, PASSIVE4 | PASSIVE6},
    {"threads write", many_writers, BOTH},
    {"threads connect one", connect_together, PASSIVE4 | PASSIVE6},
    {"threads wait for a lock", waits_for_lock, PASSIVE4},
    {"threads linger", lingers_meanwhile, BOTH},
    END,
};
