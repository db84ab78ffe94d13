#!/usr/bin/env bash
# Ports that are taps: the kernel's end of each moves to its host.
. "$(dirname "$0")/lab.sh"
needs_millrace
host a b
device left tap:left 10.0.1.1/24 2001:db8:1::1/64
device right tap:right 10.0.2.1/24 2001:db8:2::1/64
start

# give PORT HOST ADDRESS GATEWAY ADDRESS GATEWAY
give() {
  within 5 exists router "$1" || fail "no tap $1"
  on router ip link set "$1" netns "$lab_name-$2"
  on "$2" ip link set "$1" up
  on "$2" ip address add "$3" dev "$1"
  on "$2" ip address add "$5" dev "$1"
  gateway "$2" "$4" "$6"
}
give left a 10.0.1.2/24 10.0.1.1 2001:db8:1::2/64 2001:db8:1::1
give right b 10.0.2.2/24 10.0.2.1 2001:db8:2::2/64 2001:db8:2::1
check "the router answers" within 10 pings a 10.0.1.1
check "IPv4" pings a 10.0.2.2
check "IPv6" pings a 2001:db8:2::2
check "a long echo, in fragments, is answered by the router" pings a 10.0.1.1 -s 5000
check "in IPv6 too" pings a 2001:db8:1::1 -s 5000
check "full-size frames" pings a 10.0.2.2 -s 1472 -M "do"
transfers 10.0.2.2 2001:db8:2::2
