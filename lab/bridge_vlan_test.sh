#!/usr/bin/env bash
# A bridge that looks at tags: members of one VLAN talk, those of another are apart, a trunk carries both.
. "$(dirname "$0")/lab.sh"
needs_millrace
host a b c d
for name in a b c d; do link "p$name" "$name"; port "p$name"; done
config '' '[[bridge]]' 'name = "br0"' 'vlan-filtering = true' 'members = [' \
  '  { interface = "pa", vlans = [10], untagged = 10 },' \
  '  { interface = "pb", vlans = [10], untagged = 10 },' \
  '  { interface = "pc", vlans = [20], untagged = 20 },' \
  '  { interface = "pd", vlans = [10, 20] },' ']'
# VLAN 10 has 10.0.10.0/24, VLAN 20 has 10.0.20.0/24; host a holds an address of both.
on a ip address add 10.0.10.2/24 dev pa
on a ip address add 10.0.20.2/24 dev pa
on b ip address add 10.0.10.3/24 dev pb
on c ip address add 10.0.20.4/24 dev pc
on d ip address add 10.0.30.5/24 dev pd
on a ip address add 10.0.30.2/24 dev pa
tagged d pd 10 10.0.10.10/24
tagged d pd 20 10.0.20.20/24
start

check "two access ports of one VLAN" pings a 10.0.10.3
check "access port and trunk, VLAN 10" pings a 10.0.10.10
check "access port and trunk, VLAN 20" pings c 10.0.20.20
check "VLANs are apart" fails on a ping -n -c 2 -i 0.2 -W 1 10.0.20.4
check "VLAN 10 does not reach the trunk's VLAN 20" fails on a ping -n -c 2 -i 0.2 -W 1 10.0.20.20
check "untagged frames of the trunk belong nowhere" fails on a ping -n -c 2 -i 0.2 -W 1 10.0.30.5
tagged a pa 20 10.9.0.2/24
tagged c pc 20 10.9.0.4/24
check "a tag that a member does not carry is dropped" fails on a ping -n -c 2 -i 0.2 -W 1 10.9.0.4
