#!/usr/bin/env bash
# Start and end: a second daemon is refused, SIGTERM ends with 0 and leaves nothing, a killed one can be followed.
. "$(dirname "$0")/lab.sh"
needs_millrace
two_hosts
two_ports
start

second=(on router timeout 20 "$LAB_BIN/millraced" --config "$lab_config" --socket "$lab_socket")
check "the configuration is valid" "${second[@]}" --check
"${second[@]}" >"$lab/second" 2>&1
check "a second daemon is refused" equal $? 3
check "it names the socket" grep -q "$lab_socket" "$lab/second"
check "the first does not mind" pings a 10.0.2.2
check "nor does its API" millrace show version

stop_daemon 15
check "SIGTERM ends it with status 0" equal $? 0
check "its socket is gone" test ! -e "$lab_socket"
start
check "a new one starts" pings a 10.0.2.2
kill -KILL "$daemon"
wait "$daemon" 2>/dev/null
daemon=
check "a killed one leaves its socket" test -e "$lab_socket"
start
check "which does not stop the next one" pings a 10.0.2.2

export NOTIFY_SOCKET=$lab/notify
exec_on router python3 -u -c '
import os, socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(os.environ["NOTIFY_SOCKET"])
while True:
    print(s.recv(4096).decode())' >"$lab/notified" &
within 15 test -S "$lab/notify" || fail "no receiver of notifications"
stop_daemon 15
start
check "it tells systemd that it is ready" within 15 grep -q '^READY=1' "$lab/notified"
millrace reload
check "that it reloads" within 15 grep -q '^RELOADING=1' "$lab/notified"
stop_daemon 15
check "and that it stops" within 15 grep -q '^STOPPING=1' "$lab/notified"
