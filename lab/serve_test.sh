#!/usr/bin/env bash
# NGINX as the distribution has it, on Millrace's own stack: pages, files, uploads, proxy, master and workers.
. "$(dirname "$0")/lab.sh"
. "$(dirname "$0")/serve/serve.sh"
. "$(dirname "$0")/serve/nginx.sh"
command -v nginx >/dev/null || skip "no nginx: scripts/setup"
one_host
start_serving

for size in 1 65536 10000000; do data "$size" "$size" >"$served/files/$size"; done
chmod -R a+rX "$served"

# 1. The milestone: one process, one page.
nginx_name=single
nginx single 'daemon off; master_process off;' <<END
  server {
    listen 80;
    listen [::]:80;
    listen 10.0.1.1:8000;
    location = /hello { return 200 "hello from \$server_addr:\$server_port\n"; }
    location / { root $served/files; sendfile on; }
    location /copied/ { alias $served/files/; sendfile off; }
    location /upload/ { alias $served/temp/; dav_methods PUT; client_max_body_size 100m; }
  }
END
must "curl gets a page from preloaded nginx" says '^hello from 10\.0\.1\.1:80$' get http://10.0.1.1/hello
if [ "$LAB_ROUTER" = millrace ]; then
  check "the kernel has no such address" fails on router ip route get 10.0.1.2
  check "millrace show listeners has it" says '(0\.0\.0\.0|\*):80 .*nginx' millrace show listeners
  check "and the one of a single address" within 10 says '10\.0\.1\.1:8000 ' millrace show listeners
fi
check "over IPv6" says '^hello from .*2001:db8:1::1.*:80$' get -g 'http://[2001:db8:1::1]/hello'
check "on a port of a single address" says '^hello from 10\.0\.1\.1:8000$' get http://10.0.1.1:8000/hello
check "the same server is reached over the kernel's loopback" says '^hello from 127\.0\.0\.1:80$' \
  on router curl -s -S --max-time 5 http://127.0.0.1/hello
check "where nobody listens, connections are refused" says 'Connection refused|Failed to connect' get http://10.0.1.1:81/
before=$(kernel_segments)
for size in 1 65536 10000000; do
  check "a file of $size bytes by sendfile" same "$served/files/$size" "http://10.0.1.1/$size"
  check "and copied" same "$served/files/$size" "http://10.0.1.1/copied/$size"
done
check "over IPv6 as well" same "$served/files/10000000" -g 'http://[2001:db8:1::1]/10000000'
[ "$LAB_ROUTER" = kernel ] || check "the kernel saw none of it" equal "$(kernel_segments)" "$before"
check "a range of a file" equal "$(get -r 1000000-1999999 http://10.0.1.1/10000000 | hash)" \
  "$(tail -c +1000001 "$served/files/10000000" | head -c 1000000 | hash)"
check "HEAD" says '^Content-Length: 65536' get -I http://10.0.1.1/65536
check "404" says '404' get http://10.0.1.1/nothing
check "three requests on one connection" says '^1-0-0-$' get -w '%{num_connects}-' \
  -o /dev/null http://10.0.1.1/1 -o /dev/null http://10.0.1.1/65536 -o /dev/null http://10.0.1.1/hello
data 5000000 7 >"$lab/upload"
check "an upload of 5 MB" get -T "$lab/upload" http://10.0.1.1/upload/five
check "is what was sent" cmp "$lab/upload" "$served/temp/five"
check "a slow reader gets all" same "$served/files/10000000" http://10.0.1.1/10000000 --limit-rate 5M
check "200 requests, 50 at a time" many
if [ "$LAB_ROUTER" = millrace ]; then
  server idle 81 "$python" -c 'import socket, time; s = socket.create_server(("10.0.1.1", 81)); time.sleep(60)'
  check "the daemon restarts" millrace restart
  check "and the server is reached again" within 15 says '^hello ' get http://10.0.1.1/hello
  check "the new daemon knows a server that is in no socket call, too" within 15 says ':81 .*python' millrace show listeners
  end "$server" TERM
fi
end "$nginx" TERM
check "when nginx ends, connections are refused" within 15 says 'Connection refused|Failed to connect' \
  get http://10.0.1.1/hello
[ "$LAB_ROUTER" = kernel ] || check "and the listeners are gone" within 15 fails says ':80 ' millrace show listeners

# Clients from the network do not keep the host's own waiting.
cat >"$served/turns.py" <<'END'
import os, socket, sys, time
listener = socket.create_server(("", 82), backlog=100)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.05)
for place in range(41):
    if listener.accept()[1][0] == "127.0.0.1":
        print("place", place, flush=True)
END
cat >"$served/hold.py" <<'END'
import socket, sys, time
kept = [socket.create_connection((sys.argv[1], 82), 10) for _ in range(int(sys.argv[2]))]
print("held", flush=True)
time.sleep(60)
END
server turns 82 "$python" "$served/turns.py" "$served/turn"
exec_on router "$python" "$served/hold.py" 127.0.0.1 1 >"$lab/one" &
one=$!
check "a client on the host waits to be accepted" within 5 grep -q held "$lab/one"
exec_on a "$python" "$served/hold.py" 10.0.1.1 40 >"$lab/forty" &
forty=$!
check "and forty from the network" within 10 grep -q held "$lab/forty"
touch "$served/turn"
check "the one is among the first to be accepted" within 5 says '^place ([0-9]|1[0-6])$' cat "$served/logs/turns"
for pid in $one $forty $server; do end "$pid"; done

