// sendfile, splice, tee, vmsplice, and the calls that a socket shares with files.
#include "children.h"
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static uint8_t data[300000];

// A file of the pattern.
static int pattern_file(size_t length) {
  int fd = memfd_create("file", 0);
  pattern(data, length, 0);
  if (write(fd, data, length) != (ssize_t)length) line("no file");
  lseek(fd, 0, SEEK_SET);
  return fd;
}

static void send_file(void) {
  struct pair p = pair();
  int file = pattern_file(1000);
  off_t offset = 100;
  R(sendfile(p.fd, file, NULL, 100));
  R(lseek(file, 0, SEEK_CUR));
  R(sendfile(p.fd, file, &offset, 200));
  line("offset %ld", (long)offset);
  R(lseek(file, 0, SEEK_CUR));
  offset = 900;
  R(sendfile(p.fd, file, &offset, 5000));
  line("offset %ld", (long)offset);
  R(sendfile(p.fd, file, &offset, 5000));
  R(sendfile(p.fd, file, NULL, 0));
  peer_reads(p.peer, 400);
  offset = -1;
  R(sendfile(p.fd, file, &offset, 10));
  R(sendfile(p.fd, file, &offset, 0));
  R(sendfile(p.fd, file, (off_t *)8, 10));
  R(sendfile(p.fd, file, NULL, -1));
  R(sendfile(p.fd, p.fd, NULL, 10));
  R(sendfile(p.fd, -1, NULL, 10));
  R(sendfile(-1, file, NULL, 10));
  R(sendfile(file, p.fd, NULL, 10));
  int folder = open("/", O_RDONLY);
  R(sendfile(p.fd, folder, NULL, 10));
  shutdown(p.fd, SHUT_WR);
  catch_signal(SIGPIPE, 0);
  offset = 0;
  R(sendfile(p.fd, file, &offset, 10));
  line("SIGPIPE %d", (int)pipes);
}

static void send_large_file(void) {
  struct pair p = pair();
  int file = pattern_file(300000);
  size_t done = 0;
  remote_later(0, "read %d 299990", p.peer);
  while (done < 300000) {
    ssize_t n = sendfile(p.fd, file, NULL, 300000 - done);
    if (n <= 0) { line("sendfile = %zd %s", n, error_name(errno)); break; }
    done += n;
  }
  peer_reads(p.peer, 10);
  nonblocking(p.fd);
  lseek(file, 0, SEEK_SET);
  ssize_t n;
  for (int i = 0; i < 1000 && (n = sendfile(p.fd, file, NULL, 300000)) >= 0; i++) lseek(file, 0, SEEK_SET);
  line("a full socket: %s", error_name(errno));
}

static void spliced(void) {
  struct pair p = pair();
  int pipe_ends[2];
  R(pipe(pipe_ends));
  pattern(data, 1000, 0);
  R(write(pipe_ends[1], data, 1000));
  R(splice(pipe_ends[0], NULL, p.fd, NULL, 600, 0));
  R(splice(pipe_ends[0], NULL, p.fd, NULL, 600, SPLICE_F_MOVE | SPLICE_F_MORE));
  R(splice(pipe_ends[0], NULL, p.fd, NULL, 600, SPLICE_F_NONBLOCK));
  peer_reads(p.peer, 1000);
  peer_sends(p.peer, 500);
  arrived(p.fd, 500);
  R(splice(p.fd, NULL, pipe_ends[1], NULL, 300, 0));
  R(splice(p.fd, NULL, pipe_ends[1], NULL, 300, 0));
  nonblocking(p.fd);
  R(splice(p.fd, NULL, pipe_ends[1], NULL, 300, 0));
  R(read(pipe_ends[0], data, 1000));
  bytes("through the pipe", data, 500);
  off_t offset = 0;
  R(splice(p.fd, &offset, pipe_ends[1], NULL, 10, 0));
  R(splice(p.fd, NULL, p.fd, NULL, 10, 0));
  R(splice(p.fd, NULL, pipe_ends[1], NULL, 10, 0x100));
  R(splice(p.fd, NULL, pipe_ends[1], NULL, 0, 0x100));
  R(splice(p.fd, NULL, -1, NULL, 10, 0));
  R(tee(p.fd, pipe_ends[1], 10, 0));
  struct iovec part = {data, 10};
  R(vmsplice(p.fd, &part, 1, 0));
  peer_closes(p.peer);
  until(p.fd, POLLIN);
  R(splice(p.fd, NULL, pipe_ends[1], NULL, 10, 0));
  close(pipe_ends[1]);
  R(splice(pipe_ends[0], NULL, p.fd, NULL, 10, 0));
}

