#!/usr/bin/env bash
# Neighbours that are known without asking: host b answers no ARP and no neighbour solicitation.
. "$(dirname "$0")/lab.sh"
two_hosts
two_ports
b=$(mac b right)
for address in 10.0.2.2 2001:db8:2::2; do
  config '' '[[neighbor]]' 'interface = "right"' "address = \"$address\"" "mac = \"$b\""
done
on b ip link set right arp off
for address in 10.0.2.1 2001:db8:2::1; do
  on b ip neighbor replace "$address" lladdr "$(mac router right)" dev right
done
if [ "$LAB_ROUTER" = kernel ]; then
  on router ip neighbor replace 10.0.2.2 lladdr "$b" dev right
  on router ip neighbor replace 2001:db8:2::2 lladdr "$b" dev right
fi
start

check "IPv4 reaches the static neighbour" pings a 10.0.2.2
check "IPv6 reaches the static neighbour" pings a 2001:db8:2::2
[ "$LAB_ROUTER" = millrace ] || exit 0

on b ip address add 10.0.2.7/24 dev right
check "an unknown address of the silent host is not found" fails on a ping -n -c 1 -W 1 10.0.2.7
check "the command line adds it" millrace neighbor add right 10.0.2.7 "$b"
check "it is used at once" pings a 10.0.2.7
check "it is shown" says '10.0.2.7.*static' millrace show neighbors
check "the command line takes it away" millrace neighbor del right 10.0.2.7
check "it is used no more" fails on a ping -n -c 1 -W 1 10.0.2.7
check "that of the configuration stays" pings a 10.0.2.2
