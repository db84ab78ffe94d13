#!/usr/bin/env bash
# Neighbour resolution: the first packets wait for the answer, moved hosts are found again, static entries hold.
. "$(dirname "$0")/lab.sh"
two_hosts
two_ports
config '' '[neighbors]' 'reachable-time = "1s"' 'delay-first-probe = "1s"' 'stale-time = "4s"'
start
if [ "$LAB_ROUTER" = kernel ]; then
  for family in ipv4 ipv6; do
    on router sysctl -q -w net.$family.neigh.right.base_reachable_time_ms=1000 net.$family.neigh.right.delay_first_probe_time=1
  done
fi

check "a burst of 3 at first contact arrives" pings a 10.0.2.2 -q -l 3 -c 10
check "the same in IPv6" pings a 2001:db8:2::2 -q -l 3 -c 10
check "the host has resolved the router" says lladdr on a ip neighbor show 10.0.1.1
check "the host has resolved the router in IPv6" says lladdr on a ip -6 neighbor show 2001:db8:1::1

if [ "$LAB_ROUTER" = millrace ]; then
  known() { value "show neighbors" '.. | objects | select(.address == "'"$1"'") | "\(.mac) \(.state)"'; }
  # What is not used is soon forgotten.
  resolved() { pings a "$1" && says "^$(mac b right) " known "$1"; }
  check "the router has resolved host b" within 15 resolved 10.0.2.2
  check "the router has resolved host b in IPv6" within 15 resolved 2001:db8:2::2
  forgotten() {
    local now
    now=$(known "$1") && equal "$now" ''
  }
  check "an unused entry is removed" within 30 forgotten 10.0.2.2
fi

# Host b changes its card: the router keeps the old address until its probes stay without an answer.
on b ip link set right address 02:00:00:00:00:b2
on b ip neighbor flush dev right
again() { on a ping -n -c 1 -W 1 "$1" >/dev/null; }
check "a host with a new MAC is found again" within 30 again 10.0.2.2
check "in IPv6 too" within 30 again 2001:db8:2::2

# A host that goes silent while its link stays up, and one that comes back.
on b ip address delete 10.0.2.2/24 dev right
check "a host that is gone is reported" within 30 says 'Host Unreachable' on a ping -n -c 1 -W 8 10.0.2.2
on b ip address add 10.0.2.2/24 dev right
on b ip route replace default via 10.0.2.1
check "and found when it is back" within 20 again 10.0.2.2
