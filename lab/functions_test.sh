#!/usr/bin/env bash
# Packet functions come and go on single cores and ports of the running daemon, in C and in Rust, and no packet of others
# is lost.
. "$(dirname "$0")/lab.sh"
needs_millrace
two_hosts
two_ports
functions=$lab/functions
config '' '[functions]' "folder = \"$functions\""
rust=$LAB_BIN/examples/libdrop_port.so
[ -e "$rust" ] || fail "no $rust: cargo build -p millrace-function --example drop_port"
mkdir "$functions"
chmod 755 "$lab"
cp "$rust" "$functions"
cc -shared -fPIC -Wall -Werror -I "$lab_root/crates/function/include" -o "$functions/reflect.so" \
  "$lab_root/examples/functions/reflect.c" || fail "reflect.c"
start

# A datagram from a to b's port: reaches PORT
reaches() {
  exec_on b python3 -u -c '
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", int(sys.argv[1])))
print(s.recvfrom(100)[0].decode())' "$1" >"$lab/got" 2>/dev/null &
  local receiver=$! status=0
  within 15 says ":$1 " on b ss -Huan || fail "no receiver"
  on a python3 -c '
import socket, sys
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"word", ("10.0.2.2", int(sys.argv[1])))' "$1"
  within 4 grep -q word "$lab/got" || status=1
  kill -KILL "$receiver" 2>/dev/null
  wait "$receiver" 2>/dev/null
  return $status
}
count() { value "show functions" '. | length'; }
drop() { millrace --json function add libdrop_port.so "$@" | jq -r .id; }

check "datagrams pass" reaches 5000
first=$(drop --argument 5000)
check "a function in Rust drops what its argument says" fails reaches 5000
check "and nothing else" reaches 5001
check "it is shown" says 'libdrop_port.so .*all .*all .*5000' millrace show functions
check "and its drops are counted" test "$(drops function)" -ge 1
second=$(drop --argument 5001 --port right)
check "one that is bound to another port sees nothing of it" reaches 5001
third=$(drop --argument 5002 --core "$(value "show workers" '.[0].core')")
check "one on the core does" fails reaches 5002
for id in "$first" "$second" "$third"; do check "function $id is removed" millrace function del "$id"; done
check "then all pass" reaches 5000

# Added and removed fifty times while packets flow. What came back is what a's kernel has counted: of its last request ping does
# not await the answer.
before=$(echoes a)
exec_on a ping -q -i 0.002 10.0.2.2 >"$lab/ping" 2>&1 &
ping=$!
gone=0
for _ in $(seq 50); do
  id=$(drop --argument 9) && millrace function del "$id" >/dev/null && gone=$((gone + 1))
done
kill -INT "$ping"
wait "$ping"
check "fifty came and went" equal "$gone" 50
check "not one packet was lost meanwhile" within 5 answered a 100 "$before"
check "none is left" equal "$(count)" 0

millrace function add reflect.so --port left >/dev/null
check "a function in C answers for who is not there" pings a 10.0.2.77

check "another file than the folder's is refused" says "is no name of a file" millrace function add ../functions/reflect.so
check "one that is not there is refused" says 'No such file' millrace function add nothing.so
check "an argument that is no port is refused with the function's words" says 'refuses: give a UDP port' \
  millrace function add libdrop_port.so --argument many
cp "$rust" "$functions/loose.so"
chmod 666 "$functions/loose.so"
check "one that anybody may write is refused" says 'must be root' millrace function add loose.so --argument 1
check "a core without a worker is refused" says 'no worker runs on core 999' \
  millrace function add libdrop_port.so --argument 1 --core 999
check "the router goes on" pings b 10.0.1.2
