#!/usr/bin/env bash
# A host behind two lines: a route of a worse distance takes over while the better one's link is down, and what a routing
# daemon has given is followed as its distance says, and withdrawn as a whole.
. "$(dirname "$0")/lab.sh"
needs_millrace
host a b
link left a 10.0.1.2/24 2001:db8:1::2/64
gateway a 10.0.1.1 2001:db8:1::1
port left 10.0.1.1/24 2001:db8:1::1/64
for i in 1 2; do
  link "line$i" b "10.0.1$i.2/24" "2001:db8:1$i::2/64"
  port "line$i" "10.0.1$i.1/24" "2001:db8:1$i::1/64"
done
gateway b 10.0.11.1 2001:db8:11::1
on b ip address add 198.51.100.7/32 dev lo
on b ip address add 2001:db8:f::7/128 dev lo
config '' '[[route]]' 'prefix = "198.51.100.0/24"' 'via = "10.0.11.2"' \
  '[[route]]' 'prefix = "198.51.100.0/24"' 'via = "10.0.12.2"' 'distance = 200'
start
by() { equal "$(value "route get $1" '.next_hops[0].interface')" "$2"; }
millrace route add 2001:db8:f::/48 via 2001:db8:11::2 >/dev/null
millrace route add 2001:db8:f::/48 via 2001:db8:12::2 --distance 200 >/dev/null
for address in 198.51.100.7 2001:db8:f::7; do
  check "packets to $address take the first line" by "$address" line1
  check "and arrive" pings a "$address"
done
check "the other route stands by" says '198.51.100.0/24 *via 10.0.12.2 \(standby\) *static *200' millrace show routes

# The way back is by the line that is up.
on b ip link set line1 down
on b ip route replace 10.0.1.0/24 via 10.0.12.1
on b ip -6 route replace 2001:db8:1::/64 via 2001:db8:12::1
for address in 198.51.100.7 2001:db8:f::7; do
  check "without its link they take the second" within 15 by "$address" line2
  check "and arrive" pings a "$address"
done
on b ip link set line1 up
check "and the first again once it is back" within 15 by 198.51.100.7 line1

millrace route add 198.51.100.0/24 via 10.0.12.2 --source ebgp --distance 0 --metric 5 >/dev/null
check "a protocol that is preferred is followed" by 198.51.100.7 line2
check "with another metric" says '1 replaced' millrace route add 198.51.100.0/24 via 10.0.12.2 --source ebgp --distance 0 --metric 6
check "it is the same route" equal "$(value 'show sources' '[.[] | select(.source == "ebgp") | .routes4] | add')" 1
check "its daemon dies, and all that it gave is withdrawn" says '1 removed' millrace route withdraw ebgp
check "so the first line is taken again" by 198.51.100.7 line1
