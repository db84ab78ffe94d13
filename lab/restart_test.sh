#!/usr/bin/env bash
# What came by the API or was learned survives a restart in place, a stop, and kill -9; the configuration wins; a file that
# makes no sense is refused and put aside.
. "$(dirname "$0")/lab.sh"
needs_millrace
two_hosts
two_ports
on b ip address add 198.51.100.1/32 dev lo
on b ip address add 203.0.113.1/32 dev lo
device wire "memif:$lab/wire.sock,role=server"
config '' '[limits]' 'flows4 = 64' '' '[functions]' "folder = \"$lab/functions\""
mkdir "$lab/functions"
cc -shared -fPIC -I "$lab_root/crates/function/include" -o "$lab/functions/reflect.so" \
  "$lab_root/examples/functions/reflect.c" || fail "reflect.c"
cp "$lab_config" "$lab/no-keep.toml"
sed "/^socket/a keep = \"$lab/kept\"" "$lab/no-keep.toml" >"$lab/keep.toml"
cp "$lab/keep.toml" "$lab_config"
start

kept=$lab/kept/state
origin() { value "show routes --prefix $1" '.routes[0].origin'; }
neighbor() { value "show neighbors" '.[] | select(.address == "'"$1"'") | .state'; }
mac_of() { value "show ports" '.[] | select(.name == "'"$1"'") | .mac'; }
restarts() { value "show version" .restarts; }
has() { grep -q -- "$1" "$kept"; }
killed() {
  kill -KILL "$daemon"
  wait "$daemon" 2>/dev/null
  daemon=
}

check "there is no way to 198.51.100.1" fails pings a 198.51.100.1
millrace route add 198.51.100.0/24 via 10.0.2.2 >/dev/null
millrace neighbor add right 10.0.2.77 02:00:00:00:00:77 >/dev/null
millrace flow add 10.0.1.2 10.0.9.9 udp --sport 7 --dport 9 --port right --destination-mac 02:00:00:00:00:99 >/dev/null
millrace function add reflect.so --port wire >/dev/null
check "the route of the API is used" pings a 198.51.100.1
made_up=$(mac_of wire)

# Pings at 500/s through the route of the API, until a command has ended; says how many were lost.
restart_beside_pings() {
  local sent back lost
  rm -f "$lab/enough"
  (until [ -e "$lab/enough" ]; do on a ping -n -q -c 50 -i 0.002 -W 1 198.51.100.1; done) >"$lab/pings" 2>&1 &
  local pinging=$! before
  before=$(echoes a)
  within 10 echoing "$before" || return 1
  sleep 0.5
  millrace restart >"$lab/restarted" || { cat "$lab/restarted"; return 1; }
  within 10 pings a 198.51.100.1 || return 1
  touch "$lab/enough"
  wait "$pinging"
  sent=$(awk '/packets transmitted/ {n += $1} END {print n}' "$lab/pings")
  back=$(awk '/packets transmitted/ {n += $4} END {print n}' "$lab/pings")
  lost=$((sent - back))
  echo "restart in place: '$(cat "$lab/restarted")'; of $sent pings at up to 500/s $lost were lost" >&3
  [ "$sent" -gt 0 ] && [ "$back" -gt 0 ]
}
exec 3>&1
pid=$daemon
check "a restart in place" restart_beside_pings
check "it is the same process" equal "$(value "show version" .pid)" "$pid"
check "it was restarted once" equal "$(restarts)" 1
check "it says for how long forwarding stood still" grep -Eq '^restarted; forwarding stood still for [0-9]+ ms$' "$lab/restarted"
check "the route is there, as the API's" equal "$(origin 198.51.100.0/24)" api
check "the neighbour of the API is there" equal "$(neighbor 10.0.2.77)" static
check "the flow is there" equal "$(value "show flows" '.flows[0].destination_mac')" 02:00:00:00:00:99
check "the function is there" equal "$(value "show functions" '.[0].file')" reflect.so
check "a MAC address that its driver makes up is the same" equal "$(mac_of wire)" "$made_up"
# One that is open for a moment is written.
no_state() { equal "$(on router find "/proc/$daemon/fd" -lname "*state*" | wc -l)" 0; }
check "no file is left open by the one before" within 10 no_state
files() { on router ls "/proc/$daemon/fd" | wc -l; }
before=$(files)
millrace restart >/dev/null
no_more() { [ "$(files)" -le "$((before + 1))" ]; }
check "nor by another restart" within 10 no_more

