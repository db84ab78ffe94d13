# shellcheck shell=bash disable=SC2154,SC2034
# For tests of programs that serve on Millrace: source it after lab.sh.
# Servers run in the router's namespace, whose kernel has none of the router's addresses; clients use the kernel's
# stack in host a. With LAB_ROUTER=kernel the servers run on the kernel, which shows that a test is sound.

served=$lab/served
preload=$LAB_BIN/libmillrace_preload.so
export MILLRACE_SESSIONS=$lab/sessions.sock
# Workers give up root: they still have to reach the daemon and the files.
chmod 755 "$lab"
mkdir -p "$served/files" "$served/logs" "$served/temp"
chmod 777 "$served/temp" "$served/logs"

# Host a, one link, the router's addresses 10.0.1.1 and 2001:db8:1::1.
one_host() {
  host a
  link left a 10.0.1.2/24 2001:db8:1::2/64
  gateway a 10.0.1.1 2001:db8:1::1
  port left 10.0.1.1/24 2001:db8:1::1/64
}

# Starts the router and makes sure that programs can be served by it.
start_serving() {
  start
  [ "$LAB_ROUTER" = millrace ] || return 0
  [ -e "$preload" ] || fail "no $preload: cargo build --workspace"
  within 5 test -S "$MILLRACE_SESSIONS" || fail "the daemon has no sessions socket at $MILLRACE_SESSIONS"
}

# A command whose sockets are Millrace's: serve COMMAND...; in the background, $! is the command's own process.
serve() {
  if [ "$LAB_ROUTER" = kernel ]; then exec_on router "$@"; else exec_on router env LD_PRELOAD="$preload" "$@"; fi
}

# Starts a server and waits for its port: server NAME PORT COMMAND...; its process is in $server.
server() {
  local name=$1 port=$2
  shift 2
  # What the daemon still knows of one that has ended is not this one's. One that is replaced goes on.
  [ "$LAB_ROUTER" = kernel ] || opens router "$port" || within 10 fails told "$port" || true
  serve "$@" >"$served/logs/$name" 2>&1 &
  server=$!
  within 30 opens router "$port" || { said "$name"; fail "$name does not open its port"; }
  # The kernel listens first. What has no address of the router's is not told to the daemon: that is no fault.
  [ "$LAB_ROUTER" = kernel ] || within 10 told "$port" || true
}
# Whether the daemon knows that somebody serves a port: told PORT
told() { says ":$1 " millrace show listeners; }
# Whether somebody serves a port, by TCP or UDP: opens HOST PORT
opens() { on "$1" ss -Hltun "sport = :$2" | grep -q .; }
# The last that a server has said: said NAME
said() { sed "s/^/$1: /" "$served/logs/$1" | tail -n 20; }
# Whether a program is there; says so if not: has NAME
has() { command -v "$1" >/dev/null || { echo "skipped: no $1"; return 1; }; }
# The interpreter itself, not a script that looks for one.
python=$(command -v /usr/bin/python3 python3 | head -n 1)

# The same by the command that users have.
execute() {
  if [ "$LAB_ROUTER" = kernel ]; then exec_on router "$@"; fi
  exec_on router "$LAB_BIN/millrace" --socket "$lab_socket" exec --require --library "$preload" "$@"
}

# BYTES of data in which each byte differs from its neighbours in no regular way, the same every time: data BYTES KEY
data() { head -c "$1" /dev/zero | openssl enc -aes-128-ctr -nosalt -K "$(printf '%032x' "$2")" -iv 0 2>/dev/null; }
# Hash of standard input.
hash() { sha256sum | cut -d ' ' -f 1; }

# curl in host a: quiet, an error from status 400 on, no longer than 20 s.
get() { on a curl -s -S -f --max-time 20 "$@"; }
# Succeeds when the page's body is the file, byte by byte: same FILE URL [CURL-OPTION...]
same() {
  local file=$1
  shift
  equal "$(get "$@" | hash)" "$(hash <"$file")"
}

# No program has a stack; the daemon has one of its own.
no_stacks() { equal "$(value "show stacks" '[.[] | select(.name != "millraced")] | length')" 0; }

# Whether a process is there: alive PID
alive() { kill -0 "$1" 2>/dev/null; }
# Ends a process that this test started, and waits for its end.
end() {
  kill -"${2:-KILL}" "$1" 2>/dev/null
  wait "$1" 2>/dev/null || true
}

# TCP segments that the kernel of the router's namespace has received, loopback's among them.
kernel_segments() {
  on router nstat -asz TcpInSegs | awk '$1 == "TcpInSegs" {print $2; found = 1} END {exit !found}' || echo "unknown $RANDOM"
}

# Clients that ask for a file of the server's over and over, on a connection each, until `enough`; in host a, or as RUN says:
# load PORT FILE [RUN...]
load() {
  local port=$1 file=$2 run=("${@:3}")
  [ ${#run[@]} -gt 0 ] || run=(on a)
  rm -f "$lab/enough"
  "${run[@]}" "$python" "$lab_root/lab/serve/load" 10.0.1.1 "$port" "/${file##*/}" "$(stat -c %s "$file")" \
    "$(hash <"$file")" 4 "$lab/enough" >"$lab/load" 2>&1 &
  load=$!
}
# After so many requests at least, which a busy machine may not have come to: enough [REQUESTS]
enough() {
  echo "${1:-0}" >"$lab/enough.new"
  mv "$lab/enough.new" "$lab/enough"
  wait "$load"
}
# Whether there were enough requests and few have failed: failed_at_most FAILURES [REQUESTS]
failed_at_most() {
  # shellcheck disable=SC2016 # awk's own variables
  awk -v most="$1" -v least="${2:-300}" '/requests/ {print; good = $1 >= least && $3 <= most} END {exit !good}' "$lab/load" || {
    cat "$lab/load"
    return 1
  }
}
