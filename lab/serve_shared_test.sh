#!/usr/bin/env bash
# Programs whose stack is run by a stack worker of the daemon: NGINX with several workers, redis, iperf3; reload, a killed worker,
# a restart of the daemon.
. "$(dirname "$0")/lab.sh"
. "$(dirname "$0")/serve/serve.sh"
. "$(dirname "$0")/serve/nginx.sh"
command -v nginx >/dev/null || skip "no nginx: scripts/setup"
one_host
start_serving
export MILLRACE_PLACEMENT=shared

for size in 1 65536 10000000; do data "$size" "$size" >"$served/files/$size"; done
data 5000000 7 >"$lab/upload"
chmod -R a+rX "$served"
stack_workers() { cat "/proc/$daemon/task"/*/comm | grep -c '^stack-'; }

nginx_name=workers
nginx workers 'daemon off; worker_processes 2; user www-data;' execute <<END
  server {
    listen 80;
    listen [::]:80;
    client_max_body_size 100m;
    location = /pid { return 200 "\$pid\n"; }
    location = /hello { return 200 "hello from \$server_addr:\$server_port\n"; }
    location / { root $served/files; sendfile on; }
    location /upload/ { alias $served/temp/; dav_methods PUT; }
  }
END
both_new_serve() { changed && both_serve 80; }
must "curl gets a page" within 15 says '^hello from 10\.0\.1\.1:80$' get http://10.0.1.1/hello
[ "$LAB_ROUTER" = kernel ] || check "a stack worker of the daemon runs the stacks" equal "$(stack_workers)" 1
check "over IPv6" says '^hello from .*2001:db8:1::1.*:80$' get -g 'http://[2001:db8:1::1]/hello'
for size in 1 65536 10000000; do
  check "a file of $size bytes" same "$served/files/$size" "http://10.0.1.1/$size"
done
check "an upload of 5 MB" get -T "$lab/upload" http://10.0.1.1/upload/five
check "is what was sent" cmp "$lab/upload" "$served/temp/five"
check "three requests on one connection" says '^1-0-0-$' get -w '%{num_connects}-' \
  -o /dev/null http://10.0.1.1/1 -o /dev/null http://10.0.1.1/65536 -o /dev/null http://10.0.1.1/hello
check "200 requests, 50 at a time" many
[ "$LAB_ROUTER" = kernel ] || check "both workers take connections" within 30 both_serve 80
workers >"$lab/old"
kill -HUP "$nginx"
check "after a reload, new workers serve" within 30 both_new_serve
victim=$(workers | head -n 1)
kill -KILL "$victim"
both_serve_again() { two_workers && fails says "^$victim\$" workers && both_serve 80; }
check "after a worker was killed, both serve again" within 30 both_serve_again
if [ "$LAB_ROUTER" = millrace ]; then
  exec_on a curl -s -o /dev/null --limit-rate 1M http://10.0.1.1/10000000 &
  slow=$!
  check "millrace show sessions has a connection" within 5 says ':80 .*nginx' millrace show sessions
  end "$slow"
  check "the daemon restarts" millrace restart
  check "and the server is reached again" within 15 says '^hello ' get http://10.0.1.1/hello
fi
end "$nginx" QUIT
check "when nginx ends, connections are refused" within 15 says 'Connection refused|Failed to connect' \
  get http://10.0.1.1/hello

if has redis-server; then
  server redis 6379 redis-server --port 6379 --bind 10.0.1.1 --protected-mode no --save '' --dir "$served/temp"
  check "redis: 20,000 requests over 50 connections" says '^"SET","[1-9]' \
    on a redis-benchmark -h 10.0.1.1 -t set -n 20000 -c 50 --csv
  end "$server" TERM
fi
if has iperf3; then
  server iperf3 5201 iperf3 -s
  check "iperf3: to the server" within 20 on a iperf3 -c 10.0.1.1 -n 20M
  check "iperf3: from it" within 20 on a iperf3 -c 10.0.1.1 -n 20M -R
  end "$server" TERM
fi

exec_on a "$python" -m http.server -d "$served/files" -b 10.0.1.2 8000 >"$served/logs/far" 2>&1 &
far=$!
within 15 opens a 8000 || fail "no server in host a"
fetch() { (serve curl -s -S -f --max-time 20 "$@"); }
check "curl on a stack worker gets a file" equal "$(fetch http://10.0.1.2:8000/10000000 | hash)" "$(hash <"$served/files/10000000")"
check "and hears that a connection is refused" says 'refused|Failed to connect' fetch http://10.0.1.2:81/
end "$far"

# Programs of the same host, on a stack worker and inline: there are no links to a stack worker, nobody is offered one; two on one
# worker meet there.
if [ "$LAB_ROUTER" = millrace ]; then
  for placements in 'shared inline' 'inline shared' 'shared shared'; do
    read -r there here <<<"$placements"
    server "$there" 8001 env MILLRACE_DEBUG=1 "MILLRACE_PLACEMENT=$there" python3 -m http.server -d "$served/files" -b 10.0.1.1 8001
    near=$server
    neighbour() { (serve env MILLRACE_DEBUG=1 "MILLRACE_PLACEMENT=$here" curl -s -S -f --max-time 20 "$@" 2>"$served/logs/curl"); }
    check "curl $here gets a file from a server $there" equal \
      "$(neighbour http://10.0.1.1:8001/10000000 | hash)" "$(hash <"$served/files/10000000")"
    if [ "$placements" = 'shared shared' ]; then
      serve env "MILLRACE_PLACEMENT=$here" curl -s -o /dev/null --limit-rate 1M http://10.0.1.1:8001/10000000 &
      slow=$!
      check "their worker carries the connections between them" within 5 says ' link ' millrace show sessions --port 8001
      end "$slow"
    fi
    check "and no link is made" equal "$(cat "$served/logs/curl" "$served/logs/$there" | grep 'links are not wanted')" ''
    end "$near"
  done
fi
[ "$LAB_ROUTER" = kernel ] || check "no program has a stack any more" within 15 no_stacks
