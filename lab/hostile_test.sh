#!/usr/bin/env bash
# Hostile neighbours: for a while (LAB_HOSTILE_SECONDS, 60) processes of six users do to the attach and sessions sockets
# whatever comes to their minds (lab/hostile; LAB_HOSTILE_SEED), beside a good client, pings, ARP, ND and the API. Nobody else
# loses anything, and nothing is left of them. Prints what they did and how long anybody waited.
. "$(dirname "$0")/lab.sh"
needs_millrace
two_hosts
two_ports
host c
link side c 10.0.3.2/24
gateway c 10.0.3.1
port side 10.0.3.1/24
config 'client-queues = 1'
config '' '[clients]' 'memory = 32'
# The good client's user, two that share the ports with everybody, and two that have a port to themselves; two more have no
# rule.
for uid in 2000 2001 2002; do config '' '[[client]]' "uid = $uid" 'ports = ["left", "right"]'; done
for uid in 2003 2004; do config '' '[[client]]' "uid = $uid" 'ports = ["side"]'; done
users=('2001:left,right' '2002:left,right' 2003:side 2004:side 2005 2006)
sed -i '/^\[daemon\]/a log = "warn"' "$lab_config"
start
attach=$lab/attach.sock
chmod 755 "$lab"
cp "$lab_root/lab/client/attach.py" "$lab/attach.py"
python=$(command -v /usr/bin/python3 python3 | head -n 1)
seconds=${LAB_HOSTILE_SECONDS:-60}
# What the daemon may keep of its own memory: what its threads' allocators hold, which doesn't grow with time. KiB.
most=32768

exec_on router setpriv --reuid 2000 --regid 2000 --clear-groups "$python" "$lab/attach.py" "$attach" echo \
  '{"ports": ["left"], "take": "divert", "filter": {"protocol": "udp", "destination-port": 7}, "spread": "flow", "channels": 1, "slots": 64, "capacity": 2048}' \
  >"$lab/echo" 2>&1 &
echo=$!
within 15 grep -q '^attached' "$lab/echo" || fail "the good client is not attached: $(cat "$lab/echo")"

# Something for clients to take: datagrams to port 9, by both ports that they may use.
for host in a c; do
  exec_on "$host" python3 -c '
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    s.sendto(b"food" * 20, ("10.0.2.2", 9))
    time.sleep(0.002)' 2>/dev/null &
done

clients() { value "show clients" '[.[].name] | join(" ")'; }
files() { find "/proc/$daemon/fd" -type l | wc -l; }
threads() { find "/proc/$daemon/task" -mindepth 1 -maxdepth 1 | wc -l; }
names() { sort "/proc/$daemon"/task/*/comm; }
segments() { grep -c -E 'millrace-(client|stack|sessions|link)' "/proc/$daemon/maps"; }
# The same memory, open in processes of this router's namespace.
memories() {
  local pid
  for pid in $(ip netns pids "$lab_name-router"); do find "/proc/$pid/fd" -lname '/memfd:millrace-*' 2>/dev/null; done | wc -l
}
# Processes of the router's namespace.
processes() { ip netns pids "$lab_name-router" | wc -l; }
# The daemon's processes that receive what users hand over, also those that have ended and that it has not reaped.
judges() { cat /proc/[0-9]*/stat 2>/dev/null | grep -c "^[0-9]* (millrace-judge) [A-Z] $daemon "; }
# File systems of programs (FUSE) that the daemon sees.
mounts() { grep -c ' - fuse ' "/proc/$daemon/mountinfo"; }
# KiB of one kind: memory RssAnon (the daemon's own) | RssShmem
memory() { awk -v key="$1:" '$1 == key {print $2}' "/proc/$daemon/status"; }

# Asks for ARP, ND, the API and the good client's echo while a command runs: asking NAME COMMAND...
asking() {
  local name=$1 status=0 prober
  shift
  mkfifo "$lab/hold"
  exec_on a "$lab_root/lab/prober" left 10.0.1.1 2001:db8:1::1 "$lab_socket" $((seconds * 2 + 120)) 10.0.2.2 "$echo" <"$lab/hold" >"$lab/probed-$name" &
  prober=$!
  exec 9>"$lab/hold"
  "$@" >"$lab/$name" 2>&1 || { status=1; cat "$lab/$name"; }
  exec 9>&-
  wait "$prober" || { status=1; cat "$lab/probed-$name"; }
  rm "$lab/hold"
  return $status
}
hostility() {
  on router "$lab_root/lab/hostile" "$attach" "$lab_socket" "$seconds" "${LAB_HOSTILE_SEED:-0}" "${users[@]}"
}
waits() {
  sed "s/^/$1: /" "$lab/probed-$1"
  awk -F '[/ =]+' -v name="$1" '/^rtt/ && $8 > worst {worst = $8} END {print name ": pings, worst " worst " ms"}' "$lab"/lossless-*
}

