#!/usr/bin/env bash
# NGINX on Millrace between clients and what stands behind it, on the kernel's loopback, over a link and over the network:
# connections that are kept, WebSocket, TCP, the client's address in logs and limits and behind other proxies.
. "$(dirname "$0")/lab.sh"
. "$(dirname "$0")/serve/serve.sh"
. "$(dirname "$0")/serve/nginx.sh"
has nginx || skip "no nginx: scripts/setup"
one_host
on a ip address add 10.0.1.3/24 dev left
start_serving
data 3000000 3 >"$served/files/body"
data 1000000 4 >"$served/files/1000000"
echo one >"$served/files/one"
chmod -R a+rX "$served"

# Behind it: programs on the kernel's loopback and on host a, and an NGINX of the router's on Millrace. Each has an HTTP
# server that counts the requests of a connection, on port 8080, and an echo of bytes and bodies, on port 9000.
for place in 'router 127.0.0.1' 'a 10.0.1.2'; do
  read -r host address <<<"$place"
  exec_on "$host" "$python" "$lab_root/lab/serve/backend" "$address" 9000 2>"$served/logs/backend-$host" &
  within 15 on "$host" curl -s -o /dev/null "http://$address:9000/" || fail "no backend at $address: $(cat "$served/logs/backend-$host")"
done
behind() {
  cat <<END
  server {
    listen $1;
    keepalive_timeout 600;
    location = /which { return 200 "$2 \$connection_requests\n"; }
    location = /peer { return 200 "\$proxy_protocol_addr \$remote_addr\n"; }
    location / { root $served/files; }
    location /echo { proxy_pass http://127.0.0.1:9000; proxy_http_version 1.1; client_max_body_size 10m;
      proxy_set_header Upgrade \$http_upgrade; proxy_set_header Connection \$http_connection; }
  }
END
}
on_a() { exec_on a "$@"; }
plain() { exec_on router "$@"; }
nginx kernel 'daemon off; worker_processes 1; user www-data;' plain < <(behind 127.0.0.1:8080 kernel)
nginx far 'daemon off; worker_processes 1; user www-data;' on_a < <(behind 10.0.1.2:8080 far)
nginx linked 'daemon off; worker_processes 1; user www-data;' < <(behind 10.0.1.1:8080 linked; behind '10.0.1.1:8081 proxy_protocol' linked)

