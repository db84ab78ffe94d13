#!/usr/bin/env bash
# Client processes: packets diverted, copied, answered and given back; whatever a client does, the others and the
# router go on, and what it had is taken back when it dies.
. "$(dirname "$0")/lab.sh"
needs_millrace
two_hosts
two_ports
config '' '[clients]' 'most = 4' 'memory = 64'
start
attach=$lab/attach.sock
# One that ordinary users may start.
python=$(command -v /usr/bin/python3 python3 | head -n 1)
chmod 755 "$lab"
cp "$lab_root/lab/client/attach.py" "$lab/attach.py"

# Starts a client: client NAME MODE OPEN; its process is in $client.
client() {
  exec_on router python3 "$lab/attach.py" "$attach" "$2" "$3" >"$lab/$1" 2>&1 &
  client=$!
  within 15 grep -q '^attached' "$lab/$1" || fail "client $1 is not attached: $(cat "$lab/$1")"
}
as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
# Kills a client without a word from the shell.
end() {
  kill -KILL "$1"
  wait "$1" 2>/dev/null || true
}
queue='"spread": "flow", "channels": 1, "slots": 64, "capacity": 2048'
attached() { value "show clients" '. | length'; }
counted() { value "show clients" ".[] | select(.name == \"$1\") | .queues[0].$2"; }
some() { [ "$(counted "$1" "$2")" -gt 0 ]; }

# A word to a UDP port and back: asks ADDRESS PORT
asks() {
  on a python3 -c '
import socket, sys
address, port = sys.argv[1], int(sys.argv[2])
s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(0.5)
for _ in range(10):
    s.sendto(b"word", (address, port))
    try:
        data, source = s.recvfrom(100)
        assert data == b"word" and source[:2] == (address, port), (data, source)
        break
    except TimeoutError:
        pass
else:
    sys.exit("no answer")' "$@"
}

client echo echo "{\"ports\": [\"left\"], \"take\": \"divert\", \"filter\": {\"protocol\": \"udp\", \"destination-port\": 7}, $queue}"
echo_client=$client
mapped() { grep -c millrace-client "/proc/$daemon/maps"; }
segments=$(mapped)
check "a client answers diverted IPv4 packets" asks 10.0.2.2 7
check "and IPv6 packets" asks 2001:db8:2::2 7
check "others are routed" pings a 10.0.2.2
check "show clients names it" says 'echo .*left .*divert .*one copy' millrace show clients
check "and counts" test "$(counted echo delivered)" -ge 2 -a "$(counted echo sent)" -ge 2

check "and so do the metrics" says 'millrace_client_delivered_total\{client="[0-9]+",name="echo",queues="1"\} [1-9]' \
  curl -s --unix-socket "$lab_socket" http://millrace/metrics

client return return "{\"take\": \"divert\", \"filter\": {\"protocol\": \"icmp\"}, $queue}"
check "what a client gives back is routed" pings a 10.0.2.2
check "through the client" test "$(counted return sent)" -ge 2
end "$client"
check "without it as well" pings a 10.0.2.2

check "a client of another version, which says more, is refused with both named" says 'refused: version: .*python speaks version 9.*speaks version 3' \
  env PROTOCOL=9 MORE='{"colour": "blue"}' python3 "$lab/attach.py" "$attach" deaf '{}'
check "a port that is not there is refused by name" says 'refused: unknown: there is no port up; use some of left, right' \
  python3 "$lab/attach.py" "$attach" deaf "{\"ports\": [\"up\"], \"take\": \"copy\", $queue}"
check "too much memory is refused" says 'refused: resources: .*clients.memory' \
  python3 "$lab/attach.py" "$attach" deaf \
  '{"take": "copy", "spread": "flow", "channels": 16, "slots": 65536, "capacity": 2048}'
check "so are many channels, which every worker would look at" says 'resources.*64 channels beside [0-9]+ that clients of user 0 have: clients.channels' \
  python3 -c '
import json, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(sys.argv[1])
def ask(request):
    s.send(json.dumps(request).encode())
    return s.recv(65536).decode()
ask({"hello": {"protocol": 3, "library": "python", "name": "many"}})
for _ in range(5):
    answer = ask({"open": {"take": "nothing", "spread": "flow", "channels": 64, "slots": 2, "capacity": 60}})
print(answer)' "$attach"
check "an ordinary user is refused" says 'refused: permission: user 65534 may not attach' \
  as_nobody "$python" "$lab/attach.py" "$attach" deaf "{\"take\": \"copy\", $queue}"
