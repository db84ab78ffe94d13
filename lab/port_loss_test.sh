#!/usr/bin/env bash
# A port whose interface goes away is reported, the others go on, and it is back when its interface is.
. "$(dirname "$0")/lab.sh"
needs_millrace
two_hosts
two_ports
start

state() { value "show ports" '.. | objects | select(.name == "'"$1"'") | .state'; }
is() { equal "$(state "$1")" "$2"; }
check "traffic passes" pings a 10.0.2.2
check "the port is up" is right up
on b ip link set right down
check "a peer that is down is seen" within 20 is right link-down
on b ip link set right up
on b ip -6 address replace 2001:db8:2::2/64 dev right
gateway b 10.0.2.1 2001:db8:2::1
check "and seen to come back" within 20 is right up
check "traffic passes again" within 20 pings a 10.0.2.2

on b ip link delete right
check "a deleted interface is reported" within 20 is right gone
check "the daemon says so in its log" within 10 grep -q 'gone: .*right' "$lab/daemon.log"
check "the other port goes on" pings a 10.0.1.1
check "what was behind it is unreachable" fails on a ping -n -c 1 -W 1 10.0.2.2
link right b 10.0.2.2/24 2001:db8:2::2/64
gateway b 10.0.2.1 2001:db8:2::1
check "a new interface of that name is taken up" within 20 is right up
check "traffic passes through it" within 20 pings a 10.0.2.2
check "in IPv6 too" within 20 pings a 2001:db8:2::2
