#!/usr/bin/env bash
# What cannot be delivered is answered with the ICMP error that says why, or dropped where that is asked for.
. "$(dirname "$0")/lab.sh"
two_hosts
two_ports
config '' '[[route]]' 'prefix = "203.0.113.0/25"' 'kind = "blackhole"' \
  '[[route]]' 'prefix = "203.0.113.128/25"' 'kind = "unreachable"' \
  '[[route]]' 'prefix = "2001:db8:b::/64"' 'kind = "blackhole"' \
  '[[route]]' 'prefix = "2001:db8:c::/64"' 'kind = "unreachable"'
if [ "$LAB_ROUTER" = kernel ]; then
  on router ip route add blackhole 203.0.113.0/25
  on router ip route add unreachable 203.0.113.128/25
  on router ip route add blackhole 2001:db8:b::/64
  on router ip route add unreachable 2001:db8:c::/64
fi
start

probe() { on a ping -n -c 1 -W 15 "$@"; }
check "no such host" says 'From 10.0.1.1 .*Destination Host Unreachable' probe 10.0.2.99
check "no such host in IPv6" says 'From 2001:db8:1::1 .*Destination unreachable: Address unreachable' probe 2001:db8:2::99
check "no route" says 'From 10.0.1.1 .*Destination Net Unreachable' probe 192.0.2.1
check "no route in IPv6" says 'From 2001:db8:1::1 .*Destination unreachable: No route' probe 2001:db8:dead::1
check "unreachable route" says 'From 10.0.1.1 .*Destination (Host|Net) Unreachable' probe 203.0.113.129
check "unreachable route in IPv6" says 'From 2001:db8:1::1 .*Destination unreachable' probe 2001:db8:c::1
check "blackhole is silent" fails says 'From ' probe -W 1 203.0.113.1
check "blackhole is silent in IPv6" fails says 'From ' probe -W 1 2001:db8:b::1

# A connected UDP socket learns of the ICMP error at its next call after that has come.
refused() { on a bash -c "exec 3>/dev/udp/$1/9; for i in {1..20}; do echo x >&3 || exit; sleep 0.3; done" 2>&1; }
check "a closed port of the router" says refused refused 10.0.1.1
check "a closed port of the router in IPv6" says refused refused 2001:db8:1::1
check "still routing" pings a 10.0.2.2