# 2. As a user has it: a master and two workers without root, behind them what the kernel serves.
exec_on router "$python" "$lab_root/lab/serve/backend" 127.0.0.1 9000 2>"$served/logs/backend" &
backend=$!
within 15 on router curl -s http://127.0.0.1:9000/ >/dev/null || fail "no backend: $(cat "$served/logs/backend")"
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$served/key" -out "$served/certificate" -days 2 \
  -subj /CN=10.0.1.1 >/dev/null 2>&1
nginx_name=workers
nginx workers 'daemon off; worker_processes 2; user www-data;' execute <<END
  upstream back { server 127.0.0.1:9000; keepalive 4; }
  map \$http_upgrade \$connection_upgrade { default upgrade; '' ''; }
  server {
    listen 80;
    listen [::]:80;
    listen 443 ssl http2;
    ssl_certificate $served/certificate;
    ssl_certificate_key $served/key;
    gzip on;
    gzip_types text/plain;
    client_max_body_size 100m;
    location = /pid { return 200 "\$pid\n"; }
    location / { root $served/files; sendfile on; }
    location /upload/ { alias $served/temp/; dav_methods PUT; }
    location /back/ {
      proxy_pass http://back;
      proxy_http_version 1.1;
      proxy_set_header Upgrade \$http_upgrade;
      proxy_set_header Connection \$connection_upgrade;
    }
  }
END
if [ "$LAB_ROUTER" = millrace ]; then
  check "millrace exec says where a server is reached" \
    says "^millrace: nginx runs on Millrace's stack; if it listens, the network reaches it at 10\.0\.1\.1" \
    cat "$served/logs/workers.stderr"
  check "and says nothing untrue of a client" \
    says "^millrace: curl runs on Millrace's stack; if it listens," execute curl --version
fi
must "master and two workers serve" within 15 same "$served/files/65536" http://10.0.1.1/65536
# The kernel wakes whoever slept last.
[ "$LAB_ROUTER" = kernel ] || check "both workers take connections" within 30 both_serve 80
check "a body goes through the proxy to the kernel's stack and back" \
  same "$lab/upload" http://10.0.1.1/back/echo --data-binary "@$lab/upload"
check "small ones too" equal "$(get http://10.0.1.1/back/word -d 'a few words')" 'a few words'
check "TLS" same "$served/files/10000000" -k https://10.0.1.1/10000000
check "HTTP/2" says '^2 200$' get -k --http2 -o /dev/null -w '%{http_version} %{http_code}\n' \
  https://10.0.1.1/65536 -o /dev/null https://10.0.1.1/1
seq 100000 >"$served/files/text"
check "gzip" same "$served/files/text" --compressed http://10.0.1.1/text
check "an upgraded connection is a stream of bytes" says '^echoed 300000$' \
  on a "$python" "$lab_root/lab/serve/upgraded" 10.0.1.1 80 /back/ws

# 3. Nothing is lost while workers come and go.
load 80 "$served/files/65536"
sleep 1
for round in 1 2 3; do
  workers >"$lab/old"
  kill -HUP "$nginx"
  check "reload $round: new workers" within 20 changed
  sleep 0.5
done
enough 300
check "three reloads fail none of hundreds of requests" failed_at_most 0
# Uploads at a crawl: what such a client sends after its worker's end is answered by a reset.
crawl() { exec_on a curl -s -S --max-time 45 --limit-rate 200K -T "$served/files/10000000" "http://10.0.1.1/upload/$1"; }
crawl one 2>"$lab/victim" &
victim=$!
crawl two 2>"$lab/survivor" &
survivor=$!
# NGINX has a file for each when it has read more than its buffer holds.
uploading() { [ "$(find "$served/temp/client_body" -type f | wc -l)" -ge 2 ]; }
within 15 uploading || fail "nobody uploads"
workers >"$lab/old"
kill -HUP "$nginx"
check "after a reload only new workers get connections" within 15 only_new 80
check "while old ones keep what they have" alive "$survivor"
comm -12 <(workers) "$lab/old" >"$lab/shutting"
while read -r pid; do kill -KILL "$pid"; done <"$lab/shutting"
for pid in $victim $survivor; do
  check "the connection of a killed worker ends at once" within 8 fails alive "$pid"
  wait "$pid"
  check "with an error" fails equal $? 0
done
check "its end leaves the others alone" only_new 80
workers >"$lab/old"
while read -r pid; do kill -KILL "$pid"; done <"$lab/old"
check "the master replaces killed workers" within 15 changed
check "and they serve" within 15 only_new 80
kill -QUIT "$nginx"
wait "$nginx"
check "an orderly end" equal $? 0
check "after which connections are refused" within 15 says 'Connection refused|Failed to connect' get http://10.0.1.1/pid
end "$backend"
if [ "$LAB_ROUTER" = millrace ]; then
  check "nothing is left in the daemon" within 15 no_stacks

  # 4. The line of `millrace exec` is about the stack that the program will ask for. Inline it takes 8 MiB for each worker of the
  # daemon's and 4 more, on a stack worker 40 more than that.
  line() { on router "$LAB_BIN/millrace" --socket "$lab_socket" exec --library "$preload" "$@" curl --version; }
  least=$((8 * $(value "show workers" length))) fits=$((least + 24))
  config '[sessions]' "memory = $fits"
  check "a reload with less memory for processes" millrace reload
  check "is enough for a program with its own stack" says "^millrace: curl runs on Millrace's stack;" line
  refused="^millrace: curl runs on the kernel's stack: .*sessions\.memory allows one user"
  check "and too little for one on a stack worker, which is said" says "$refused $fits;" line --placement shared
  chosen() { MILLRACE_PLACEMENT=shared line "$@"; }
  check "wherever that is chosen" says "$refused $fits;" chosen
  sed -i "s/^memory = $fits\$/memory = $least/" "$lab_config"
  check "a reload with still less" millrace reload
  check "is too little for any, which is said" says "$refused $least;" line
fi