check "nobody is hostile" lossless asking calm sleep 3
waits calm
# What begins with the first that needs it, and stays: the daemon's own stack, for parcels, and a stack worker, each with its
# thread and its memory, and the book of ports, for links.
first=$(threads)
needs() { on router "$lab_root/lab/hostile" "$attach" "$lab_socket" 2 1:parcels,lodger,introduces "${users[@]}"; }
check "the daemon takes parcels, has lodgers and makes links" needs
has_book() { find "/proc/$daemon/fd" -lname '/memfd:millrace-book*' | grep -q .; }
check "it keeps a book of ports for those" has_book
settled() { [ "$(threads)" -le $((first + 2)) ] && equal "$(clients)" echo; }
check "it has two threads more for them" within 40 settled
# A thread of the runtime's that was needed at the start has ended when it is looked again.
before="$(threads) $(files) $(segments) $(memories) $(processes) $(mounts)"
names >"$lab/threads"
own=$(memory RssAnon) shared=$(memory RssShmem)
echo "before: $(threads) threads, $(files) descriptors, $own KiB of its own, $shared KiB shared"

check "all others are served while neighbours are hostile" lossless asking hostile hostility
cat "$lab/hostile"
waits hostile
# Unless these were skipped, or others were asked for.
if grep -q -E '^(unclosed|unexamined): ' "$lab/hostile"; then
  check "what they handed over was waited for" says 'user 200[1-6]: the process that receives' cat "$lab/daemon.log"
fi
served_again() {
  local user
  for user in "${users[@]:0:4}"; do
    says 'listening [1-9]' on router "$lab_root/lab/hostile" "$attach" "$lab_socket" 1 1:serves_anything "$user" || return 1
  done
}
check "and their users are served again" within 30 served_again
# The threads of users end ten seconds after their last client.
only_the_good_one() { equal "$(clients)" echo; }
as_before() {
  local threads files segments memories processes mounts
  read -r threads files segments memories processes mounts <<<"$before"
  equal "$(segments) $(memories) $(mounts)" "$segments $memories $mounts" &&
    equal "$(comm -13 "$lab/threads" <(names))" '' && [ "$(threads)" -le "$threads" ] &&
    { [ "$(processes)" -le "$processes" ] || equal "$(processes)" "$processes"; } &&
    { [ "$(files)" -le "$files" ] || equal "$(files)" "$files"; }
}
check "none of them is attached any more" within 30 only_the_good_one
check "no process, thread, descriptor, mount or memory of theirs is left" within 60 as_before
of_the_connected() { equal "$(judges)" "$(value "show stacks" '[.[].uid] | unique | length')"; }
check "nor a judge but those of users that are connected" within 30 of_the_connected
grown() { [ $(($(memory RssAnon) - own)) -le "$most" ]; }
same_shared() { [ $(($(memory RssShmem) - shared)) -le 1024 ]; }
check "the daemon's own memory has not grown by more than $most KiB" grown
check "nor the memory that it shares" within 10 same_shared
echo "after: $(threads) threads, $(files) descriptors, $(memory RssAnon) KiB of its own, $(memory RssShmem) KiB shared"
# On a machine that is too busy for it, it may just not.
check "the worker answers" within 20 says '[0-9]+ +up ' millrace show workers
# On a machine that is too busy for its worker that is said; a worker that is late by itself makes the prober fail.
late=(-e 'the worker does not answer' -e 'worker [0-9]* did not answer in time')
echo "the worker was called silent or late $(grep -c "${late[@]}" "$lab/daemon.log") times"
faults() { grep -v "${late[@]}" "$lab/daemon.log" | grep -i -E 'panic| ERROR '; }
check "the daemon has not complained about itself" fails faults
exec_on router python3 "$lab/attach.py" "$attach" deaf \
  '{"take": "nothing", "spread": "flow", "channels": 1, "slots": 64, "capacity": 2048}' >"$lab/new" 2>&1 &
new=$!
check "a client that comes now is served" within 15 says '^attached' cat "$lab/new"
kill -KILL "$new"
wait "$new" 2>/dev/null
check "and the router goes on" lossless sleep 1
