#!/usr/bin/env bash
# `trace` tells in words what becomes of single packets; drops are counted by reason.
. "$(dirname "$0")/lab.sh"
needs_millrace
two_hosts
two_ports
config '' '[[route]]' 'prefix = "203.0.113.0/24"' 'kind = "blackhole"'
start
pings a 10.0.2.2 >/dev/null

# The trace of what a command sends, which is repeated until there is a packet of it: nothing says that a trace has begun.
# traced OPTION... -- COMMAND...
traced() {
  local options=() pid
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  millrace trace --timeout 10 "${options[@]}" >"$lab/trace" 2>&1 &
  pid=$!
  while kill -0 "$pid" 2>/dev/null; do
    "$@" >/dev/null 2>&1
    sleep 0.2
  done
  wait "$pid"
  cat "$lab/trace"
}
check "a forwarded packet goes from left to right" says right traced --count 1 --host 10.0.2.2 -- on a ping -n -c 1 -W 1 10.0.2.2
check "its addresses are shown" grep -q '10.0.1.2' "$lab/trace"
check "the route that it took is shown" grep -q -E 'ip4|ipv4' "$lab/trace"
check "a dropped one shows its reason" says blackhole traced --count 1 --host 203.0.113.1 -- on a ping -n -c 1 -W 1 203.0.113.1
check "IPv6" says '2001:db8:2::2' traced --count 1 --host 2001:db8:2::2 -- on a ping -n -c 1 -W 1 2001:db8:2::2
check "a filter leaves others out" fails grep -q '10.0.2.2' "$lab/trace"
traced --count 2 --protocol icmp --port right -- on a ping -n -c 1 -W 1 10.0.2.2 >/dev/null
check "a filter by port and protocol" grep -q '10.0.2.2' "$lab/trace"

before=$(drops blackhole)
on a ping -n -q -i 0.01 -c 20 -W 1 203.0.113.1 >/dev/null
counted() { equal "$(($(drops blackhole) - before))" 20; }
check "drops are counted by reason" within 10 counted
