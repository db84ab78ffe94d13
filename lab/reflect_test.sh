#!/usr/bin/env bash
# The variant with route triples: prefix, mask and egress port, static MACs, and misses back out of their port.
. "$(dirname "$0")/lab.sh"
needs_millrace
two_hosts
port left
config "next-hop-mac = \"$(mac a left)\""
port right
config "next-hop-mac = \"$(mac b right)\""
config '' '[forwarding]' 'miss = "reflect"'
config '' '[[route]]' 'prefix = "10.0.1.0"' 'mask = "255.255.255.0"' 'port = "left"'
config '' '[[route]]' 'prefix = "10.0.2.0"' 'mask = "255.255.255.0"' 'port = "right"'
config '' '[[route]]' 'prefix = "2001:db8:1::/64"' 'port = "left"'
config '' '[[route]]' 'prefix = "2001:db8:2::/64"' 'port = "right"'
for family in 10.0.1.1/a/left 2001:db8:1::1/a/left 10.0.2.1/b/right 2001:db8:2::1/b/right; do
  IFS=/ read -r address name interface <<<"$family"
  on "$name" ip neighbor replace "$address" lladdr "$(mac router "$interface")" dev "$interface"
done
start

check "IPv4 by triples" pings a 10.0.2.2
check "IPv6 by triples" pings a 2001:db8:2::2
check "TTL is one less" says 'ttl=63' on a ping -n -c 1 -W 10 10.0.2.2

# Host a sends 100 packets to an address; what it received before is in $before.
hundred() {
  before=$(received a left)
  on a bash -c "for i in {1..100}; do echo x >/dev/udp/$1/9; done" 2>/dev/null
}
came_back() { [ $(($(received a left) - before)) -ge 100 ]; }
hundred 203.0.113.9
check "an IPv4 miss comes back" within 10 came_back
hundred 2001:db8:dead::9
check "an IPv6 miss comes back" within 10 came_back
hundred 10.0.2.77
# What follows them has been carried: so have they.
check "what comes behind hits arrives" pings a 10.0.2.2
check "a hit does not come back" test $(($(received a left) - before)) -le 15
