#!/usr/bin/env bash
# Neighbour resolution: the first packets wait for the answer, moved hosts are found again, static entries hold.
. "$(dirname "$0")/lab.sh"
two_hosts
two_ports
start

mac() { on "$1" cat "/sys/class/net/$2/address"; }

check "a burst of 10 at first contact arrives in full" says '10 received' on a ping -n -q -l 3 -c 10 -i 0.1 -W 1 10.0.2.2
check "the same in IPv6" says '10 received' on a ping -n -q -l 3 -c 10 -i 0.1 -W 1 2001:db8:2::2
check "the host has resolved the router" says lladdr on a ip neighbor show 10.0.1.1
check "the host has resolved the router in IPv6" says 'router|lladdr' on a ip -6 neighbor show 2001:db8:1::1

# Host b changes its card: the router keeps the old address until its probes stay without an answer.
on b ip link set right address 02:00:00:00:00:b2
on b ip neighbor flush dev right
again() { on a ping -n -c 1 -W 1 "$1" >/dev/null; }
check "a host with a new MAC is found again" within 40 again 10.0.2.2
check "in IPv6 too" within 40 again 2001:db8:2::2

# A host that is silent and one that comes back.
on b ip link set right down
check "a host that is gone is reported" within 40 says 'Host Unreachable' on a ping -n -c 1 -W 4 10.0.2.2
on b ip link set right up
on b ip -6 address replace 2001:db8:2::2/64 dev right
gateway b 10.0.2.1 2001:db8:2::1 2>/dev/null || true
check "and found when it is back" within 20 again 10.0.2.2
check "in IPv6 too, when it is back" within 20 again 2001:db8:2::2
