#!/usr/bin/env bash
# Exclusive mode, without the daemon: the example reflector_exclusive opens its devices itself, one thread for each
# queue, and sends back what comes.
. "$(dirname "$0")/lab.sh"
needs_millrace
reflector=$LAB_BIN/examples/reflector_exclusive
[ -x "$reflector" ] || fail "no $reflector: cargo build -p millrace-exclusive --example reflector_exclusive"
two_hosts
marked=$lab_root/lab/client/marked.py

# Starts it, ends it: reflects THREADS DEVICE...
reflects() {
  # What the one before has said is not this one's.
  : >"$lab/reflector"
  exec_on router "$reflector" "$@" >"$lab/reflector" 2>&1 &
  reflecting=$!
  within 15 grep -q '^reflecting' "$lab/reflector" || fail "it does not start: $(cat "$lab/reflector")"
}
ends() {
  kill -TERM "$reflecting"
  wait "$reflecting" 2>/dev/null
}
refused() { says "$1" on router "$reflector" "${@:2}"; }

reflects 1 "$LAB_PORT:left" "$LAB_PORT:right"
check "what comes by one port goes back by it" equal 300 "$(on a python3 "$marked" reflected left 300)"
check "and by the other" equal 300 "$(on b python3 "$marked" reflected right 300)"
ends

if [ "$LAB_PORT" = afpacket ]; then
  reflects 2 afpacket:left afpacket:right
  check "two threads do the same" equal 300 "$(on a python3 "$marked" reflected left 300)"
  check "on both ports" equal 300 "$(on b python3 "$marked" reflected right 300)"
  ends
fi

reflects 1 tap:own
on router ip link set own up
check "on a tap that it makes itself" equal 300 "$(on router python3 "$marked" reflected own 300)"
ends

check "a device that is not there is named" refused 'port afpacket:nowhere: .*nowhere' 1 afpacket:nowhere
# A capture file without packets: its header alone.
printf '\xd4\xc3\xb2\xa1\2\0\4\0\0\0\0\0\0\0\0\0\xff\xff\0\0\1\0\0\0' >"$lab/empty.pcap"
check "fewer queues than threads are refused with their number" \
  refused 'has 1 of 2 receive queues' 2 "pcap:$lab/empty.pcap,out=$lab/out.pcap"
