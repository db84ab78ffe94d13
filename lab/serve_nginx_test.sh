#!/usr/bin/env bash
# NGINX as users have it, on Millrace: large files in every way, listeners of all kinds, resumed TLS, upstreams.
. "$(dirname "$0")/lab.sh"
. "$(dirname "$0")/serve/serve.sh"
. "$(dirname "$0")/serve/nginx.sh"
command -v nginx >/dev/null || skip "no nginx: scripts/setup"
one_host
start_serving

for size in 1 65536 1000000; do data "$size" "$size" >"$served/files/$size"; done
seq 100000 >"$served/files/text"
truncate -s 1G "$served/files/sparse"
data 100000 7 | dd of="$served/files/sparse" bs=1000 seek=900000 conv=notrunc status=none
sparse=$(hash <"$served/files/sparse")
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$served/key" -out "$served/certificate" -days 2 \
  -subj /CN=10.0.1.1 >/dev/null 2>&1
chmod -R a+rX "$served"

# What stands behind: on the kernel's loopback, and on a unix socket.
exec_on router "$python" "$lab_root/lab/serve/backend" 127.0.0.1 9000 2>"$served/logs/backend" &
within 15 on router curl -s http://127.0.0.1:9000/ >/dev/null || fail "no backend"
nginx_name=inner
nginx inner 'daemon off; worker_processes 1; user nobody nogroup;' <<END
  keepalive_timeout 600;
  server { listen 8080; listen unix:$served/inner.socket; root $served/files; location = /who { return 200 "inner \$pid\n"; } }
END
inner=$nginx

nginx_name=user
nginx_connections=12000 nginx_events='accept_mutex on;'
nginx user 'daemon off; worker_processes auto; user nobody nogroup; worker_rlimit_nofile 30000;' serve logs <<END
  upstream loopback { server 127.0.0.1:9000; keepalive 8; }
  upstream socket { server unix:$served/inner.socket; keepalive 8; }
  map \$http_upgrade \$connection_upgrade { default upgrade; '' ''; }
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
    location /loopback/ { proxy_pass http://loopback; proxy_set_header Connection \$connection_upgrade; proxy_set_header Upgrade \$http_upgrade; client_max_body_size 10m; }
    location /socket/ { proxy_pass http://socket/; proxy_set_header Connection ''; }
  }
END
must "nginx serves" within 20 same "$served/files/65536" http://10.0.1.1/65536

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
check "by all workers" within 30 both_serve 82
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
check "a body goes to the kernel's loopback and back" \
  same "$lab/body" http://10.0.1.1/loopback/echo --data-binary "@$lab/body"
check "a file comes from a unix socket" same "$served/files/1000000" http://10.0.1.1/socket/1000000
hundred() {
  equal "$(on a curl -s -f --max-time 30 -Z --parallel-max 20 -o /dev/null -w '%{http_code}\n' "http://10.0.1.1/$1?[1-100]" |
    sort | uniq -c | tr -s ' ')" ' 100 200'
}
check "a hundred requests to the kernel's loopback" hundred loopback/word

end "$nginx" QUIT
end "$inner" QUIT