# What was learned: host b is silent now, and its address is known all the same.
check "b is known" pings a 10.0.2.2
check "its neighbours are saved" millrace save
stop_daemon 15
check "the daemon ends with 0" equal $? 0
check "a learned neighbour is kept" has '"learned":true'
on b sysctl -q -w net.ipv4.conf.right.arp_ignore=8
start
check "it comes back as stale" within 15 says stale neighbor 10.0.2.2
check "packets go to it, although it answers no question" pings a 10.0.2.2
on b sysctl -q -w net.ipv4.conf.right.arp_ignore=0

# Killed at any time, it has what was there a second or two before.
millrace route add 203.0.113.0/24 via 10.0.2.2 >/dev/null
check "a change is kept without a word" within 10 has 203.0.113.0/24
killed
check "the file is whole" has '"end":'
start
check "what was kept is there after kill -9" within 15 pings a 203.0.113.1
check "the older too" pings a 198.51.100.1
millrace route del 203.0.113.0/24 >/dev/null
check "what is taken away is kept as well" within 10 fails has 203.0.113.0/24
killed
start
check "and is not there again" within 15 says 'Net Unreachable' on a ping -n -c 1 -W 1 203.0.113.1

# The configuration says something else by now.
config '' '[[route]]' 'prefix = "198.51.100.0/24"' 'kind = "unreachable"'
stop_daemon 15
start
check "the configuration wins" equal "$(origin 198.51.100.0/24)" config
cp "$lab/keep.toml" "$lab_config"
config '' '[[route]]' 'prefix = "198.51.100.0/24"' 'via = "10.0.77.2"'
check "a configuration that is wrong is refused" says '198.51.100.0/24|10.0.77.2' millrace restart
check "and nothing happened" pings a 10.0.2.2
cp "$lab/keep.toml" "$lab_config"
millrace route add 198.51.100.0/24 via 10.0.2.2 >/dev/null 2>&1
millrace reload >/dev/null
millrace route add 198.51.100.0/24 via 10.0.2.2 >/dev/null

# A file that makes no sense.
stop_daemon 15
cp "$kept" "$lab/good"
put_aside() { test -e "$kept.refused" && pings a 10.0.2.2 && fails pings a 198.51.100.1 -c 1; }
cut_off() { head -c 300 "$lab/good"; }
unknown() { sed '3i {"secret":{}}' "$lab/good"; }
newer() { sed '1s/:1,/:2,/' "$lab/good"; }
garbage() { head -c 100000 /dev/urandom; }
for broken in cut_off unknown newer garbage; do
  stop_daemon 15
  rm -f "$kept.refused"
  "$broken" >"$kept"
  start
  check "put aside and not used: $broken" within 15 put_aside
done
check "the log says why" grep -q 'the file is ignored' "$lab/daemon.log"
stop_daemon 15
cp "$lab/good" "$kept"
start
check "and the good one is taken" within 15 pings a 198.51.100.1

# Nobody has named a folder.
stop_daemon 15
cp "$lab/no-keep.toml" "$lab_config"
start
millrace route add 198.51.100.0/24 via 10.0.2.2 >/dev/null
check "without a folder there is no save" says 'daemon.keep' millrace save
check "a restart loses nothing even so" millrace restart
check "the route is there" within 15 pings a 198.51.100.1
check "and no file stays" test ! -e "$lab_socket.state"
export STATE_DIRECTORY=$lab/service
stop_daemon 15
start
millrace route add 198.51.100.0/24 via 10.0.2.2 >/dev/null
check "the service manager's folder is as good" says "$lab/service/state: 1 routes" millrace save
killed
start
check "and a start takes it over" within 15 pings a 198.51.100.1
