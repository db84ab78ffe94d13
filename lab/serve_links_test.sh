#!/usr/bin/env bash
# Programs on Millrace that connect to programs on Millrace on the same host: their packets go over a link, past the daemon.
. "$(dirname "$0")/lab.sh"
. "$(dirname "$0")/serve/serve.sh"
. "$(dirname "$0")/serve/nginx.sh"
[ "$LAB_ROUTER" = millrace ] || skip "the kernel has no links"
one_host
start_serving
# A client's command, on Millrace: near COMMAND...
near() { on router env LD_PRELOAD="$preload" "$@"; }
# What stacks of that name have sent through the daemon: sent NAME
sent() { value "show stacks" "[.[] | select(.name == \"$1\") | .sent] | add // 0"; }
# Whether a report of wrk's tells of answers, and of no errors: faultless FILE
faultless() { says '[1-9][0-9]* requests in' cat "$1" && fails grep -E 'Socket errors|Non-2xx' "$1"; }
# How many links stacks of that name have.
links() { value "show stacks" "[.[] | select(.name == \"$1\") | .links | length] | add // 0"; }
# A command during which a server sends next to nothing through the daemon (which ends what a client leaves when it exits):
# past_daemon NAME COMMAND...
past_daemon() {
  local name=$1 before after
  shift
  before=$(sent "$name")
  "$@" || return
  after=$(sent "$name")
  [ $((after - before)) -le 200 ] || { echo "$name sent $((after - before)) packets through the daemon"; return 1; }
}

cat >"$served/web.py" <<'END'
import http.server, socketserver, sys, os
class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *a): pass
class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
os.chdir(sys.argv[2])
Server(("10.0.1.1", int(sys.argv[1])), Handler).serve_forever()
END
data 5000000 7 >"$served/files/five"
echo hello >"$served/files/hello"
chmod -R a+rX "$served"

# 1. One server, one client.
server web 8001 "$python" "$served/web.py" 8001 "$served/files"
page() { near curl -s -S -f --max-time 20 "$@"; }
# The first connection of a process is introduced while its peer does not know the link yet.
check "a page comes over a link" past_daemon python3 says '^hello$' page http://10.0.1.1:8001/hello
five() { equal "$(page http://10.0.1.1:8001/five | hash)" "$(hash <"$served/files/five")"; }
check "5 MB come over a link, byte by byte" past_daemon python3 five
no_links() { equal "$(links python3)" 0; }
check "links end with their clients" within 15 no_links
check "without links it goes by the daemon" says '^hello$' near env MILLRACE_LINKS=off curl -s --max-time 20 http://10.0.1.1:8001/hello
check "who does not listen refuses" fails page http://10.0.1.1:8099/
end "$server" TERM

# 2. NGINX with two workers, wrk.
if has nginx && has wrk; then
  nginx back 'daemon off; worker_processes 2;' <<END
  keepalive_requests 100000000;
  server { listen 10.0.1.1:8003; location / { return 200 "upstream\n"; } }
END
  back=$nginx
  nginx front 'daemon off; worker_processes 2;' <<END
  keepalive_requests 100000000;
  upstream back { server 10.0.1.1:8003; keepalive 8; }
  server {
    listen 10.0.1.1:8002;
    location / { return 200 "page\n"; }
    location = /hello { root $served/files; }
    location /up { proxy_pass http://back; proxy_http_version 1.1; proxy_set_header Connection ""; }
  }
END
  check "NGINX answers wrk over links" past_daemon nginx \
    says '[1-9][0-9]* requests in' near wrk -t1 -c8 -d2 http://10.0.1.1:8002/
  loaded() { near wrk -t1 -c8 -d2 "$1" >"$lab/loaded" && faultless "$lab/loaded"; }
  check "and loses none of them" loaded http://10.0.1.1:8002/
  check "proxy_pass to another NGINX goes over a link" past_daemon nginx says '^upstream$' page http://10.0.1.1:8002/up
  check "and under load" loaded http://10.0.1.1:8002/up
  # Reload under load, with a connection for each request. As over the network, the moment in which a worker closes its
  # listener may cost a few.
  load 8002 "$served/files/hello" near
  for round in 1 2 3; do
    sleep 1
    workers >"$lab/old"
    kill -HUP "$nginx"
    check "reload $round: new workers" within 20 changed
  done
  enough 50
  check "reloads under load over links fail two of hundreds at most" failed_at_most 2 50
  # The daemon restarts: what is connected goes on.
  # A connection that stands still for longer than a busy machine may is an error, for which there is time.
  near wrk -t1 -c8 -d10 --timeout 5 http://10.0.1.1:8002/ >"$lab/restarted" 2>&1 &
  load=$!
  sleep 1
  kill -KILL "$daemon"; wait "$daemon" 2>/dev/null
  sleep 1
  start
  wait "$load"
  check "links outlive the daemon" faultless "$lab/restarted"
  # The clients of a worker that is killed learn it, and connect anew.
  within 10 says '^page$' page http://10.0.1.1:8002/
  near wrk -t1 -c8 -d4 http://10.0.1.1:8002/ >"$lab/killed" 2>&1 &
  load=$!
  sleep 1
  check "a worker is killed" kill -KILL "$(workers | head -n 1)"
  wait "$load"
  check "its clients go on with the others" says '[1-9][0-9]* requests in' cat "$lab/killed"
  end "$nginx" TERM
  end "$back" TERM
fi

# 3. redis and its benchmark.
if has redis-server; then
  server redis 6379 redis-server --port 6379 --bind 10.0.1.1 --protected-mode no --save '' --dir "$served/temp"
  check "redis-benchmark over links" past_daemon redis-server says '^"SET","[1-9]' \
    near redis-benchmark -h 10.0.1.1 -t set -n 20000 -c 50 --csv
  end "$server" KILL
fi

# 4. A connection that moves leaves its link.
cc -std=gnu11 -O1 -Wall -Wextra -Werror -o "$lab/mover" "$lab_root/lab/serve/mover.c" || fail "mover does not build"
server fork 7002 "$lab/mover" fork 7002
talk() { near "$python" "$lab_root/lab/serve/talk" 10.0.1.1 "$@"; }
check "a server that forks for each connection" says '^100 answers$' talk 7002 5 20
end "$server" TERM
server half 7003 "$lab/mover" half 7003 3
check "two processes take turns, and nothing is lost" equal \
  "$(talk 7003 --say 'a\nb\nc\nd\ne\nf\ng\n' | tr '\n' ';')" \
  'parent: a;child: b;parent: c;child: d;parent: e;child: f;parent: g;end;'
end "$server" TERM
server pass 7005 "$lab/mover" pass 7005
check "a descriptor that is passed to another process" equal "$(talk 7005 --say 'a\nb\nc\n' | tr '\n' ';')" \
  'parent: a;child: b;child: c;end;'
end "$server" TERM
check "nothing is left" within 15 no_stacks