// What a full socket does not take stays in the pipe.
static void spliced_to_full(void) {
  struct pair p = pair();
  int ends[2], size = 20000, fed = 0, left = 100000;
  remote("set %d %d %d %d", p.peer, SOL_SOCKET, SO_RCVBUF, size);
  setsockopt(p.fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  nonblocking(p.fd);
  R(pipe(ends));
  nonblocking(ends[1]);
  pattern(data, left, 0);
  remote_later(100, "read %d 99990", p.peer);
  for (int tries = 0; left > 0 && tries < 2000;) {
    ssize_t n = write(ends[1], data + fed, 100000 - fed);
    if (n > 0) fed += n;
    n = splice(ends[0], NULL, p.fd, NULL, 65536, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (n > 0) { left -= n; continue; }
    tries++;
    pause_ms(1);
  }
  line("left %d", left);
  peer_reads(p.peer, 10);
}

// What a full pipe does not take stays in the socket, and nobody waits for room who would have to make it.
static void spliced_to_full_pipe(void) {
  struct pair p = pair();
  int ends[2], got = 0;
  R(pipe(ends));
  R(fcntl(ends[1], F_SETPIPE_SZ, 4096));
  peer_sends(p.peer, 6000);
  arrived(p.fd, 6000);
  R(write(ends[1], data, 1000));
  R(splice(p.fd, NULL, ends[1], NULL, 6000, SPLICE_F_NONBLOCK));
  R(read(ends[0], data, 6000));
  for (int tries = 0; got < 6000 && tries < 100; tries++) {
    ssize_t n = splice(p.fd, NULL, ends[1], NULL, 6000 - got, 0);
    if (n > 0) n = read(ends[0], data + got, 6000);
    if (n > 0) got += n;
  }
  bytes("through the pipe", data, got);
  // The flag is about the pipe: a socket that waits still does.
  remote_later(60, "send %d 10", p.peer);
  R(splice(p.fd, NULL, ends[1], NULL, 10, SPLICE_F_NONBLOCK));
}

// A pipe that nobody reads takes nothing, whether the socket has something or not.
static void spliced_to_broken_pipe(void) {
  struct pair p = pair();
  int ends[2];
  R(pipe(ends));
  R(splice(p.fd, NULL, ends[0], NULL, 10, 0));
  R(close(ends[0]));
  catch_signal(SIGPIPE, 0);
  R(splice(p.fd, NULL, ends[1], NULL, 10, 0));
  line("SIGPIPE %d", (int)pipes);
  peer_sends(p.peer, 10);
  arrived(p.fd, 10);
  R(splice(p.fd, NULL, ends[1], NULL, 10, SPLICE_F_NONBLOCK));
  line("SIGPIPE %d", (int)pipes);
  R(recv(p.fd, data, 100, 0));
}

// A socket is no file: what the calls of files say of it.
static void no_file(void) {
  struct pair p = pair();
  struct stat about;
  R(fstat(p.fd, &about));
  YES(S_ISSOCK(about.st_mode));
  line("size %ld", (long)about.st_size);
  R(lseek(p.fd, 0, SEEK_CUR));
  R(ftruncate(p.fd, 0));
  R(fsync(p.fd));
  R(fdatasync(p.fd));
  R(pread(p.fd, data, 10, 0));
  R(isatty(p.fd));
  YES(mmap(NULL, 4096, PROT_READ, MAP_SHARED, p.fd, 0) == MAP_FAILED);
  line("errno %s", error_name(errno));
  R(flock(p.fd, 2));
  R(copy_file_range(p.fd, NULL, p.fd, NULL, 10, 0));
  char path[64], target[64] = "";
  snprintf(path, sizeof path, "/proc/self/fd/%d", p.fd);
  R(readlink(path, target, 7));
  line("link %s", target);
  R(fallocate(p.fd, 0, 0, 10));
  R(fchdir(p.fd));
  // Without an offset, which is -1 then, they are calls of sockets, too.
  struct iovec part = {data, 4};
  R(pwritev2(p.fd, &part, 1, -1, RWF_DSYNC));
  peer_reads(p.peer, 4);
  R(preadv2(p.fd, &part, 1, -1, RWF_NOWAIT));
  peer_sends(p.peer, 8);
  arrived(p.fd, 8);
  R(preadv2(p.fd, &part, 1, -1, 0));
  R(syscall(SYS_preadv2, p.fd, &part, 1, -1L, -1L, 0));
  bytes("the second", data, 4);
  R(preadv2(p.fd, &part, 1, 0, 0));
  R(preadv2(p.fd, &part, 1, -1, 0x4000));
}

// The C library's streams on a socket.
static void stdio(void) {
  struct pair p = pair();
  FILE *out = fdopen(dup(p.fd), "w"), *in = fdopen(p.fd, "r");
  char text[64] = "";
  R(fprintf(out, "a line of %d words\n", 5));
  R(fflush(out));
  peer_reads(p.peer, 18);
  peer_sends(p.peer, 30);
  R(fread(text, 1, 30, in));
  bytes("read", text, 30);
  R(dprintf(p.fd, "%s", "to the descriptor"));
  peer_reads(p.peer, 17);
  R(fclose(out));
  R(fclose(in));
  peer_reads(p.peer, 1);
}

// The C library's own streams on a socket, as a program has them that a server starts for each connection.
static void standard_streams(void) {
  struct pair p = pair();
  pid_t child = fork();
  if (child == 0) {
    char text[30];
    int nowhere = open("/dev/null", O_WRONLY);
    if (dup2(p.fd, STDIN_FILENO) < 0 || dup2(p.fd, STDOUT_FILENO) < 0) _exit(40);
    close(p.fd);
    if (printf("printed %d\n", 5) != 10 || puts("a line") < 0 || fflush(stdout) != 0) _exit(41);
    if (fread(text, 1, sizeof text, stdin) != sizeof text) _exit(42);
    if (fwrite(text, 1, sizeof text, stdout) != sizeof text || fileno(stdout) != STDOUT_FILENO) _exit(43);
    if (fflush(stdout) != 0 || dup2(nowhere, STDOUT_FILENO) < 0 || printf("not to the peer") != 15) _exit(44);
    if (fflush(stdout) != 0 || dup2(STDIN_FILENO, STDOUT_FILENO) < 0 || printf("at its end") != 10) _exit(45);
    exit(0);
  }
  R(close(p.fd));
  peer_reads(p.peer, 17);
  peer_sends(p.peer, 30);
  peer_reads(p.peer, 40);
  ended(child);
  peer_reads(p.peer, 1);
}

static void executed_printf(void) {
  struct pair p = pair();
  pid_t child = fork();
  if (child == 0) {
    if (dup2(p.fd, STDIN_FILENO) < 0 || dup2(p.fd, STDOUT_FILENO) < 0 || dup2(p.fd, STDERR_FILENO) < 0) _exit(40);
    close(p.fd);
    execlp("env", "env", "printf", "%s %d\\n", "word", "77", NULL);
    _exit(100);
  }
  R(close(p.fd));
  peer_reads(p.peer, 8);
  ended(child);
  peer_reads(p.peer, 1);
}

const struct test file_cases[] = {
    {"sendfile", send_file, ALL},
    {"sendfile large", send_large_file, ALL},
    {"splice", spliced, ALL},
    {"splice to a full socket", spliced_to_full, BOTH},
    {"splice to a full pipe", spliced_to_full_pipe, BOTH},
    {"splice to a broken pipe", spliced_to_broken_pipe, BOTH},
    {"calls of files", no_file, BOTH},
    {"stdio", stdio, BOTH},
    {"stdio, standard streams", standard_streams, BOTH},
    {"stdio, another program's", executed_printf, BOTH},
    END,
};
