#!/usr/bin/env bash
# A restart under a service manager: another process takes over while packets are forwarded, and loses next to none; one that
# can't leaves everything as it was.
. "$(dirname "$0")/lab.sh"
needs_millrace
# A program that can be replaced, as by an update.
mkdir "$lab/bin"
cp "$LAB_BIN/millraced" "$LAB_BIN/millrace" "$lab/bin" || fail "no programs"
LAB_BIN=$lab/bin
two_hosts
two_ports
on b ip address add 198.51.100.1/32 dev lo
device wire "memif:$lab/wire.sock,role=server"
config '' '[[port]]' 'name = "mr0"' 'device = "tap:mr0"'
export NOTIFY_SOCKET=$lab/notify WATCHDOG_USEC=2000000
# What is told, with the process that says it.
exec_on router python3 -u - >"$lab/told" 2>&1 <<'END' &
import os, socket, struct
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
s.bind(os.environ["NOTIFY_SOCKET"])
while True:
    said, control, _, _ = s.recvmsg(4096, 256)
    pid = struct.unpack("iII", control[0][2])[0]
    print(pid, " ".join(said.decode().split("\n")))
END
within 15 test -S "$NOTIFY_SOCKET" || fail "nobody listens"
start
pid() { value "show version" .pid; }
mac_of() { value "show ports" '.[] | select(.name == "'"$1"'") | .mac'; }
state_of() { value "show ports" '.[] | select(.name == "'"$1"'") | .state'; }
first=$daemon
check "it is ready" within 15 grep -q "^$first .*READY=1" "$lab/told"
millrace route add 198.51.100.0/24 via 10.0.2.2 >/dev/null
check "a route of the API is used" pings a 198.51.100.1
made_up=$(mac_of wire)

# Pings at 500/s until a command has ended, of which no more than half are lost, as while forwarding stood still; says how many were,
# and how many came twice.
beside_pings() {
  local sent back lost twice before
  rm -f "$lab/enough"
  before=$(echoes a)
  (until [ -e "$lab/enough" ]; do on a ping -n -c 50 -i 0.002 -W 1 198.51.100.1; done) >"$lab/pings" 2>&1 &
  local pinging=$!
  within 10 echoing "$before" || return 1
  sleep 0.5
  "$@" >"$lab/said" 2>&1
  local status=$?
  sleep 0.5
  touch "$lab/enough"
  wait "$pinging"
  sent=$(awk '/packets transmitted/ {n += $1} END {print n}' "$lab/pings")
  back=$(awk '/packets transmitted/ {n += $4} END {print n}' "$lab/pings")
  twice=$(grep -c 'DUP!' "$lab/pings")
  lost=$((sent - back))
  echo "$1 $2: '$(cat "$lab/said")'; of $sent pings at up to 500/s $lost were lost, $twice came twice" >&3
  [ "$status" -eq 0 ] && [ "$sent" -gt 0 ] && [ "$lost" -le $((sent / 2)) ]
}
exec 3>&1

check "a restart" beside_pings millrace restart
check "it says for how long forwarding stood still" grep -Eq '^restarted; forwarding stood still for [0-9]+ ms$' "$lab/said"
second=$(pid)
check "another process has taken over" fails test "$second" = "$first"
ended() { ! kill -0 "$first" 2>/dev/null; }
check "the one before has ended" within 15 ended
wait "$first"
check "well" equal $? 0
daemon=$second
check "the service manager heard from the one before which process it is now" within 10 grep -q "^$first .*MAINPID=$second" "$lab/told"
check "and then from that one that it is ready" within 15 grep -q "^$second .*READY=1" "$lab/told"
order() { awk -v old="$first" -v new="$second" '$1 == new {exit !told} $1 == old && /MAINPID=/ {told = 1}' "$lab/told"; }
check "in this order" order
check "it feeds the watchdog" within 15 grep -q "^$second WATCHDOG=1" "$lab/told"
check "it was restarted once" equal "$(value "show version" .restarts)" 1
check "the route is there, as the API's" equal "$(value "show routes --prefix 198.51.100.0/24" '.routes[0].origin')" api
for port in left right wire mr0; do
  check "port $port is open" within 15 says . value "show ports" '.[] | select(.name == "'"$port"'") | .number // empty'
done
check "a MAC address that its driver makes up is the same" equal "$(mac_of wire)" "$made_up"
check "the tap is the new process's" on router test -e /sys/class/net/mr0
check "no state stays beside the socket" within 15 test ! -e "$lab_socket.state"

# What was installed meanwhile does not start.
mv "$lab/bin/millraced" "$lab/good"
printf '#!/bin/sh\nexit 3\n' >"$lab/bin/millraced"
chmod +x "$lab/bin/millraced"
refused() { says 'ended before it was ready.*3' millrace restart; }
check "a new program that ends is told of" lossless refused
check "and the old one goes on" equal "$(pid)" "$second"
check "a change is possible" millrace route add 203.0.113.0/24 via 10.0.2.2
check "no state stays then" test ! -e "$lab_socket.state"
mv "$lab/good" "$lab/bin/millraced"
check "with the right one" beside_pings millrace restart
daemon=$(pid)
check "it is the third process" fails test "$daemon" = "$second"
check "the change is there" equal "$(value "show routes --prefix 203.0.113.0/24" '.routes[0].origin')" api
kill -HUP "$daemon"
check "it is told to reload as any" within 15 grep -q "^$daemon .*RELOADING=1" "$lab/told"
kill -TERM "$daemon"
check "and to stop" within 20 fails kill -0 "$daemon"
check "which leaves no socket" test ! -e "$lab_socket"
daemon=
