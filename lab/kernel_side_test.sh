#!/usr/bin/env bash
# The Linux stack on the same port at the same time: ordinary sockets, raw sockets and tcpdump on the port's tap, beside
# routed traffic.
. "$(dirname "$0")/lab.sh"
needs_millrace
two_hosts
two_ports
device left-k tap:left-k
config '' '[[kernel]]' 'port = "left"' 'tap = "left-k"' 'addresses = ["10.0.1.9", "2001:db8:1::9"]' \
  'filters = [{ protocol = "udp", destination-port = 9999, copy = true }]' 'others = true'
start
within 5 exists router left-k || fail "no tap"
on router sysctl -q -w net.ipv6.conf.left-k.disable_ipv6=0
on router ip link set left-k up
on router ip address add 10.0.1.9/24 dev left-k
on router ip address add 2001:db8:1::9/64 dev left-k nodad

check "the kernel has the port's address" equal "$(mac router left-k)" "$(value "show ports" '.[] | select(.name == "left") | .mac')"
check "the kernel answers for its address" within 10 pings a 10.0.1.9
check "in IPv6 too" within 10 pings a 2001:db8:1::9
check "the router answers for its own" pings a 10.0.1.1
check "and routes" pings a 10.0.2.2
check "in IPv6 too" pings a 2001:db8:2::2

# A server and a client on the kernel's sockets: serves ADDRESS, calls ADDRESS
exec_on router python3 -m http.server --bind :: 8080 --directory "$lab_root/docs" >/dev/null 2>&1 &
within 15 says ':8080' on router ss -Hltn || fail "no server"
for address in 10.0.1.9 '[2001:db8:1::9]'; do
  check "a server in the kernel is reached at $address" on a curl -s -f -o "$lab/page" "http://$address:8080/forward.md"
  check "and sends every byte" cmp "$lab/page" "$lab_root/docs/forward.md"
done
exec_on a python3 -m http.server --bind 10.0.1.2 8081 --directory "$lab_root/docs" >/dev/null 2>&1 &
within 15 says ':8081' on a ss -Hltn || fail "no server"
check "a client in the kernel reaches out" on router curl -s -f -o /dev/null http://10.0.1.2:8081/forward.md

# What a filter copies reaches both; what the router does not know reaches the kernel, and what raw sockets send the wire.
exec_on router timeout 60 tcpdump -n -l -i left-k >"$lab/tcpdump" 2>"$lab/tcpdump.log" &
within 15 grep -q 'listening on' "$lab/tcpdump.log" || fail "no tcpdump: $(cat "$lab/tcpdump.log")"
exec_on b timeout 30 python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 9999))
print(s.recvfrom(100)[0].decode(), flush=True)' >"$lab/copied" &
within 15 says ':9999 ' on b ss -Huan || fail "no receiver"
on a python3 -c '
import socket
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"both", ("10.0.2.2", 9999))'
check "a copied datagram is routed" within 10 grep -q both "$lab/copied"
check "and tcpdump sees it on the tap" within 10 grep -q '10.0.2.2.9999: UDP' "$lab/tcpdump"
raw='
import socket, sys
interface, kind = sys.argv[1], int(sys.argv[2], 16)
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((interface, 0))
s.send(b"\xff" * 6 + b"\x02\0\0\0\0\x42" + kind.to_bytes(2, "big") + b"raw" * 20)'
exec_on a timeout 60 tcpdump -n -l -e -i left >"$lab/wire" 2>"$lab/wire.log" &
within 15 grep -q 'listening on' "$lab/wire.log" || fail "no tcpdump: $(cat "$lab/wire.log")"
on a python3 -c "$raw" left 88b5
check "a frame of a strange protocol reaches the kernel" within 10 grep -q '88b5\|Local Experimental' "$lab/tcpdump"
on router python3 -c "$raw" left-k 88b6
check "a raw socket on the tap reaches the wire" within 10 grep -q '88b6\|Local Experimental' "$lab/wire"
check "the router goes on" pings a 10.0.2.2
