#!/usr/bin/env bash
# Features of an interface: TCP between two kernels agrees on segments that an interface between them lets through.
. "$(dirname "$0")/lab.sh"
needs_millrace
two_hosts
two_ports
start

exec_on b python3 -c '
import socket
listener = socket.create_server(("::", 5000), family=socket.AF_INET6, dualstack_ipv6=True)
while True:
    peer, _ = listener.accept()
    peer.sendall(b"%d\n" % peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG))
    peer.close()
' &
within 5 says LISTEN on b ss -Hltn 'sport = :5000' || fail "the server does not start"
# Bytes that each end puts into a segment: the client's, the server's. Time stamps take 12 of what was agreed on.
segments() {
  on a python3 -c '
import socket, sys
peer = socket.create_connection((sys.argv[1], 5000))
own = peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
print(own + 12, int(peer.makefile().readline()) + 12)' "$1"
}
agreed() { equal "$(segments 10.0.2.2)" "$1" && equal "$(segments 2001:db8:2::2)" "$2"; }
shown() { equal "$(value "show interfaces" ".[] | select(.name == \"$1\") | [.input_features[]?, .output_features[]?] | join(\" \")")" "$2"; }

check "without a limit segments fill the MTU" agreed "1460 1460" "1440 1440"
check "no interface has features" shown right ""
cp "$lab_config" "$lab/first.toml"
sed -i '/^name = "right"/a tcp-mss = 1000' "$lab_config"
check "a reload sets a limit" millrace reload
check "the interface says so" shown right "tcp-mss-input tcp-mss-output"
check "both ends keep it, in both directions" agreed "1000 1000" "980 980"
check "the nodes have seen it" test "$(value "show nodes" '[.[] | select(.node == "tcp-mss-output") | .packets] | add')" -ge 4
cp "$lab/first.toml" "$lab_config"
check "another reload takes it away" millrace reload
check "segments fill the MTU again" agreed "1460 1460" "1440 1440"
