#!/usr/bin/env bash
# The example pof: forwards all that a slow sender sends, and finds how much work for each packet slows it down.
. "$(dirname "$0")/lab.sh"
needs_millrace
pof=$LAB_BIN/examples/pof
[ -x "$pof" ] || fail "no $pof: cargo build -p millrace-client --example pof"
two_hosts
two_ports
start
export MILLRACE_ATTACH=$lab/attach.sock
attached() { value "show clients" '. | length'; }
clients() { equal "$(attached)" "$1"; }

exec_on router "$pof" left right md5 0 1 >"$lab/pof" 2>&1 &
forwarder=$!
check "pof attaches" within 15 clients 1
exec_on b python3 "$lab_root/lab/client/marked.py" receive right 500 >"$lab/received" &
receiver=$!
within 15 grep -q listening "$lab/received" || fail "nobody listens at b"
on a python3 "$lab_root/lab/client/marked.py" send left 500 0.001
wait "$receiver"
check "without work it forwards all that come" grep -qx 500 "$lab/received"
check "and says so" within 15 says '^md5 +122 +0 +[1-9][0-9]* ' cat "$lab/pof"
kill -KILL "$forwarder"
wait "$forwarder" 2>/dev/null
check "the daemon takes its queues back" within 15 clients 0

exec_on a python3 "$lab_root/lab/client/marked.py" send left 0 0.0005 &
sender=$!
# Packets/s in its first second: rate KIND N
rate() {
  timeout 12 ip netns exec "$lab_name-router" "$pof" left right "$1" "$2" 64 2>/dev/null | sed -n '2{p;q}' | tr -s ' ' |
    cut -d ' ' -f 4
}
# Work of several milliseconds a packet takes more than half of the rate that there is right before: falls KIND N
falls() {
  local few free
  free=$(rate md5 0)
  few=$(rate "$1" "$2")
  [ "${few:-$free}" -lt $((free / 2)) ] || { echo "$few packets/s, $free without work"; return 1; }
}
come() { [ "$(rate md5 0)" -gt 100 ]; }
check "packets come" within 10 come
check "MD5 slows it down" within 15 falls md5 15000
check "reads of memory do" within 15 falls memory 50000

timeout 90 ip netns exec "$lab_name-router" "$pof" left right sweep 0.1 64 >"$lab/table" 2>&1
cat "$lab/table"
kill -KILL "$sender"
wait "$sender" 2>/dev/null
check "a sweep makes a table" says '^work +bytes +n +packets/s +Gbit/s +lost +idle %$' cat "$lab/table"
check "of MD5 without and with work" says '^md5 +122 +[1-9][0-9]* +[1-9]' cat "$lab/table"
check "and of reads" says '^memory +122 +[1-9][0-9]* +[1-9]' cat "$lab/table"
check "it says how much was free, and what the limit is" \
  says '^without loss: [0-9]+ md5 or [0-9]+ reads a packet; (CPU|memory) is the limit$' cat "$lab/table"
