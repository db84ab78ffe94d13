#!/usr/bin/env bash
# A receive queue of a client's own: packets are seen, changed, sent and given to the graph where the device has put
# them; whatever the client does, other ports go on, and the queue is the router's again when it is gone.
. "$(dirname "$0")/lab.sh"
needs_millrace
two_hosts
two_ports
host c
link own c 10.0.3.2/24
gateway c 10.0.3.1
port own 10.0.3.1/24
config 'client-queues = 1'
start
attach=$lab/attach.sock

client() {
  exec_on router python3 "$lab_root/lab/client/attach.py" "$attach" "$1" "$2" >"$lab/$1" 2>&1 &
  client=$!
  within 15 grep -q '^attached' "$lab/$1" || fail "client $1 is not attached: $(cat "$lab/$1")"
}
refused() { python3 "$lab_root/lab/client/attach.py" "$attach" deaf "$1"; }
end() {
  kill -KILL "$1"
  wait "$1" 2>/dev/null
  # How it was killed is not how the test ends.
  return 0
}
rings='"take": "divert", "spread": "flow", "channels": 1, "slots": 256, "capacity": 60'
own="{$rings, \"queue\": {\"port\": \"own\", \"queue\": 0}}"
counted() { value "show clients" ".[] | select(.name == \"$1\") | .queues[0].$2"; }
above() { [ "$(counted "$1" "$2")" -gt "$3" ]; }
mapped() { grep -c millrace-client "/proc/$daemon/maps"; }
# Memory is looked at once a second.
as_before() { equal "$(value "show clients" '. | length') $(mapped)" '0 0'; }
alive() { pings c 10.0.2.2 -c 2; }

check "a queue that nobody has is the router's" alive
router=$(on c ip -json neigh show 10.0.3.1 | jq -r '.[0].lladdr')
# The client may not answer ARP.
on c ip neigh replace 10.0.3.1 dev own lladdr "$router"
check "show queues says that it is free" says '^own +0 .* free' millrace show queues
check "and that others are not for clients" says '^left +0 .* -$' millrace show queues

client echo "$own"
asks() {
  on c python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(0.5)
for length in 1, 100, 1472:
    for _ in range(10):
        s.sendto(b"w" * length, ("10.0.2.2", 7))
        try:
            data, source = s.recvfrom(2000)
            assert (data, source) == (b"w" * length, ("10.0.2.2", 7)), (len(data), source)
            break
        except TimeoutError:
            pass
    else:
        raise SystemExit(f"no answer to {length} bytes")'
}
check "the client answers from the device's buffers" asks
check "show clients says that nothing is copied" says 'echo .*own queue 0 .*divert .*zero copy' millrace show clients
check "show queues names the client" says '^own +0 .* client [0-9]+' millrace show queues
check "its packets count for the port" test "$(value "show ports" '.[] | select(.name == "own") | .counters.rx_packets')" -gt 3
check "another cannot have the queue" says 'refused: resources: client [0-9]+ has queue 0 of port own' refused "$own"
check "other ports go on" pings a 10.0.2.2
captured() {
  rm -f "$lab/own.pcapng"
  millrace capture --write "$lab/own.pcapng" --timeout 4 --port own --direction rx >"$lab/capture.log" 2>&1 &
  local capture=$!
  # The file is made when the daemon has begun.
  within 10 test -e "$lab/own.pcapng" || return
  asks && wait "$capture" && says '10\.0\.3\.2 .* 10\.0\.2\.2' tshark -n -r "$lab/own.pcapng"
}
check "a capture sees its packets" captured
check "a port set down and up again keeps its client" eval 'millrace port set own down && millrace port set own up'
check "which goes on" within 15 asks
end "$client"
check "without it the router has the queue again" within 15 alive
check "and all its memory" within 10 as_before

client return "$own"
check "what a client gives to the graph is routed" alive
check "through the client" test "$(counted return sent)" -ge 2
end "$client"
check "which leaves it to others" within 10 as_before

check "a queue that is not kept is refused" says 'refused: unknown: port left keeps no receive queue for clients; set client-queues' \
  refused "{$rings, \"queue\": {\"port\": \"left\", \"queue\": 0}}"
check "one that is not there is refused" says 'refused: unknown: queue 1 of port own is not kept for clients; 0 to 0 are' \
  refused "{$rings, \"queue\": {\"port\": \"own\", \"queue\": 1}}"
check "no such port is refused by name" says 'refused: unknown: there is no port up; use some of left, right, own' \
  refused "{$rings, \"queue\": {\"port\": \"up\", \"queue\": 0}}"
check "a part of a queue is refused" says 'refused: invalid: a dedicated queue is given whole' \
  refused "{$rings, \"filter\": {\"protocol\": \"udp\"}, \"queue\": {\"port\": \"own\", \"queue\": 0}}"

# Packets between other ports all the time, none of which may be lost; and food for the clients.
# What came back is what a's kernel has counted: of its last request ping does not await the answer.
before=$(echoes a)
exec_on a ping -q -i 0.005 10.0.2.2 >"$lab/ping" 2>&1 &
ping=$!
exec_on c python3 -c '
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    for _ in range(10):
        s.sendto(b"food", ("10.0.2.2", 9))
    time.sleep(0.002)' 2>/dev/null &
for mode in deaf hold keep garbage absurd; do
  client "$mode" "$own"
  sleep 1.5
  case $mode in
    deaf | hold) check "$mode: its packets are counted as lost" within 20 above "$mode" full 0 ;;
    # 4,095 buffers; and what came before they were all in its memory was copied.
    keep)
      check "$mode: it gets all buffers" within 20 above "$mode" delivered 4000
      sleep 0.5
      check "$mode: it starves its own queue" test "$(counted "$mode" delivered)" -lt 4300
      ;;
    absurd) check "$mode: its nonsense is counted" within 20 above "$mode" malformed 0 ;;
  esac
  end "$client"
  check "$mode: the queue and the memory are the router's again" within 10 as_before
  check "$mode: and it works" within 15 alive
done
for delay in 0.03 0.05 0.07 0.09 0.11 0.13 0.15 0.17; do
  exec_on router python3 "$lab_root/lab/client/attach.py" "$attach" echo "$own" >/dev/null 2>&1 &
  victim=$!
  sleep "$delay"
  end "$victim"
done
check "clients killed at any instant leave nothing behind" within 15 as_before
kill -INT "$ping"
wait "$ping"
check "not one packet of others was lost" within 5 answered a 1000 "$before"

if [ -x "$LAB_BIN/examples/reflector" ]; then
  MILLRACE_ATTACH=$attach exec_on router "$LAB_BIN/examples/reflector" own:0 >"$lab/reflector" 2>&1 &
  reflector=$!
  within 15 grep -q reflecting "$lab/reflector" || fail "no reflector: $(cat "$lab/reflector")"
  reflects() {
    local before
    before=$(received c own)
    on c ping -c 20 -i 0.01 -W 0.1 10.0.2.2
    test $(($(received c own) - before)) -ge 20
  }
  check "the reflector reflects without copies" within 15 reflects
  check "as show clients says" says 'reflector .*zero copy' millrace show clients
  end "$reflector"
  check "the reflector leaves the queue to others" within 10 as_before
fi

# The configuration takes the queue away from a client that has it.
client echo "$own"
sed -i 's/^client-queues = 1/client-queues = 0/' "$lab_config"
check "a reload without queues for clients" millrace reload
check "takes it back" equal "$(value "show clients" '.[].queues | length')" 0
check "and gives it to the router" within 15 alive
end "$client"
