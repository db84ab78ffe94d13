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
# How often it has said that it reloads, and that it is ready, which it said at its start, too; and what of that last.
told() {
  local told
  told=$(grep -E '^(RELOADING|READY)=1' "$lab/notified")
  equal "$(grep -c RELOADING <<<"$told") $(grep -c READY <<<"$told") $(tail -n 1 <<<"$told")" "$1 $(($1 + 1)) READY=1"
}
check "and then that it is ready" within 15 told 1
cp "$lab_config" "$lab/good.toml"
config '' '[[port]]' 'name = "left"' 'device = "nothing:1"'
check "a wrong configuration is refused" fails millrace reload
check "after which it is ready as well" within 15 told 2
cp "$lab/good.toml" "$lab_config"
stop_daemon 15
check "and that it stops" within 15 grep -q '^STOPPING=1' "$lab/notified"
