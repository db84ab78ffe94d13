#!/usr/bin/env bash
# Echo through the router and to each of its own addresses, small and full-size, both families.
. "$(dirname "$0")/lab.sh"
two_hosts
two_ports
start

check "IPv4 through the router" pings a 10.0.2.2
check "IPv6 through the router" pings a 2001:db8:2::2
check "IPv4 full-size frames" pings a 10.0.2.2 -s 1472 -M "do"
check "IPv6 full-size frames" pings a 2001:db8:2::2 -s 1452 -M "do"
for address in 10.0.1.1 10.0.2.1 2001:db8:1::1 2001:db8:2::1; do
  check "the router's $address answers" pings a "$address"
done
check "the far side too" pings b 10.0.1.1
check "TTL is one less behind the router" says 'ttl=63' on a ping -n -c 1 -W 10 10.0.2.2
check "hop limit is one less behind the router" says 'ttl=63' on a ping -n -c 1 -W 10 2001:db8:2::2
check "a flood of 2000 is answered in full" pings a 10.0.2.2 -q -i 0.001 -c 2000
check "an IPv6 flood of 2000 too" pings a 2001:db8:2::2 -q -i 0.001 -c 2000
