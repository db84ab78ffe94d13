#!/usr/bin/env bash
# Two ports as one wire: what comes in by one leaves by the other, whatever it is.
. "$(dirname "$0")/lab.sh"
host a b
link left a 10.0.0.2/24 2001:db8::2/64
link right b 10.0.0.3/24 2001:db8::3/64
port left
port right
config '' '[[cross-connect]]' 'from = "left"' 'to = "right"'
[ "$LAB_ROUTER" = millrace ] || kernel_bridge wire left right
tagged a left 7 10.7.0.2/24
tagged b right 7 10.7.0.3/24
start

check "IPv4 crosses" pings a 10.0.0.3
check "IPv6 crosses" pings a 2001:db8::3
check "the other way" pings b 10.0.0.2
check "TTL is untouched" says 'ttl=64' on a ping -n -c 1 -W 10 10.0.0.3
check "the hosts see each other's MAC" says "$(mac b right)" on a ip neighbor show 10.0.0.3
check "full-size frames" pings a 10.0.0.3 -s 1472 -M "do"
check "tagged frames" pings a 10.7.0.3
exec_on b iperf3 -s >/dev/null 2>&1 &
within 5 says LISTEN on b ss -Hltn 'sport = :5201' || fail "iperf3 does not start"
check "TCP crosses" on a iperf3 -c 10.0.0.3 -n 20M
