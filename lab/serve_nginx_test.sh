#!/usr/bin/env bash
# NGINX as users have it, on Millrace: binary upgrade, logs, large files, upstreams in all worlds, many connections.
. "$(dirname "$0")/lab.sh"
. "$(dirname "$0")/serve/serve.sh"
. "$(dirname "$0")/serve/nginx.sh"
command -v nginx >/dev/null || skip "no nginx: scripts/setup"
one_host
# A host behind another one: the router has a route to it.
host far
link right far 10.0.2.2/24 2001:db8:2::2/64
gateway far 10.0.2.1 2001:db8:2::1
port right 10.0.2.1/24 2001:db8:2::1/64
start_serving

for size in 1 65536 1000000; do data "$size" "$size" >"$served/files/$size"; done
seq 100000 >"$served/files/text"
truncate -s 1G "$served/files/sparse"
data 100000 7 | dd of="$served/files/sparse" bs=1000 seek=900000 conv=notrunc status=none
sparse=$(hash <"$served/files/sparse")
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$served/key" -out "$served/certificate" -days 2 \
  -subj /CN=10.0.1.1 >/dev/null 2>&1
chmod -R a+rX "$served"

# What stands behind: on the kernel's loopback, on the network, on a unix socket, on Millrace.
exec_on router "$lab_root/lab/serve/backend" 127.0.0.1 9000 2>"$served/logs/backend" &
exec_on far "$lab_root/lab/serve/backend" 10.0.2.2 9000 2>"$served/logs/far" &
within 5 on router curl -s http://127.0.0.1:9000/ >/dev/null || fail "no backend"
within 5 on far curl -s http://10.0.2.2:9000/ >/dev/null || fail "no backend behind the router"
nginx_name=inner
nginx inner 'daemon off; worker_processes 1; user nobody nogroup;' <<END
  keepalive_timeout 600;
  server { listen 8080; listen unix:$served/inner.socket; root $served/files; location = /who { return 200 "inner \$pid\n"; } }
END
inner=$nginx

