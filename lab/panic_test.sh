#!/usr/bin/env bash
# A task of the daemon that panics ends it cleanly: exit status 1, nothing left behind.
# What makes one panic from outside: no memory for the stack of another thread, while files are to be read by one.
. "$(dirname "$0")/lab.sh"
needs_millrace
command -v prlimit >/dev/null || skip "no prlimit"
two_hosts
two_ports
# The stack of a thread that has ended is not kept for the next one (glibc's manual, 'POSIX Thread Tunables').
export GLIBC_TUNABLES=glibc.pthread.stack_cache_size=0
start
check "pings pass" pings a 10.0.2.2
# Threads that read files end after ten idle seconds.
no_reader() { ! grep -qs '^tokio-rt-worker' "/proc/$daemon/task"/*/comm; }
# Memory that a thread leaves just then is room for another: once more, then.
for _ in 1 2 3; do
  check "no thread reads files" within 30 no_reader
  size=$(awk '/^VmSize/ {print $2 * 1024}' "/proc/$daemon/status")
  # Less than a stack more.
  prlimit --pid "$daemon" --as=$((size + 262144)) || fail "prlimit"
  millrace reload >/dev/null 2>&1
  within 5 fails kill -0 "$daemon" >/dev/null && break
done
check "it ends" within 20 fails kill -0 "$daemon"
kill -KILL "$daemon" 2>/dev/null
wait "$daemon"
status=$?
daemon=
check "a task panicked" grep -q 'panicked at' "$lab/daemon.log"
check "the daemon ended with status 1" equal "$status" 1
check "it said that it does" grep -q 'a part of the daemon has ended unexpectedly' "$lab/daemon.log"
check "its socket is gone" test ! -e "$lab_socket"
start
check "and it starts again" pings a 10.0.2.2
