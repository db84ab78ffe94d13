# shellcheck shell=bash
# Test bed: hosts and one router, each a network namespace of its own, joined by veth pairs.
# A test sources this file, describes the topology, calls `start`, then `check`s.
# The router is millraced, or with LAB_ROUTER=kernel the kernel, which shows that a test is sound.
# Everything made here is removed on exit, whatever the way out.
set -uo pipefail
shopt -s inherit_errexit

lab_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
PATH=$PATH:/usr/sbin:/sbin
LAB_ROUTER=${LAB_ROUTER:-millrace} # millrace | kernel
LAB_PORT=${LAB_PORT:-afpacket}     # device kind of ports on veth pairs: afpacket | afxdp
# A relative CARGO_TARGET_DIR is cargo's: relative to the repository's root, wherever a test stands.
lab_target=${CARGO_TARGET_DIR:-target}
[[ $lab_target == /* ]] || lab_target=$lab_root/$lab_target
LAB_BIN=${LAB_BIN:-$lab_target/${LAB_PROFILE:-debug}}
lab_name=lab$$
lab=$(mktemp -d "/tmp/$lab_name.XXXX")
lab_socket=$lab/millrace.sock
lab_config=$lab/millrace.toml
lab_failures=0
# How long the daemon may take to end after the test: seconds. How often it had to be killed.
lab_patience=10
lab_killed=0
daemon=''

# Runs a command on a host: on HOST COMMAND...
on() { local host=$1; shift; ip netns exec "$lab_name-$host" "$@"; }
# The same in the background, so that $! is the command's own process: exec_on HOST COMMAND... &
exec_on() { local host=$1; shift; exec ip netns exec "$lab_name-$host" "$@"; }

# Leaves the test: skip REASON | fail REASON
skip() { echo "skip: $1"; exit 77; }
fail() { echo "not ok: $1"; exit 1; }

lab_end() {
  local status=$? pid name
  trap - EXIT INT TERM
  # Who is interrupted has no time.
  [ "$status" -lt 128 ] || lab_patience=5
  stop_daemon "$lab_patience"
  # A restart may have left another process in its place.
  for daemon in $(daemons); do stop_daemon "$lab_patience"; done
  if [ "$lab_killed" -gt 0 ]; then
    echo "not ok: the daemon had to be killed"
    lab_failures=$((lab_failures + 1))
  fi
  [ "$lab_failures" -eq 0 ] || [ "$status" -ge 128 ] || status=1
  if [ "$status" -ne 0 ] && [ "$status" -ne 77 ] && [ "$status" -lt 128 ]; then
    sed 's/^/config: /' "$lab_config" 2>/dev/null
    tail -n 40 "$lab/daemon.log" 2>/dev/null | sed 's/^/daemon: /'
  fi
  # What else runs is killed without a word from the shell.
  disown -a
  for name in $(ip netns list | awk -v p="$lab_name-" 'index($1, p) == 1 {print $1}'); do
    for pid in $(ip netns pids "$name"); do kill -KILL "$pid" 2>/dev/null; done
    ip netns delete "$name"
  done
  rm -rf "$lab"
  exit "$status"
}
trap lab_end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Terminates the daemon; kills it when it has not ended after SECONDS. Succeeds when it ended with 0.
stop_daemon() {
  local pid=$daemon tenths=$((${1:-5} * 10))
  [ -n "$pid" ] || return 0
  daemon=
  kill -TERM "$pid" 2>/dev/null
  while lives "$pid" && [ "$tenths" -gt 0 ]; do sleep 0.1; tenths=$((tenths - 1)); done
  if lives "$pid"; then
    kill -KILL "$pid" 2>/dev/null
    lab_killed=$((lab_killed + 1))
  fi
  wait "$pid" 2>/dev/null
}
# Whether a process runs; one that has ended and that nobody has waited for yet does not: lives PID
lives() { readlink -q "/proc/$1/exe" >/dev/null; }
# The daemons in the router's namespace.
daemons() {
  local pid
  for pid in $(ip netns pids "$lab_name-router" 2>/dev/null); do
    [ "$(cat "/proc/$pid/comm" 2>/dev/null)" != millraced ] || echo "$pid"
  done
}

# Makes hosts: host NAME...
host() {
  local name
  for name; do
    ip netns add "$lab_name-$name" || fail "cannot make namespace $name"
    on "$name" ip link set lo up
    # Test flows are short: no duplicate address detection, no router solicitation.
    on "$name" sysctl -q -w net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.default.router_solicitations=0 \
      net.ipv4.ping_group_range='0 2147483647'
  done
}

# Joins the router's PORT to HOST by a veth pair, called PORT at both ends: link PORT HOST [ADDRESS/LENGTH...]
link() {
  local port=$1 host=$2 address
  shift 2
  ip link add "$port" netns "$lab_name-router" type veth peer name "$port" netns "$lab_name-$host" ||
    fail "cannot make link $port"
  for address in router "$host"; do
    # A peer that leaves checksums and segmentation to hardware sends packets that no wire would carry.
    on "$address" ethtool -K "$port" tx off rx off gro off gso off tso off >/dev/null 2>&1
    on "$address" ip link set "$port" up
  done
  for address; do on "$host" ip address add "$address" dev "$port" || fail "address $address"; done
}

# Default routes of a host: gateway HOST ADDRESS...
gateway() {
  local host=$1 address
  shift
  for address; do on "$host" ip route add default via "$address" || fail "gateway $address"; done
}

# Adds lines to the configuration: config LINE... | config <<END
config() { if [ $# -gt 0 ]; then printf '%s\n' "$@"; else cat; fi >>"$lab_config"; }

# A TOML array of strings: strings WORD...
strings() { printf '"%s", ' "$@" | sed 's/^/[/; s/, $/]/'; }

# Declares the router's PORT on its end of the link; `config` can add keys after it: port NAME [ADDRESS/LENGTH...]
port() {
  local name=$1 address
  shift
  if [ "$LAB_ROUTER" = kernel ]; then
    for address; do on router ip address add "$address" dev "$name" || fail "address $address"; done
  fi
  device "$name" "$LAB_PORT:$name" "$@"
}

# Declares a port that is no veth pair: device NAME DEVICE [ADDRESS/LENGTH...]
device() {
  config '' '[[port]]' "name = \"$1\"" "device = \"$2\""
  shift 2
  [ $# -eq 0 ] || config "addresses = $(strings "$@")"
}

# The largest packet of a port and of the host's end: mtu PORT HOST BYTES; follows `port`.
mtu() {
  on router ip link set "$1" mtu "$3"
  on "$2" ip link set "$1" mtu "$3"
  config "mtu = $3"
}

# A tagged sub-interface PORT.ID of the router: vlan PORT ID [ADDRESS/LENGTH...]
vlan() {
  local port=$1 id=$2
  shift 2
  [ "$LAB_ROUTER" = millrace ] || tagged router "$port" "$id" "$@"
  config '' '[[vlan]]' "name = \"$port.$id\"" "port = \"$port\"" "id = $id"
  [ $# -eq 0 ] || config "addresses = $(strings "$@")"
}

# A tagged sub-interface of a host, by the kernel's own VLANs where it has them:
# tagged HOST INTERFACE ID [ADDRESS/LENGTH...]
tagged() {
  local host=$1 interface=$2 id=$3 address mac
  shift 3
  if ! on "$host" ip link add link "$interface" name "$interface.$id" type vlan id "$id" 2>/dev/null; then
    exec_on "$host" "$lab_root/lab/tagger" "$interface" "$id" &
    within 5 exists "$host" "$interface.$id" || fail "VLAN $id"
    mac=$(on "$host" cat "/sys/class/net/$interface/address")
    on "$host" ip link set "$interface.$id" address "$mac"
  fi
  on "$host" ip link set "$interface.$id" up
  for address; do on "$host" ip address add "$address" dev "$interface.$id" || fail "address $address"; done
}
exists() { on "$1" test -e "/sys/class/net/$2"; }

# Adds a route: route PREFIX ADDRESS...
route() {
  local prefix=$1 address hops=() via=()
  shift
  for address; do
    hops+=(nexthop via "$address")
    via+=("{ address = \"$address\" },")
  done
  [ "$LAB_ROUTER" = millrace ] || on router ip route add "$prefix" "${hops[@]}" || fail "route $prefix"
  config '' '[[route]]' "prefix = \"$prefix\"" "via = [${via[*]}]"
}

# For tests of what only millraced has.
needs_millrace() { [ "$LAB_ROUTER" = millrace ] || skip "only for millraced"; }

# The command line, on this test's daemon.
millrace() { "$LAB_BIN/millrace" --socket "$lab_socket" "$@"; }

# One value of the daemon's state: value "show ports" JQ-EXPRESSION
value() {
  # shellcheck disable=SC2086 # the first argument is several words
  millrace --json $1 | jq -r "$2"
}

# Packets dropped for a reason so far: drops REASON
drops() { value "show drops" '[.. | objects | select(.reason == "'"$1"'") | .packets] | add // 0'; }

# Starts the daemon without waiting for it.
launch() {
  exec_on router "$LAB_BIN/millraced" --config "$lab_config" --socket "$lab_socket" >>"$lab/daemon.log" 2>&1 &
  daemon=$!
}

ready() { curl -s -f -o /dev/null --unix-socket "$lab_socket" http://millrace/v1/version; }

# Starts the router and waits until it answers.
start() {
  if [ "$LAB_ROUTER" = kernel ]; then
    on router sysctl -q -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.fib_multipath_hash_policy=1 \
      net.ipv6.fib_multipath_hash_policy=1
    return
  fi
  [ -x "$LAB_BIN/millraced" ] || fail "no $LAB_BIN/millraced: build it, or set LAB_BIN"
  launch
  local tenths=150
  until ready; do
    kill -0 "$daemon" 2>/dev/null || { daemon=; fail "millraced ended while starting"; }
    tenths=$((tenths - 1))
    [ "$tenths" -gt 0 ] || fail "millraced is not ready after 15 s"
    sleep 0.1
  done
}

# Notes whether a command succeeds, and goes on: check WHAT COMMAND...
check() {
  local what=$1 output
  shift
  if output=$("$@" 2>&1); then
    echo "ok: $what"
  else
    echo "not ok: $what: $*"
    printf '%s\n' "$output" | head -n 20 | sed 's/^/    /'
    lab_failures=$((lab_failures + 1))
  fi
}

# Succeeds when the command fails.
fails() { ! "$@"; }

# Succeeds as soon as the command does, at most SECONDS later: within SECONDS COMMAND...
within() {
  local end=$((SECONDS + $1)) output
  shift
  until output=$("$@" 2>&1); do
    [ "$SECONDS" -lt "$end" ] || { echo "$output"; return 1; }
    sleep 0.1
  done
}

# Succeeds when both are equal, and shows them when not.
equal() { [ "$1" = "$2" ] || { echo "'$1' is not '$2'"; return 1; }; }

# Succeeds when the command's output has a line that matches: says PATTERN COMMAND...
says() {
  local pattern=$1 output
  shift
  output=$("$@" 2>&1)
  grep -q -E -e "$pattern" <<<"$output" || { echo "no '$pattern' in: $output"; return 1; }
}

# All packets come back: pings HOST ADDRESS [PING-OPTION...]
# Once some are answered, ping waits for the last for twice the longest time so far only: what comes later, the host's
# kernel has counted.
pings() {
  local from=$1 to=$2 before output
  shift 2
  before=$(echoes "$from")
  output=$(says ' 0% packet loss' on "$from" ping -n -i 0.1 -c 5 -W 1 "$@" "$to") && return
  echo "$output"
  within 4 answered "$from" 5 "$before"
}
# Whether COUNT requests or more were sent since then, and replies to all of them came: answered HOST COUNT COUNTS-OF-BEFORE
answered() {
  echo "$3" "$(echoes "$1")" | awk -v count="$2" '{
    sent = $5 - $1 + $7 - $3
    back = $6 - $2 + $8 - $4
    print sent " sent, " back " back"
    exit !(sent >= count && sent == back)
  }'
}

# MAC address of an interface: mac HOST INTERFACE
mac() { on "$1" cat "/sys/class/net/$2/address"; }

# Packets that a host's interface received, and sent: received HOST INTERFACE | sent HOST INTERFACE
received() { on "$1" cat "/sys/class/net/$2/statistics/rx_packets"; }
sent() { on "$1" cat "/sys/class/net/$2/statistics/tx_packets"; }

# For the bridge tests: the kernel's bridge as yardstick of the same name: kernel_bridge NAME MEMBER...
kernel_bridge() {
  local name=$1 member
  shift
  on router ip link add "$name" type bridge
  on router ip link set "$name" up
  for member; do on router ip link set "$member" master "$name" || fail "bridge member $member"; done
}

# DPDK's testpmd as a wire between two virtual devices, until `unwire`: wire HOST VDEV VDEV
wire() {
  local host=$1
  shift
  # It ends at the end of its standard input.
  mkfifo "$lab/wire" 2>/dev/null
  exec_on "$host" dpdk-testpmd --no-huge --no-pci --no-shconf --no-telemetry -m 256 --lcores "0@0,1@$(($(nproc) - 1))" \
    --file-prefix "$lab_name-wire" "${@/#/--vdev=}" -- --forward-mode=io --auto-start --total-num-mbufs=8192 \
    <>"$lab/wire" >"$lab/testpmd.log" 2>&1 &
  testpmd=$!
}
unwire() {
  kill -TERM "$testpmd"
  wait "$testpmd"
}

# A few megabytes by TCP and a second of UDP to each address of host b: transfers ADDRESS...
transfers() {
  local address
  exec_on b iperf3 -s >"$lab/iperf3.log" 2>&1 &
  within 5 says LISTEN on b ss -Hltn 'sport = :5201' || fail "iperf3 does not start"
  for address; do
    check "TCP to $address" iperf a -c "$address" -n 20M
    check "UDP to $address" all_datagrams "$address"
  done
}
# iperf3, which is tried again while the server is still at the end of the test before, or opens its port anew after it:
# iperf HOST OPTION...
iperf() {
  local host=$1 end=$((SECONDS + 15)) output
  shift
  until output=$(on "$host" iperf3 "$@" 2>&1); do
    if [ "$SECONDS" -ge "$end" ] || grep -q 'connected to' <<<"$output" ||
      ! grep -q -E 'busy running a test|refused|reset|closed unexpectedly|unable to (send|receive)' <<<"$output"; then
      echo "$output"
      return 1
    fi
    sleep 0.2
  done
  echo "$output"
}
# A second of UDP from host a to an address of host b, all of which comes there. What the server's socket had no room for, while
# the server did not run, has come as well: all_datagrams ADDRESS
all_datagrams() {
  local before output lost
  before=$(overruns b)
  output=$(iperf a -c "$1" -u -b 5M -l 1200 -t 1) || { echo "$output"; return 1; }
  lost=$(sed -n -E 's|.* ([0-9]+)/[0-9]+ .*receiver.*|\1|p' <<<"$output")
  if [ "${lost:-1}" -gt $(($(overruns b) - before)) ]; then
    echo "$output"
    return 1
  fi
}
# Datagrams for which sockets of a host had no room so far: overruns HOST
overruns() { on "$1" nstat -asz UdpRcvbufErrors Udp6RcvbufErrors | awk '/^Udp/ {n += $2} END {print n + 0}'; }

# Sends echo requests at 500/s in both families from a to b until a command has ended, and succeeds
# when all came back: lossless COMMAND...
# What came back is what a's kernel has counted: after its last request ping waits for twice the time that the slowest
# answer took so far, and calls lost what comes later.
lossless() {
  local pids=() address status=0 before
  rm -f "$lab/enough"
  before=$(echoes a)
  for address in 10.0.2.2 2001:db8:2::2; do
    keep_pinging "$address" >"$lab/lossless-$address" 2>&1 &
    pids+=($!)
  done
  within 10 under_way "$before" || { echo "nobody pings"; status=1; }
  sleep 0.5
  "$@" || { echo "failed: $*"; status=1; }
  sleep 0.5
  touch "$lab/enough"
  wait "${pids[@]}"
  within 5 all_back "$before" || status=1
  return $status
}

# Echo requests that a host has sent so far, and replies that came, by family: echoes HOST
echoes() {
  on "$1" nstat -asz IcmpOutEchos IcmpInEchoReps Icmp6OutEchos Icmp6InEchoReplies |
    awk '/^Icmp/ {n[$1] = $2} END {print n["IcmpOutEchos"], n["IcmpInEchoReps"], n["Icmp6OutEchos"], n["Icmp6InEchoReplies"]}'
}
# Whether IPv4 requests were sent since then: echoing COUNTS-OF-BEFORE
echoing() { echo "$1" "$(echoes a)" | awk '{exit !($5 > $1)}'; }
# Whether requests of both families were sent since then: under_way COUNTS-OF-BEFORE
under_way() { echo "$1" "$(echoes a)" | awk '{exit !($5 > $1 && $7 > $3)}'; }
# Whether replies to all requests since then have come: all_back COUNTS-OF-BEFORE
all_back() {
  echo "$1" "$(echoes a)" | awk '{
    print "IPv4: " $5 - $1 " sent, " $6 - $2 " back; IPv6: " $7 - $3 " sent, " $8 - $4 " back"
    exit !($5 - $1 >= 100 && $5 - $1 == $6 - $2 && $7 - $3 >= 100 && $7 - $3 == $8 - $4)
  }'
}

# Pings from host a until $lab/enough is there; says how soon answers came.
keep_pinging() {
  until [ -e "$lab/enough" ]; do on a ping -n -q -c 100 -i 0.002 -W 2 "$1" | grep '^rtt'; done
}

# Two hosts a and b with the router between them, both families; the topology of most tests.
two_hosts() {
  host a b
  link left a 10.0.1.2/24 2001:db8:1::2/64
  link right b 10.0.2.2/24 2001:db8:2::2/64
  gateway a 10.0.1.1 2001:db8:1::1
  gateway b 10.0.2.1 2001:db8:2::1
}
two_ports() {
  port left 10.0.1.1/24 2001:db8:1::1/64
  port right 10.0.2.1/24 2001:db8:2::1/64
}

host router
# The router's own kernel stays silent: millraced answers on these wires.
[ "$LAB_ROUTER" = kernel ] || on router sysctl -q -w net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
config '[daemon]' "socket = \"$lab_socket\"" '[memory]' 'hugepages = "never"' 'buffers = 8192'
