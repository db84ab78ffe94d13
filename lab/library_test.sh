#!/usr/bin/env bash
# The examples that use libmillrace, on a daemon that routes between two hosts.
. "$(dirname "$0")/lab.sh"
needs_millrace
[ -x "$LAB_BIN/examples/reflector" ] || skip "no $LAB_BIN/examples: cargo build -p millrace-client --examples"
two_hosts
two_ports
start
export MILLRACE_ATTACH=$lab/attach.sock

attached() { value "show clients" '.[].name' | grep -qx "$1"; }
# Starts an example: example NAME IT-CALLS-ITSELF ARGUMENT...; its process is in $example.
example() {
  local program=$1 name=$2
  shift 2
  exec_on router "$LAB_BIN/examples/$program" "$@" >"$lab/$program" 2>&1 &
  example=$!
  within 15 attached "$name" || fail "$program is not attached: $(cat "$lab/$program")"
}
end() {
  kill -KILL "$1"
  wait "$1" 2>/dev/null
}

# Asks 10.0.2.2 for the address of a name: resolves NAME
resolves() {
  on a python3 -c '
import socket, sys
name = b"".join(bytes([len(part)]) + part.encode() for part in sys.argv[1].split(".")) + b"\0"
query = b"\xab\xcd\1\0\0\1\0\0\0\0\0\0" + name + b"\0\1\0\1"
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(0.5)
s.connect(("10.0.2.2", 53))
for _ in range(4):
    s.send(query)
    try:
        print(socket.inet_ntoa(s.recv(512)[-4:]))
        break
    except TimeoutError:
        pass' "$@"
}
example dns_responder 'dns responder' www.example=203.0.113.5
responder=$example
check "the DNS responder answers in place of the server" says '^203\.0\.113\.5$' resolves www.example
check "what it does not know goes on to the server" says 'ConnectionRefused' resolves other.example
check "the rest is routed past it" pings a 10.0.2.2
check "show clients counts its packets" says 'dns responder .*divert' millrace show clients
end "$responder"
check "without it the server answers" says 'ConnectionRefused' resolves www.example

example pcap_writer 'pcap writer' "$lab/packets.pcap" 10 left
check "packets that are copied are routed all the same" pings a 10.0.2.2 -c 10 -s 5 -i 0.02
check "the pcap writer has its ten packets" within 15 says '^10 packets' cat "$lab/pcap_writer"
check "tshark reads them" says '10\.0\.1\.2 .* 10\.0\.2\.2 .*Echo \(ping\) request' tshark -n -r "$lab/packets.pcap"

example flow_counter 'flow counter' 0.2 left
pings a 2001:db8:2::2 >"$lab/pings"
check "the flow counter shows the flow" within 15 says ' 5 +[0-9]+  58 2001:db8:1::2 0 > 2001:db8:2::2 0' cat "$lab/flow_counter"
end "$example"

# Packets of up to a burst of 3 KB pass, then one in many hours.
example rate_limiter 'rate limiter' 0.0000001 3 left
# Answers to eight requests, as a's kernel has counted them: ping does not await late ones.
limited() {
  local before
  before=$(echoes a)
  on a ping -n -c 8 -i 0.05 -W 1 -s 658 10.0.2.2
  within 5 four_of_eight "$before" || return
  sleep 0.5
  four_of_eight "$before"
}
four_of_eight() { echo "$1" "$(echoes a)" | awk '{print $5 - $1 " sent, " $6 - $2 " back"; exit !($5 - $1 == 8 && $6 - $2 == 4)}'; }
check "the rate limiter lets a burst pass and drops the rest" limited
end "$example"
check "without it all pass" pings a 10.0.2.2

example reflector reflector right
kill -KILL "$daemon"
wait "$daemon" 2>/dev/null
daemon=
check "a client says that its daemon is gone, and what to do" within 15 says 'the daemon is gone: .*attach again' cat "$lab/reflector"
check "a client without a daemon says so" says "no daemon at $MILLRACE_ATTACH: " \
  on router "$LAB_BIN/examples/reflector"
