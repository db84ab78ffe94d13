#!/usr/bin/env bash
# A worker that a packet function holds up, or ends, is noticed within a second: its ports are down and it is said
# everywhere. The control thread goes on, and the service manager's watchdog is not fed meanwhile.
. "$(dirname "$0")/lab.sh"
needs_millrace
two_hosts
two_ports
device left-k tap:left-k
functions=$lab/functions
config '' '[functions]' "folder = \"$functions\"" '' '[neighbors]' 'reachable-time = "1s"' 'retrans-timer = "200ms"'
mkdir "$functions"
chmod 755 "$lab"
# For a UDP datagram to port 7777: waits until it is released, a minute at most. To port 7778: ends the worker's thread, and
# nobody tells anybody.
cat >"$lab/hold.c" <<'END'
#include <millrace_function.h>
#include <sys/syscall.h>
#include <unistd.h>
static void *create(const char *argument, char *error, uint32_t room) {
  static int instance;
  (void)argument, (void)error, (void)room;
  return &instance;
}
static void process(void *instance, struct millrace_function_packet *packets, uint32_t count) {
  (void)instance;
  for (uint32_t i = 0; i < count; i++) {
    const uint8_t *b = packets[i].data;
    if (packets[i].length < 42 || b[12] != 8 || b[13] != 0 || b[14] != 0x45 || b[23] != 17) continue;
    int port = b[36] << 8 | b[37];
    if (port == 7777) for (int n = 0; n < 6000 && access(RELEASE, F_OK) != 0; n++) usleep(10000);
    if (port == 7778) syscall(SYS_exit, 0);
  }
}
static void destroy(void *instance) { (void)instance; }
static const struct millrace_function_table table = {MILLRACE_FUNCTION_VERSION, create, process, destroy};
const struct millrace_function_table *millrace_function(void) { return &table; }
END
cc -shared -fPIC -Wall -Werror -DRELEASE="\"$lab/release\"" -I "$lab_root/crates/function/include" -o "$functions/hold.so" "$lab/hold.c" || fail "hold.c"
export NOTIFY_SOCKET=$lab/notify WATCHDOG_USEC=400000
# As a service manager does that watches it.
launch() {
  (
    export WATCHDOG_PID=$BASHPID
    exec_on router "$LAB_BIN/millraced" --config "$lab_config" --socket "$lab_socket" >>"$lab/daemon.log" 2>&1
  ) &
  daemon=$!
}
exec_on router python3 -u -c '
import os, socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(os.environ["NOTIFY_SOCKET"])
while True:
    print(s.recv(4096).decode())' >"$lab/notified" &
within 20 test -S "$lab/notify" || fail "no receiver of notifications"
start
within 5 exists router left-k || fail "no tap"
on router ip link set left-k up
on router ip address add 10.0.1.9/24 dev left-k
fed() { grep -c '^WATCHDOG=1' "$lab/notified"; }
# The watchdog is fed from now on: is_fed; is not, for two seconds, in which it would be ten times: starves. The receiver may read
# late what was sent before, and the daemon may send what it had decided: `within` looks at another two seconds then.
is_fed() { within 10 fed_beyond $(($(fed) + 1)); }
fed_beyond() { [ "$(fed)" -gt "$1" ]; }
starves() {
  local before
  # What was sent before is read by then.
  sleep 0.3
  before=$(fed)
  sleep 2
  equal "$(fed)" "$before" && says 'no answer' millrace show workers
}

