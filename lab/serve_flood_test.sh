#!/usr/bin/env bash
# SYNs from addresses that do not exist: whoever does exist is served meanwhile. A program that is stopped has its stack worker
# complete handshakes for it.
. "$(dirname "$0")/lab.sh"
. "$(dirname "$0")/serve/serve.sh"
. "$(dirname "$0")/serve/nginx.sh"
command -v nginx >/dev/null || skip "no nginx: scripts/setup"
one_host
# What is sent to these addresses reaches host a, which has none of them.
route 198.51.100.0/24 10.0.1.2
start_serving
backlog=64
start_nginx() {
  nginx_name=$1
  nginx "$1" 'daemon off; worker_processes 1; user www-data;' <<END
  server { listen 80 backlog=$backlog; location = /hello { return 200 "hello\n"; } }
END
  must "nginx serves ($1)" within 10 says '^hello$' get http://10.0.1.1/hello
}
# What nginx's stacks have counted: counted NAME
counted() { value "show stacks" "[.[] | select(.name == \"nginx\") | .tcp.$1] | add // 0"; }

# 1. A flood.
start_nginx flooded
exec_on a "$python" "$lab_root/lab/serve/syns" 10.0.1.1 80 90 >"$lab/syns" 2>&1 &
flood=$!
within 15 grep -q '^sending' "$lab/syns" || fail "no flood: $(cat "$lab/syns")"
sleep 1.5
for number in 1 2 3 4 5; do check "served during the flood, $number" says '^hello$' get http://10.0.1.1/hello; done
check "which goes on" alive "$flood"
if [ "$LAB_ROUTER" = millrace ]; then
  half_open=$(value "show sessions --state syn-received --limit 1" .total)
  check "no more handshakes are kept than the backlog allows" test "$half_open" -le $((backlog + 1))
fi
sleep 4
kill -TERM "$flood"
wait "$flood"
check "with tens of thousands of SYNs" says '^sent [0-9]{5,}$' cat "$lab/syns"
if [ "$LAB_ROUTER" = millrace ]; then
  check "thousands of which were answered by cookies" test "$(counted syn_cookies)" -ge 2000
  check "none of which takes a place in the accept queue" equal "$(counted accept_queue_full)" 0
fi
check "served afterwards" says '^hello$' get http://10.0.1.1/hello
end "$nginx" QUIT

# 2. On a stack worker.
export MILLRACE_PLACEMENT=shared
within 15 fails opens router 80
start_nginx stopped
stopped=("$nginx" "$(workers)")
kill -STOP "${stopped[@]}"
check "handshakes are completed while the program is stopped" on a timeout 15 bash -c ': </dev/tcp/10.0.1.1/80'
kill -CONT "${stopped[@]}"
check "and it serves when it goes on" within 15 says '^hello$' get http://10.0.1.1/hello
end "$nginx" QUIT
