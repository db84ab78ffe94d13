// Cases of the socket API that run on any stack: what every call returns is written down, line by line, so that two
// stacks can be compared. The subject runs the cases on the stack in question; its peer, on the kernel's, does what
// the subject tells it over a Unix socket.
#pragma once
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// How a case meets its peer.
struct mode {
  const char *name;
  int family;   // AF_INET or AF_INET6
  bool passive; // the peer connects
  bool mapped;  // an AF_INET6 socket for an IPv4 peer
};
enum {
  ONCE = 1, // needs no connection, or makes its own
  PASSIVE4 = 2,
  ACTIVE4 = 4,
  PASSIVE6 = 8,
  ACTIVE6 = 16,
  MAPPED = 32,
  BOTH = PASSIVE4 | ACTIVE4,
  FAMILIES = PASSIVE4 | PASSIVE6 | MAPPED,
  ALL = BOTH | PASSIVE6 | ACTIVE6 | MAPPED,
};
struct test {
  const char *name;
  void (*run)(void);
  unsigned modes;
};
extern struct mode mode;                                                         // of the case that runs
extern const char *own4, *own6, *peer4, *peer6, *control_path, *program;         // of the command line

// log.c: one line per fact, 'CASE/MODE: FACT'.
extern char prefix[128];
void line(const char *format, ...) __attribute__((format(printf, 1, 2)));
long result(const char *call, long value, int error);
int descriptor(const char *call, int fd, int error);
void yes(const char *what, bool value);
// The bytes, as a hash.
void bytes(const char *what, const void *data, long length);
const char *error_name(int error);
// Names of a poll or epoll mask.
const char *events(unsigned mask);
// Family, address and, for what is known by name here, port: own, peer, zero, other.
void address(const char *what, const void *address, socklen_t length);

// Logs what a call returns, and errno if it is negative.
#define R(call) ({ errno = 0; long r_ = (long)(call); result(#call, r_, errno); })
// The same for a call that returns a descriptor, whose number is nobody's business.
#define FD(call) ({ errno = 0; int r_ = (call); descriptor(#call, r_, errno); })
#define YES(expression) yes(#expression, (expression))

// remote.c: the peer does these, and they return when it has.
void meet_peer(void);
extern int control;
int remote(const char *format, ...) __attribute__((format(printf, 1, 2))); // the first number of its answer
// Done MILLISECONDS after the call returns.
void remote_later(int milliseconds, const char *format, ...) __attribute__((format(printf, 2, 3)));
// What the peer read: logged as count, hash, and error; it reads until LENGTH bytes, the end or an error.
void peer_reads(int peer, int length);
// The peer sends this many bytes of the pattern, going on where it stopped.
void peer_sends(int peer, int length);
void peer_closes(int peer);
void peer_resets(int peer);
void peer_shuts(int peer, int how);
// A port of the peer that nobody listens on.
int closed_port(int type);

// pair.c
struct pair {
  int fd;       // the subject's end
  int peer;     // the number of the peer's end
  int listener; // or -1
  int port;     // the local one
};
struct pair pair(void);
// A socket of the mode's family.
int stream(void);
int datagram(void);
// Binds it to the own address, or with any to the wildcard, and returns the port.
int bind_own(int fd, bool any, int port);
int listening(int backlog);
int port_of(int fd);
struct sockaddr_storage to_peer(int port, socklen_t *length);
struct sockaddr_storage to_own(int port, socklen_t *length);
// Waits until that many bytes can be read; until events are there (returns them); at most three seconds.
bool arrived(int fd, int length);
short until(int fd, short wanted);
void pause_ms(int milliseconds);
void nonblocking(int fd);
// Fills a buffer with the pattern from offset on; the subject's streams begin at 0 as the peer's do.
void pattern(void *data, size_t length, size_t offset);
uint64_t hash_of(const void *data, size_t length);
int send_all(int fd, size_t length, size_t offset);
// Signals that came so far: count and, for SIGPIPE, apart.
extern volatile sig_atomic_t signals, pipes;
void catch_signal(int number, int flags);