# Holds the worker up | lets it go on
hold() { rm -f "$lab/release" && datagram 7777; }
release() { touch "$lab/release"; }
datagram() { on a bash -c "echo stop >/dev/udp/10.0.2.2/$1"; }
metric() { curl -s --unix-socket "$lab_socket" http://millrace/metrics; }
# Every answer within a second: the command line's start is in it, for which a busy machine may take longer. `within` tries again.
answers() { for _ in 1 2 3; do timeout 1 "$LAB_BIN/millrace" --socket "$lab_socket" show routes >/dev/null || return 1; done; }

check "pings pass" pings a 10.0.2.2
check "the watchdog is fed" is_fed
check "the worker is up" says '[0-9]+ +up ' millrace show workers
check "the function is added" millrace function add hold.so
check "pings pass it" pings a 10.0.2.2

exec_on router python3 "$lab_root/lab/client/attach.py" "$lab/attach.sock" deaf \
  '{"take": "nothing", "spread": "flow", "channels": 1, "slots": 64, "capacity": 2048}' >"$lab/client" 2>&1 &
client=$!
check "a client is attached" within 20 grep -q '^attached' "$lab/client"
has_memory() { grep -q millrace-client "/proc/$daemon/maps"; }
check "the daemon has its memory" has_memory

check "a datagram holds the worker up" hold
check "it is said of the worker" within 10 says 'no answer' millrace show workers
kill -KILL "$client"
wait "$client" 2>/dev/null
check "the watchdog is not fed meanwhile" within 12 starves
check "its ports are down, and why" within 5 says 'worker-down' millrace show ports
check "the metrics say so" says 'millrace_worker_up\{core="[0-9]+"\} 0' metric
check "the log says so" grep -q 'the worker does not answer' "$lab/daemon.log"
check "the API answers meanwhile" within 10 answers
# Not by its time being over, which `timeout` says with 124.
refused() {
  local status=0
  timeout 8 "$LAB_BIN/millrace" --socket "$lab_socket" function add hold.so || status=$?
  [ "$status" -ne 0 ] && [ "$status" -ne 124 ]
}
check "a change is refused, not waited for" refused
check "the function that holds it up can be removed" timeout 8 "$LAB_BIN/millrace" --socket "$lab_socket" function del 1
is_loaded() { grep -q 'hold\.so' "/proc/$daemon/maps"; }
check "and is still loaded, as it runs" is_loaded
release
check "the worker is back when its function is" within 20 says '[0-9]+ +up ' millrace show workers
check "so are its ports" within 10 fails says 'worker-down' millrace show ports
check "and pings pass" within 15 pings a 10.0.2.2
check "what a client had that was killed meanwhile is taken back" within 10 fails has_memory
check "so is the function that was removed meanwhile" within 10 fails is_loaded
check "the watchdog is fed again" is_fed
check "the function is added again" millrace function add hold.so

# The kernel's side of a port comes and goes with the configuration, whether the worker answers or not.
cp "$lab_config" "$lab/without"
kernel_side() { config '' '[[kernel]]' 'port = "left"' 'tap = "left-k"' 'addresses = ["10.0.1.9"]' && timeout 8 "$LAB_BIN/millrace" --socket "$lab_socket" reload; }
no_kernel_side() { cp "$lab/without" "$lab_config" && timeout 8 "$LAB_BIN/millrace" --socket "$lab_socket" reload; }
forgets() { on a ip neigh flush dev left && pings a 10.0.1.9; }
check "nobody has the kernel's address" fails forgets
check "a datagram holds the worker up once more" hold
check "it is said of the worker again" within 10 says 'no answer' millrace show workers
check "a kernel side comes meanwhile" kernel_side
release
check "the worker is back once more" within 20 says '[0-9]+ +up ' millrace show workers
check "it has the kernel side now" within 20 forgets
check "a datagram holds the worker up for the last time" hold
check "which is said" within 10 says 'no answer' millrace show workers
check "the kernel side goes meanwhile" no_kernel_side
release
check "the worker is back for the last time" within 20 says '[0-9]+ +up ' millrace show workers
check "without the kernel side" within 20 fails forgets

# A neighbour that is asked meanwhile: nobody can hear its answer.
is_in() { says "^$1\$" value 'show neighbors' '.. | objects | select(.address == "10.0.2.2") | .state'; }
on a ping -n -q -i 0.2 10.0.2.2 >/dev/null 2>&1 &
pinging=$!
check "a neighbour will be asked soon" within 30 is_in delay
check "a datagram holds the worker up before that" hold
check "the neighbour is asked" within 20 is_in probe
# Ten times as long as one question waits.
sleep 2
check "it is not taken for dead, as nobody listens" is_in probe
release
check "its answer is heard in the end" within 20 is_in '(reachable|stale|delay)'
kill "$pinging"
# The worker is heard of later than the answer that it brought.
check "and the worker is back" within 20 says '[0-9]+ +up ' millrace show workers

check "a datagram ends the worker" datagram 7778
check "that is noticed too" within 10 says 'no answer' millrace show workers
check "the API answers" within 10 answers
check "the watchdog starves for good" within 12 starves
ends() { kill -TERM "$daemon" && within 20 fails kill -0 "$daemon"; }
check "the daemon still ends" ends
