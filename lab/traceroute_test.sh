#!/usr/bin/env bash
# Each hop shows itself when the TTL or hop limit ends there.
. "$(dirname "$0")/lab.sh"
two_hosts
two_ports
start

# Prints the addresses of the hops, one line.
hops() { on a traceroute -n -q 1 -w 10 "$@" | awk 'NR > 1 {printf "%s%s", sep, $2; sep = " "} END {print ""}'; }

check "IPv4 by UDP" equal "$(hops 10.0.2.2)" "10.0.1.1 10.0.2.2"
check "IPv6 by UDP" equal "$(hops 2001:db8:2::2)" "2001:db8:1::1 2001:db8:2::2"
check "IPv4 by ICMP" equal "$(hops -I 10.0.2.2)" "10.0.1.1 10.0.2.2"
check "IPv6 by ICMP" equal "$(hops -I 2001:db8:2::2)" "2001:db8:1::1 2001:db8:2::2"
check "IPv4 TTL 1 is answered" says 'From 10.0.1.1 .*Time to live exceeded' on a ping -n -c 1 -W 10 -t 1 10.0.2.2
check "IPv6 hop limit 1 is answered" says 'From 2001:db8:1::1 .*Time exceeded: Hop limit' \
  on a ping -n -c 1 -W 10 -t 1 2001:db8:2::2
check "TTL 2 arrives" pings a 10.0.2.2 -t 2
check "TTL 1 to the router itself is for it" pings a 10.0.2.1 -t 1
check "hop limit 1 to the router itself is for it" pings a 2001:db8:2::1 -t 1
