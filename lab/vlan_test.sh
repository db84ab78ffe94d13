#!/usr/bin/env bash
# 802.1Q sub-interfaces: routed like ports, tagged on the wire, apart from each other.
. "$(dirname "$0")/lab.sh"
host a b
link trunk a 10.0.1.2/24
link right b 10.0.2.2/24 2001:db8:2::2/64
gateway b 10.0.2.1 2001:db8:2::1
port trunk 10.0.1.1/24
port right 10.0.2.1/24 2001:db8:2::1/64
for id in 100 200; do
  vlan trunk "$id" "10.1.$id.1/24" "2001:db8:$id::1/64"
  tagged a trunk "$id" "10.1.$id.2/24" "2001:db8:$id::2/64"
  on a ip route add 10.0.2.0/24 via "10.1.$id.1" metric "$id"
done
on a ip route add 2001:db8:2::/64 via 2001:db8:100::1
tagged a trunk 300 10.1.44.2/24
start

check "the untagged interface works" pings a 10.0.1.1
check "VLAN 100 works" pings a 10.1.100.1
check "VLAN 200 works" pings a 10.1.200.1
check "VLAN 100 in IPv6" pings a 2001:db8:100::1
check "from VLAN 100 through the router" pings a 10.0.2.2 -I trunk.100
check "from VLAN 200 through the router" pings a 10.0.2.2 -I trunk.200
check "IPv6 from VLAN 100 through the router" pings a 2001:db8:2::2
check "a full-size frame with a tag" pings a 10.0.2.2 -I trunk.100 -s 1472 -M "do"

before100=$(received a trunk.100) before200=$(received a trunk.200)
check "host b reaches VLAN 200" pings b 10.1.200.2
check "over VLAN 200" test "$(received a trunk.200)" -ge $((before200 + 5))
check "and not over VLAN 100" test "$(received a trunk.100)" -le $((before100 + 2))

check "an unknown VLAN is not served" fails on a ping -n -c 2 -i 0.2 -W 1 10.1.44.1
on a ip address add 10.1.100.7/32 dev trunk.200
on a ip route add 10.1.100.1/32 dev trunk.200 src 10.1.100.7
if [ "$LAB_ROUTER" = millrace ]; then
  check "ARP for VLAN 100's address is not answered on VLAN 200" fails on a ping -n -c 2 -i 0.2 -W 1 10.1.100.1
fi
