#!/usr/bin/env bash
# A learning bridge with three hosts, an IP interface of its own, and a routed port beside it.
. "$(dirname "$0")/lab.sh"
host a b c d
for name in a b c; do link "p$name" "$name"; port "p$name"; done
link right d 10.0.2.2/24 2001:db8:2::2/64
gateway d 10.0.2.1 2001:db8:2::1
port right 10.0.2.1/24 2001:db8:2::1/64
config '' '[[bridge]]' 'name = "br0"' 'members = ["pa", "pb", "pc"]' 'ageing = "3s"' \
  'addresses = ["10.0.0.1/24", "2001:db8::1/64"]'
number=2
for name in a b c; do
  on "$name" ip address add "10.0.0.$number/24" dev "p$name"
  on "$name" ip address add "2001:db8::$number/64" dev "p$name"
  gateway "$name" 10.0.0.1 2001:db8::1
  number=$((number + 1))
done
if [ "$LAB_ROUTER" = kernel ]; then
  kernel_bridge br0 pa pb pc
  on router ip link set br0 type bridge ageing_time 300 mcast_snooping 0
  on router ip address add 10.0.0.1/24 dev br0
  on router ip address add 2001:db8::1/64 dev br0
fi
start

check "a reaches b" pings a 10.0.0.3
check "b reaches c" pings b 10.0.0.4
check "a reaches c in IPv6" pings a 2001:db8::4
check "the bridge's own address answers" pings a 10.0.0.1
check "in IPv6 too" pings c 2001:db8::1
check "from the bridge to a routed port" pings a 10.0.2.2
check "the same in IPv6" pings b 2001:db8:2::2
check "back, to every member" pings d 10.0.0.4

# Once learned, traffic of two members is not the third's.
pings a 10.0.0.3 >/dev/null
unseen() {
  local before
  before=$(received c pc)
  pings a 10.0.0.3 -c 50 -i 0.02 && test "$(($(received c pc) - before))" -le 10
}
check "learned traffic is not flooded" unseen

# Host a sends to b's MAC, to an address that is not b's: b stays silent, so that the bridge forgets it.
on a ip neighbor replace 10.0.0.99 lladdr "$(mac b pb)" dev pa
to_b() { on a bash -c 'for i in {1..20}; do echo x >/dev/udp/10.0.0.99/9; done'; }
# How many of them host c gets is in $flooded.
flood() {
  local before
  before=$(received c pc)
  to_b
  sleep 0.3
  flooded=$(($(received c pc) - before))
  echo "$flooded packets at c"
}
# Anew, if b has been forgotten before they came.
known() { pings a 10.0.0.3 && flood && [ "$flooded" -le 5 ]; }
check "a known address is not flooded to" within 10 known
# The kernel of b asks for a 5 s after it answered: that is heard too. What a sends to b doesn't keep b known.
forgotten() { flood && [ "$flooded" -ge 20 ]; }
check "a forgotten address is" within 30 forgotten

# What is learned stays with its interface when the list of members changes.
if [ "$LAB_ROUTER" = millrace ]; then
  pings a 10.0.0.4 >/dev/null
  sed -i 's/"pa", "pb", "pc"/"pa", "pc"/' "$lab_config"
  less() { millrace reload && pings a 10.0.0.4 && equal "$(drops no-port)" 0; }
  check "a member less, and the next is found behind its own interface" less
  sed -i 's/"pa", "pc"/"pc", "pb", "pa"/' "$lab_config"
  other() { millrace reload && pings a 10.0.0.4 && equal "$(drops bridge-same-port)" 0; }
  check "in another order too" other
fi
