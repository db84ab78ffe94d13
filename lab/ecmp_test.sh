#!/usr/bin/env bash
# A route with four next hops: flows spread, and one flow keeps to one path.
. "$(dirname "$0")/lab.sh"
host a b
link left a 10.0.1.2/24 2001:db8:1::2/64
gateway a 10.0.1.1 2001:db8:1::1
port left 10.0.1.1/24 2001:db8:1::1/64
for i in 1 2 3 4; do
  link "path$i" b "10.0.1$i.2/24" "2001:db8:1$i::2/64"
  port "path$i" "10.0.1$i.1/24" "2001:db8:1$i::1/64"
done
gateway b 10.0.11.1 2001:db8:11::1
route 198.51.100.0/24 10.0.11.2 10.0.12.2 10.0.13.2 10.0.14.2
route 2001:db8:f::/48 2001:db8:11::2 2001:db8:12::2 2001:db8:13::2 2001:db8:14::2
start
for i in 1 2 3 4; do
  check "path $i is up" pings a "10.0.1$i.2"
  check "path $i is up for IPv6" pings a "2001:db8:1$i::2"
done

# What each path got of the packets that a command sends, one line: spread PACKETS COMMAND...
spread() {
  local before=() count=$1 i
  shift
  for i in 1 2 3 4; do before+=("$(received b "path$i")"); done
  "$@" >/dev/null 2>&1
  within 10 arrived >/dev/null
  sleep 0.3
  got
}
got() { for i in 1 2 3 4; do echo -n "$(($(received b "path$i") - before[i - 1])) "; done; }
arrived() { [ "$(got | awk '{print $1 + $2 + $3 + $4}')" -ge "$count" ]; }
# Host b has no such address: it drops what arrives, and no answer disturbs the count.
flows() { on a bash -c "for i in {1..800}; do echo x >/dev/udp/$1/9; done"; }
one_flow() { on a bash -c "exec 3>/dev/udp/$1/9; for i in {1..200}; do echo x >&3; done"; }

# 800 flows on 4 paths: 200 each, standard deviation 12. Neighbour traffic adds a few.
even() {
  echo "$*"
  [ $# -eq 4 ] || return 1
  local n
  for n; do [ "$n" -ge 140 ] && [ "$n" -le 260 ] || return 1; done
}
# 200 packets on one path, next to nothing on the others.
single() {
  echo "$*"
  [ "$(printf '%s\n' "$@" | sort -n | tail -n 1)" -ge 200 ] && [ "$(printf '%s\n' "$@" | sort -n | tail -n 2 | head -n 1)" -le 10 ]
}
# shellcheck disable=SC2046 # four numbers are four words
for address in 198.51.100.7 2001:db8:f::7; do
  check "800 flows to $address spread" even $(spread 800 flows "$address")
  check "one flow to $address keeps its path" single $(spread 200 one_flow "$address")
done

# A link goes down: its flows move to the others, and nobody else's.
if [ "$LAB_ROUTER" = millrace ]; then
  paths() { value "route get $1" '[.next_hops[].interface] | sort | join(" ")'; }
  leads() { equal "$(paths "$1")" "$2"; }
  # How long flows stood still while a command ran, one line: LAB_OUTAGES times, as one says little.
  outage() {
    local receiver sender
    exec_on b "$lab_root/lab/outage" receive 9000 &
    receiver=$!
    exec_on a "$lab_root/lab/outage" send 198.51.100.7 9000 3 &
    sender=$!
    sleep 0.5
    "$@"
    wait "$sender" "$receiver"
  }
  is_short() { awk '$1 == 64 && $8 < 2000 {good = 1} END {exit !good}' "$lab/outage"; }
  on b ip address add 198.51.100.7/32 dev lo
  for ((i = 1; i <= ${LAB_OUTAGES:-1}; i++)); do
    outage on b ip link set path2 down >"$lab/outage"
    cat "$lab/outage"
    # It takes less than 100 ms where the daemon has a core. Flows that are left on the link lose 2.5 s of what is sent.
    check "flows on a link that goes down go on by the others" is_short
    check "they have left it" within 5 leads 198.51.100.7 'path1 path3 path4'
    [ "$i" -eq "${LAB_OUTAGES:-1}" ] && break
    on b ip link set path2 up
    check "and return with it" within 5 leads 198.51.100.7 'path1 path2 path3 path4'
    pings a 10.0.12.2 >/dev/null
  done
  on b ip address del 198.51.100.7/32 dev lo
  check "those of IPv6, too" within 5 leads 2001:db8:f::7 'path1 path3 path4'
  check "its network is out of the table" within 5 leads 10.0.12.2 ''
  # 800 flows on 3 paths: 267 each, standard deviation 13.
  rest() {
    echo "$*"
    [ "$2" -eq 0 ] && [ "$(($1 + $3 + $4))" -ge 800 ] && [ "$1" -ge 190 ] && [ "$3" -ge 190 ] && [ "$4" -ge 190 ]
  }
  # shellcheck disable=SC2046 # four numbers are four words
  check "all flows take the others" rest $(spread 800 flows 198.51.100.7)
  on b ip link set path2 up
  check "and is back with its link" within 15 leads 198.51.100.7 'path1 path2 path3 path4'
fi
