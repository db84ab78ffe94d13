#!/usr/bin/env bash
# Packets above the egress MTU: fragmented when they may be, else refused with the MTU that fits.
. "$(dirname "$0")/lab.sh"
two_hosts
two_ports
mtu right b 1300
start

reassembled() { on b nstat -asz IpReasmOKs | awk '/IpReasmOKs/ {print $2}'; }

check "IPv4 without DF arrives" pings a 10.0.2.2 -s 1400 -M "dont"
check "in fragments that the receiver put together" test "$(reassembled)" -ge 5
# DPDK's af_packet driver has the kernel put fragments together, and cuts what is longer than its frames.
[ "$LAB_PORT" = afpacket ] ||
  check "fragments are fragmented further" pings a 10.0.2.2 -s 4000 -M "dont"
check "IPv4 with DF is refused with the MTU" says 'Frag needed and DF set \(mtu = 1300\)' \
  on a ping -n -c 1 -W 10 -s 1400 -M "do" 10.0.2.2
check "the sender has learned it" says 'mtu 1300' on a ip route get 10.0.2.2
check "IPv6 is refused with the MTU" says 'Packet too big: mtu=1300' \
  on a ping -n -c 1 -W 10 -s 1400 -M "do" 2001:db8:2::2
check "the sender has learned it for IPv6" says 'mtu 1300' on a ip -6 route get 2001:db8:2::2
check "exactly the MTU passes" pings a 10.0.2.2 -s 1272 -M "do"
check "exactly the MTU passes in IPv6" pings a 2001:db8:2::2 -s 1252 -M "do"

exec_on b iperf3 -s >/dev/null 2>&1 &
within 5 says LISTEN on b ss -Hltn 'sport = :5201' || fail "iperf3 does not start"
check "TCP finds its way" iperf a -c 10.0.2.2 -n 2M
check "TCP over IPv6 too" iperf a -c 2001:db8:2::2 -n 2M
