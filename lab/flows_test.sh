#!/usr/bin/env bash
# Exact-match flows come before routes: other egress, other addresses and ports, from a CSV file and by command.
. "$(dirname "$0")/lab.sh"
needs_millrace
two_hosts
two_ports
config '' '[limits]' 'flows4 = 1000' 'flows6 = 1000' '[flows]' 'files = ["flows.csv"]'
header=source,destination,protocol,source_port,destination_port,egress_port,source_mac,destination_mac
macs="$(mac router right),$(mac b right)"
cat >"$lab/flows.csv" <<END
$header,new_source,new_destination,new_source_port,new_destination_port
10.0.1.2,203.0.113.5,17,4000,5000,right,$macs,,10.0.2.2,,6000
2001:db8:1::2,2001:db8:f::5,17,4000,5000,right,$macs,,2001:db8:2::2,,6000
END
start

# Host b notes what arrives on port 6000.
exec_on b python3 -u -c '
import socket
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.bind(("::", 6000))
while True:
    data, source = s.recvfrom(2048)
    print(data.decode(), source[0], source[1])' >"$lab/received" &
within 15 says ':6000' on b ss -Huan || fail "no receiver"
# send WORD ADDRESS SOURCE-PORT DESTINATION-PORT
send() {
  on a python3 -c '
import socket, sys
word, address, source, destination = sys.argv[1:]
s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", int(source)))
s.sendto(word.encode(), (address, int(destination)))' "$@"
}

send four 203.0.113.5 4000 5000
check "an IPv4 flow is rewritten and delivered" within 15 grep -q '^four ::ffff:10.0.1.2 4000' "$lab/received"
send six 2001:db8:f::5 4000 5000
check "an IPv6 flow is rewritten and delivered" within 15 grep -q '^six 2001:db8:1::2 4000' "$lab/received"
send other 203.0.113.5 4001 5000
check "another source port is another flow" fails within 3 grep -q '^other' "$lab/received"

check "the command line adds a flow" millrace flow add 10.0.1.2 203.0.113.9 17 --sport 4002 --dport 5000 \
  --port right --source-mac "$(mac router right)" --destination-mac "$(mac b right)" \
  --new-destination 10.0.2.2 --new-dport 6000
send added 203.0.113.9 4002 5000
check "and it is used" within 15 grep -q '^added ' "$lab/received"
check "routed traffic goes on beside it" pings a 10.0.2.2

printf '%s\n10.0.1.2,203.0.113.5,17,4000,70000,right,%s\n' "$header" "$macs" >"$lab/bad.csv"
check "a bad CSV line is refused with its place" says 'bad.csv:2.*destination_port' millrace flow load "$lab/bad.csv"
send still 203.0.113.5 4000 5000
check "and changes nothing" within 15 grep -q '^still ' "$lab/received"
check "flows are cleared" millrace flow clear
send cleared 203.0.113.5 4000 5000
check "and no longer used" fails within 3 grep -q '^cleared' "$lab/received"