nginx_name=user
nginx_connections=12000 nginx_events='accept_mutex on;'
nginx user 'worker_processes auto; user nobody nogroup; worker_rlimit_nofile 30000;' serve logs <<END
  upstream loopback { server 127.0.0.1:9000; keepalive 8; }
  upstream network { server 10.0.2.2:9000; keepalive 8; }
  upstream millrace { server 10.0.1.1:8080; keepalive 8; }
  upstream socket { server unix:$served/inner.socket; keepalive 8; }
  map \$http_upgrade \$connection_upgrade { default upgrade; '' ''; }
  limit_conn_zone \$binary_remote_addr zone=each:1m;
  access_log $served/logs/access;
  keepalive_timeout 600;
  keepalive_requests 100000;
  proxy_http_version 1.1;
  server {
    listen 80 backlog=4096;
    listen [::]:81 ipv6only=off;
    listen 82 reuseport;
    listen unix:$served/user.socket;
    listen 443 ssl http2;
    ssl_certificate $served/certificate;
    ssl_certificate_key $served/key;
    ssl_session_cache shared:tls:1m;
    gzip on;
    gzip_types text/plain;
    root $served/files;
    location = /pid { return 200 "\$pid\n"; }
    location = /hello { return 200 "hello\n"; }
    location /sent/ { alias $served/files/; sendfile on; }
    location /copied/ { alias $served/files/; sendfile off; }
    location /threads/ { alias $served/files/; sendfile on; aio threads; }
    location /both/ { alias $served/files/; sendfile off; aio threads; }
    location /one/ { alias $served/files/; limit_conn each 1; limit_rate 300k; }
    location /loopback/ { proxy_pass http://loopback; proxy_set_header Connection \$connection_upgrade; proxy_set_header Upgrade \$http_upgrade; client_max_body_size 10m; }
    location /network/ { proxy_pass http://network; proxy_set_header Connection \$connection_upgrade; proxy_set_header Upgrade \$http_upgrade; client_max_body_size 10m; }
    location /millrace/ { proxy_pass http://millrace/; proxy_set_header Connection ''; }
    location /socket/ { proxy_pass http://socket/; proxy_set_header Connection ''; }
  }
END
must "nginx serves" within 10 same "$served/files/65536" http://10.0.1.1/65536

# 1. Files.
for way in sent copied threads both; do
  for size in 1 65536 1000000; do
    check "a file of $size bytes, $way" same "$served/files/$size" "http://10.0.1.1/$way/$size"
  done
done
whole() { equal "$(on a curl -s -S -f --max-time 60 "http://10.0.1.1/$1/sparse" | hash)" "$sparse"; }
for way in sent copied threads; do check "1 GB, $way" whole "$way"; done
check "gzip" same "$served/files/text" --compressed http://10.0.1.1/text
check "and it is compressed" says '^[Cc]ontent-[Ee]ncoding: gzip' get -D - -o /dev/null --compressed http://10.0.1.1/text

# 2. Listeners of all kinds.
check "a dual-stack listener over IPv4" equal "$(get http://10.0.1.1:81/hello)" hello
check "and over IPv6" equal "$(get -g 'http://[2001:db8:1::1]:81/hello')" hello
check "reuseport" equal "$(get http://10.0.1.1:82/hello)" hello
both_serve() {
  equal "$(get -Z --parallel-max 10 "http://10.0.1.1:82/pid?[1-60]" -H 'Connection: close' | sort -u | wc -l)" "$(nproc)"
}
check "by all workers" within 10 both_serve
check "a unix socket" equal "$(on router curl -s --unix-socket "$served/user.socket" http://a/hello)" hello
check "the kernel's loopback" equal "$(on router curl -s http://127.0.0.1/hello)" hello
resumed() {
  on a openssl s_client -connect 10.0.1.1:443 -tls1_2 -reconnect </dev/null 2>/dev/null | grep -c '^Reused, TLSv1.2'
}
check "TLS sessions are resumed" equal "$(resumed)" 5
check "HTTP/2" same "$served/files/1000000" -k --http2 https://10.0.1.1/1000000
check "many streams of HTTP/2" says '^0$' on a bash -c \
  'curl -s -k --http2 -Z --parallel-max 50 -o /dev/null -w "%{errormsg}" "https://10.0.1.1/65536?[1-100]"; echo $?'

# 3. Upstreams, each with connections that are kept.
data 3000000 9 >"$lab/body"
for world in loopback network; do
  check "a body goes to the $world and back" same "$lab/body" "http://10.0.1.1/$world/echo" --data-binary "@$lab/body"
done
for world in millrace socket; do
  check "a file comes from the $world" same "$served/files/1000000" "http://10.0.1.1/$world/1000000"
done
fifty() {
  equal "$(on a curl -s -f --max-time 30 -Z --parallel-max 20 -o /dev/null -w '%{http_code}\n' "http://10.0.1.1/$1?[1-100]" |
    sort | uniq -c | tr -s ' ')" ' 100 200'
}
for world in loopback/word network/word millrace/65536 socket/65536; do
  check "a hundred requests to ${world%/*}" fifty "$world"
done
for world in loopback network; do
  check "WebSocket through to the $world" says '^echoed 300000$' on a "$lab_root/lab/serve/upgraded" 10.0.1.1 80 "/$world/ws"
done

# 4. Limits.
exec_on a curl -s -o /dev/null http://10.0.1.1/one/1000000 &
first=$!
sleep 0.5
check "limit_conn refuses a second one" equal "$(on a curl -s -o /dev/null -w '%{http_code}' http://10.0.1.1/one/1)" 503
end "$first" TERM
again() { equal "$(on a curl -s -o /dev/null -w '%{http_code}' http://10.0.1.1/one/1)" 200; }
check "until the first has gone" within 5 again

# 5. Logs are reopened.
mv "$served/logs/access" "$served/logs/access.1"
kill -USR1 "$(cat "$served/user.pid")"
within 5 test -e "$served/logs/access"
get -o /dev/null http://10.0.1.1/hello?after
check "USR1 reopens logs" within 5 grep -q '/hello?after' "$served/logs/access"

# 6. A new binary takes over from the old one while clients are served, and back.
masters() { cat "$served/user.pid" "$served/user.pid.oldbin" 2>/dev/null; }
old=$(cat "$served/user.pid")
load
sleep 0.5
kill -USR2 "$old"
two_masters() { [ -e "$served/user.pid.oldbin" ] && [ "$(masters | wc -l)" = 2 ]; }
check "USR2 starts a new master" within 10 two_masters
new=$(cat "$served/user.pid")
by_new() { [ -n "$(pgrep -P "$new")" ] && get -Z --parallel-max 10 'http://10.0.1.1/pid?[1-40]' -H 'Connection: close' | sort -u | grep -q -F -x -f <(pgrep -P "$new"); }
check "whose workers serve too" within 10 by_new
kill -WINCH "$old"
only_new() {
  local answering
  answering=$(get -Z --parallel-max 10 'http://10.0.1.1/pid?[1-40]' -H 'Connection: close' | sort -u)
  [ -n "$answering" ] && [ -z "$(grep -v -F -x -f <(pgrep -P "$new") <<<"$answering")" ]
}
check "after WINCH only the new ones do" within 10 only_new
kill -QUIT "$old"
check "the old master ends" within 10 fails alive "$old"
check "the new one serves" only_new
enough
nginx=$new
check "an upgrade fails at most 6 requests of hundreds" few_failures 6

# 7. Ten thousand connections.
ulimit -n 30000 2>/dev/null
check "10,000 connections that are kept" says '^served 10000$' on a "$lab_root/lab/serve/many" 10.0.1.1 80 10000 /hello
check "and the server is as it was" within 5 same "$served/files/65536" http://10.0.1.1/65536

kill -QUIT "$new"
check "an orderly end" within 15 fails alive "$new"
check "after which connections are refused" within 2 says 'Connection refused|Failed to connect' get http://10.0.1.1/hello
end "$inner" QUIT