# Connects as often as it can and says nothing.
exec_on router setpriv --reuid 65534 --regid 65534 --clear-groups "$python" -c '
import select, socket, sys
held = []
while True:
    while len(held) < 300:
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.setblocking(False)
        try:
            s.connect(sys.argv[1])
        except BlockingIOError:
            break
        held.append(s)
    for s in select.select(held, [], [], 0.01)[0]:
        held.remove(s)' "$attach" &
stranger=$!
crowding() { [ "$(find "/proc/$stranger/fd" -lname 'socket:*' | wc -l)" -ge 5 ]; }
within 15 crowding || fail "the stranger does not come"
# Sooner than the daemon gives up on those who say nothing.
check "and keeps nobody else from attaching" says 'refused: unknown' \
  timeout 4 python3 "$lab/attach.py" "$attach" deaf "{\"ports\": [\"up\"], \"take\": \"copy\", $queue}"
end "$stranger"

no_clients() { equal "$(attached)" 0; }
# Until the daemon no longer lists it; says how long that took.
taken_back() {
  python3 -c '
import http.client, json, socket, sys, time
name, path, start = sys.argv[1], sys.argv[2], time.monotonic()
while time.monotonic() < start + 15:
    connection = http.client.HTTPConnection("millrace")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(path)
    connection.request("GET", "/v1/clients")
    if name not in [client["name"] for client in json.load(connection.getresponse())]:
        sys.exit()
sys.exit("still there")' "$1" "$lab_socket"
}
# A rule for user 65534 and one port.
reload_rules() {
  config '[[client]]' 'uid = 65534' 'ports = ["left"]'
  millrace reload >/dev/null || return
  says 'refused: permission: port right' as_nobody \
    "$python" "$lab/attach.py" "$attach" deaf "{\"ports\": [\"right\"], \"take\": \"copy\", $queue}"
}

# Packets all the time, none of which may be lost whatever clients do. What came back is what a's kernel has counted: of its last
# request ping does not await the answer.
echoes_before=$(echoes a)
exec_on a ping -q -i 0.005 10.0.2.2 >"$lab/ping" 2>&1 &
ping=$!
# Fed to the clients: a datagram to port 9 every 2 ms.
exec_on a python3 -c '
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    s.sendto(b"food", ("10.0.2.2", 9))
    time.sleep(0.002)' &
food="\"take\": \"divert\", \"filter\": {\"protocol\": \"udp\", \"destination-port\": 9}, $queue"
for mode in deaf hold garbage absurd; do
  client "$mode" "$mode" "{$food}"
  sleep 1
  check "$mode: the echo client is served" asks 10.0.2.2 7
  case $mode in
    deaf | hold) check "$mode: its packets are counted as lost" within 15 some "$mode" full ;;
    absurd) check "$mode: its nonsense is counted" within 15 some "$mode" malformed ;;
  esac
  # The daemon looks once a second.
  [ "$mode" != deaf ] || check "the log says who does not keep up" within 10 grep -q 'deaf does not keep up' "$lab/daemon.log"
  end "$client"
  check "$mode: what it had is taken back when it dies" taken_back "$mode"
done

# Killed at any instant: while attaching, asking, receiving.
held() { find "/proc/$daemon/fd" -type l | wc -l; }
only_echo() { equal "$(attached) $(mapped)" "1 $segments"; }
check "only the echo client is left" within 10 only_echo
files=$(held)
for delay in 0.03 0.04 0.05 0.06 0.07 0.08 0.09 0.1 0.11 0.12 0.13 0.14 0.15 0.16 0.17 0.2; do
  exec_on router python3 "$lab/attach.py" "$attach" echo "{$food}" >/dev/null 2>&1 &
  victim=$!
  sleep "$delay"
  end "$victim"
done
# The thread of the strangers ends some time after the last of them, and takes its descriptors with it.
as_before() { equal "$(attached) $(mapped)" "1 $segments" && [ "$(held)" -le "$files" ]; }
check "clients killed at any instant leave nothing behind" within 20 as_before

kill -INT "$ping"
wait "$ping"
check "not one packet of others was lost" within 5 answered a 1000 "$echoes_before"
check "the log says who came and went" grep -q 'garbage is gone: ' "$lab/daemon.log"
end "$echo_client"
check "nobody is left" within 15 no_clients
check "the router goes on without them" pings a 10.0.2.2
check "reload changes who may attach" reload_rules
exec_on router setpriv --reuid 65534 --regid 65534 --clear-groups \
  "$python" "$lab/attach.py" "$attach" deaf "{\"take\": \"copy\", $queue}" >"$lab/limited" 2>&1 &
limited=$!
check "who asks for all ports is shown with those that it may use" within 15 says 'deaf .*65534 .* left +copy' millrace show clients
end "$limited"