stream=/usr/lib/nginx/modules/ngx_stream_module.so
nginx_name=front
nginx front 'daemon off; worker_processes 2; user www-data;' serve logs <<END
  log_format ends '\$remote_addr \$remote_port \$server_addr \$server_port \$uri';
  access_log $served/logs/access ends;
  limit_conn_zone \$binary_remote_addr zone=conns:1m;
  limit_req_zone \$binary_remote_addr zone=reqs:1m rate=1r/m;
  upstream kernel { server 127.0.0.1:8080; keepalive 4; }
  upstream linked { server 10.0.1.1:8080; keepalive 4; }
  upstream far { server 10.0.1.2:8080; keepalive 4; }
  map \$http_upgrade \$upgrade { default upgrade; '' ''; }
  proxy_http_version 1.1;
  proxy_set_header Upgrade \$http_upgrade;
  proxy_set_header Connection \$upgrade;
  client_max_body_size 10m;
  server {
    listen 80;
    listen [::]:80;
    location /kernel/ { proxy_pass http://kernel/; }
    location /linked/ { proxy_pass http://linked/; }
    location /far/ { proxy_pass http://far/; }
    location /kernel/echo { proxy_pass http://127.0.0.1:9000; }
    location /linked/echo { proxy_pass http://10.0.1.1:8080/echo; }
    location /far/echo { proxy_pass http://10.0.1.2:9000; }
    location /refused/ { proxy_pass http://10.0.1.2:9; }
    location /silent/ { proxy_pass http://10.0.1.99:80; proxy_connect_timeout 1s; }
    location /two/ { limit_conn conns 2; limit_rate 100k; alias $served/files/; }
    location = /one { limit_req zone=reqs; root $served/files; }
  }
  server {
    listen 83 proxy_protocol;
    set_real_ip_from 10.0.0.0/8;
    real_ip_header proxy_protocol;
    location / { return 200 "\$remote_addr:\$remote_port by \$realip_remote_addr\n"; }
  }
END
must "nginx serves" within 10 says '^kernel' get http://10.0.1.1/kernel/which

# 1. What stands behind: each way, connections that are kept, bodies there and back, files, WebSocket.
kept() {
  get -Z --parallel-max 4 "http://10.0.1.1/$1/which?[1-100]" >"$lab/kept" || return
  equal "$(grep -c "^$1 " "$lab/kept")" 100 && [ "$(awk '$2 == 1' "$lab/kept" | wc -l)" -le 20 ]
}
for way in kernel linked far; do
  check "$way: a hundred requests, over a few connections" kept "$way"
  check "$way: a file" same "$served/files/1000000" "http://10.0.1.1/$way/1000000"
  check "$way: a body there and back" same "$served/files/body" "http://10.0.1.1/$way/echo" --data-binary "@$served/files/body"
  check "$way: WebSocket" says '^echoed 300000$' on a "$python" "$lab_root/lab/serve/upgraded" 10.0.1.1 80 "/$way/echo"
done
sockets() {
  local pids=() way number
  for number in 1 2 3 4 5; do
    for way in kernel linked far; do
      on a "$python" "$lab_root/lab/serve/upgraded" 10.0.1.1 80 "/$way/echo" >"$lab/upgraded-$way-$number" 2>&1 &
      pids+=($!)
    done
  done
  wait "${pids[@]}"
  equal "$(cat "$lab"/upgraded-* | sort | uniq -c | tr -s ' ')" ' 15 echoed 300000'
}
check "15 WebSockets at once" sockets
if [ "$LAB_ROUTER" = millrace ]; then
  links() { value "show stacks" '[.[] | select(.name == "nginx") | .links | length] | add // 0'; }
  check "over links where there can be" test "$(links)" -ge 2
fi
check "who refuses is a bad gateway" equal "$(on a curl -s -o /dev/null -w '%{http_code}' http://10.0.1.1/refused/)" 502
check "who is silent times out" equal "$(on a curl -s -o /dev/null -w '%{http_code}' http://10.0.1.1/silent/)" 504

# 2. The client's address.
ends=$(get -o /dev/null -w '%{local_ip} %{local_port} %{remote_ip} %{remote_port} /kernel/which' http://10.0.1.1/kernel/which)
check "the log has both ends" within 10 grep -qx "$ends" "$served/logs/access"
get -g -o /dev/null 'http://[2001:db8:1::1]/kernel/which?six'
check "in IPv6 too" within 10 grep -q '^2001:db8:1::2 [0-9]* 2001:db8:1::1 80 ' "$served/logs/access"
code() { on a curl -s -o /dev/null -w '%{http_code}\n' --interface "$1" --max-time 20 "$2"; }
one_of_five() { equal "$(for _ in 1 2 3 4 5; do code 10.0.1.2 http://10.0.1.1/one; done | sort | uniq -c | tr -s ' \n' ' ')" ' 1 200 4 503 '; }
check "limit_req: one of five requests of an address" one_of_five
check "another address has its own" equal "$(code 10.0.1.3 http://10.0.1.1/one)" 200
pids=()
for number in 1 2; do
  exec_on a curl -s -o "$lab/limited.$number" --max-time 30 --interface 10.0.1.2 http://10.0.1.1/two/1000000 &
  pids+=($!)
done
both_served() { [ -s "$lab/limited.1" ] && [ -s "$lab/limited.2" ]; }
within 15 both_served || fail "nobody is served slowly"
check "limit_conn: the third connection of an address is refused" equal "$(code 10.0.1.2 http://10.0.1.1/two/1000000)" 503
exec_on a curl -s -o "$lab/limited.3" --max-time 30 --interface 10.0.1.3 http://10.0.1.1/two/1000000 &
wait "${pids[@]}" $!
for number in 1 2 3; do check "while the others get theirs, $number" cmp "$served/files/1000000" "$lab/limited.$number"; done
# A line of the PROXY protocol, and a request: proxied LINE
proxied() {
  on a "$python" -c '
import socket, sys
s = socket.create_connection(("10.0.1.1", 83), 10)
s.sendall(sys.argv[1].encode() + b"\r\nGET / HTTP/1.0\r\n\r\n")
print(s.makefile().read())' "$1"
}
check "proxy_protocol: the address that it says" says '^198\.51\.100\.7:4711 by 10\.0\.1\.2$' \
  proxied 'PROXY TCP4 198.51.100.7 203.0.113.1 4711 80'

# 3. TCP.
if [ -e "$stream" ]; then
  cat >"$served/stream.conf" <<END
load_module $stream;
daemon off; worker_processes 2; user www-data; pid $served/stream.pid; error_log $served/logs/stream info;
events { worker_connections 1024; }
stream {
  server { listen 7020; listen [::]:7020; proxy_pass 127.0.0.1:8080; }
  server { listen 7021 reuseport; proxy_pass 10.0.1.1:8080; }
  server { listen 7022; proxy_pass 10.0.1.2:8080; }
  server { listen 7023; proxy_pass 10.0.1.1:8081; proxy_protocol on; }
  server { listen 7024; proxy_pass 10.0.1.1:83; proxy_protocol on; }
}
END
  server stream 7024 nginx -p "$served" -c "$served/stream.conf"
  for way in 7020/kernel 7021/linked 7022/far; do
    check "stream, ${way#*/}" says "^${way#*/} 1\$" get "http://10.0.1.1:${way%/*}/which"
    check "stream, ${way#*/}: a file" same "$served/files/1000000" "http://10.0.1.1:${way%/*}/1000000"
  done
  check "stream over IPv6" says '^kernel 1$' get -g 'http://[2001:db8:1::1]:7020/which'
  check "stream tells the next one who asks" says '^10\.0\.1\.2 10\.0\.1\.1$' get http://10.0.1.1:7023/peer
  check "who logs it" says '^10\.0\.1\.2:[0-9]+ by 10\.0\.1\.1$' get http://10.0.1.1:7024/
  check "a dozen at once" get -Z --parallel-max 20 -o /dev/null 'http://10.0.1.1:702[0-2]/1000000?[1-4]'
  end "$server" QUIT
fi
end "$nginx" QUIT
