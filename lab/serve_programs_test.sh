#!/usr/bin/env bash
# Programs of the distribution on Millrace's stack, unchanged, as servers and as clients: redis, memcached, HAProxy, iperf3,
# Python, curl, wrk. The other end is a program on the kernel's stack.
. "$(dirname "$0")/lab.sh"
. "$(dirname "$0")/serve/serve.sh"
one_host
start_serving

if has redis-server; then
  server redis 6379 redis-server --port 6379 --bind 10.0.1.1 ::* --protected-mode no --save '' --dir "$served/temp"
  redis() { on a redis-cli -h 10.0.1.1 --no-raw "$@"; }
  check "redis: PING" says PONG redis PING
  check "redis: over IPv6" says PONG on a redis-cli -h 2001:db8:1::1 PING
  data 3000000 11 | base64 -w 0 >"$lab/value"
  check "redis: a value of 4 MB goes in" says OK on a sh -c "redis-cli -h 10.0.1.1 -x SET large <'$lab/value'"
  check "redis: and comes out" equal "$(on a redis-cli -h 10.0.1.1 --raw GET large | tr -d '\n' | hash)" "$(hash <"$lab/value")"
  check "redis: 20,000 requests over 50 connections" says '^"SET","[1-9]' \
    on a redis-benchmark -h 10.0.1.1 -t set -n 20000 -c 50 --csv
  check "redis: pipelined" says '^"GET","[1-9]' on a redis-benchmark -h 10.0.1.1 -t get -n 50000 -c 10 -P 16 --csv
  check "redis: counted by INFO" says 'total_connections_received:[0-9]{2,}' redis INFO stats
  end "$server" TERM
fi

if has memcached; then
  server memcached 11211 memcached -u nobody -l 10.0.1.1 -p 11211 -U 0 -t 2
  check "memcached: values of many sizes, two threads, eight clients" says '^memcached 800$' on a python3 -c '
import hashlib, socket, threading
done = []
def client(number):
    s = socket.create_connection(("10.0.1.1", 11211), 10)
    f = s.makefile("rb")
    for n in range(100):
        value = hashlib.shake_128(f"{number}-{n}".encode()).digest(1 + n * n * 5)
        s.sendall(b"set k%d-%d 0 0 %d\r\n" % (number, n, len(value)) + value + b"\r\n")
        assert f.readline() == b"STORED\r\n"
        s.sendall(b"get k%d-%d\r\n" % (number, n))
        assert f.readline() == b"VALUE k%d-%d 0 %d\r\n" % (number, n, len(value))
        assert f.read(len(value) + 2) == value + b"\r\n" and f.readline() == b"END\r\n"
        done.append(n)
threads = [threading.Thread(target=client, args=(n,)) for n in range(8)]
for t in threads: t.start()
for t in threads: t.join()
print("memcached", len(done))'
  end "$server" TERM
fi

data 5000000 12 >"$served/files/five"
if has haproxy; then
  exec_on router "$python" "$lab_root/lab/serve/backend" 127.0.0.1 9000 2>"$served/logs/backend" &
  backend=$!
  within 15 opens router 9000 || fail "no backend"
  cat >"$served/haproxy.cfg" <<END
global
  maxconn 200
defaults
  mode http
  timeout connect 5s
  timeout client 10s
  timeout server 10s
frontend web
  bind 10.0.1.1:8080
  bind :::8080 v6only
  default_backend back
backend back
  server one 127.0.0.1:9000
END
  server haproxy 8080 haproxy -db -f "$served/haproxy.cfg"
  check "HAProxy: a page from behind it" says '^/some/path$' get http://10.0.1.1:8080/some/path
  check "HAProxy: over IPv6" says '^/six$' get -g 'http://[2001:db8:1::1]:8080/six'
  check "HAProxy: 5 MB there and back" same "$served/files/five" http://10.0.1.1:8080/ --data-binary "@$served/files/five"
  check "HAProxy: 100 requests, 20 at a time" \
    get -Z --parallel-max 20 -o /dev/null 'http://10.0.1.1:8080/[1-100]'
  end "$server" TERM
  # As distributions run it: a master, and a worker with a root and a user of its own.
  mkdir -p "$served/root"
  printf 'global\n  chroot %s\n  user nobody\n  group nogroup\n' "$served/root" >"$served/root.cfg"
  server haproxy 8080 haproxy -W -db -f "$served/root.cfg" -f "$served/haproxy.cfg"
  check "HAProxy: a worker in another root" says '^/some/path$' get http://10.0.1.1:8080/some/path
  end "$server" TERM
  end "$backend"
fi

if has iperf3; then
  server iperf3 5201 iperf3 -s
  # It closes its listener after each test and opens it anew.
  for address in 10.0.1.1 2001:db8:1::1; do
    check "iperf3: TCP to $address" within 20 on a iperf3 -c "$address" -n 20M
    check "iperf3: TCP from $address" within 20 on a iperf3 -c "$address" -n 20M -R
  done
  check "iperf3: four streams, both ways" within 20 on a iperf3 -c 10.0.1.1 -n 5M -P 4 --bidir
  check "iperf3: UDP" says ' 0/[0-9]+ .*receiver' iperf a -c 10.0.1.1 -u -b 5M -l 1200 -t 1
  end "$server" TERM
fi

server python 8000 "$python" -m http.server -d "$served/files" -b 10.0.1.1 8000
check "Python's http.server: a file" same "$served/files/five" http://10.0.1.1:8000/five
check "Python's http.server: 20 requests, 5 at a time" \
  get -Z --parallel-max 5 -o /dev/null 'http://10.0.1.1:8000/five?[1-20]'
end "$server" TERM

# The kernel lets a program have a port anew, or chooses it, as it has none of the connections there that are in TIME-WAIT.
again() { (serve "$python" -c '
import socket
for n in range(3):
    s = socket.socket()
    s.bind(("10.0.1.1", 7300))
    s.listen()
    c = socket.create_connection(("10.0.1.1", 7300), 10)
    a, _ = s.accept()
    a.close()
    assert c.recv(1) == b""
    c.close()
    s.close()
print("served")'); }
[ "$LAB_ROUTER" = kernel ] || check "a port with connections in TIME-WAIT is served again" says '^served$' again
from_again() { (serve "$python" -c '
import socket
for port in range(7302, 7305):
    s = socket.socket()
    s.bind(("10.0.1.1", port))
    s.listen()
    c = socket.socket()
    c.bind(("10.0.1.1", 7301))
    c.connect(("10.0.1.1", port))
    a, _ = s.accept()
    c.close()
    assert a.recv(1) == b""
    a.close()
    s.close()
print("connected")'); }
[ "$LAB_ROUTER" = kernel ] || check "a connection leaves from a port with others in TIME-WAIT" says '^connected$' from_again

# Clients: the server is the kernel's, in host a.
exec_on a "$python" -m http.server -d "$served/files" -b 10.0.1.2 8000 >"$served/logs/far" 2>&1 &
far=$!
within 15 opens a 8000 || fail "no server in host a"
fetch() { (serve curl -s -S -f --max-time 20 "$@"); }
before=$(kernel_segments)
check "curl on Millrace gets a file" equal "$(fetch http://10.0.1.2:8000/five | hash)" "$(hash <"$served/files/five")"
check "curl: refused" says 'refused|Failed to connect' fetch http://10.0.1.2:81/
asked() { (serve "$python" -c '
import hashlib, sys, urllib.request
print(hashlib.sha256(urllib.request.urlopen("http://10.0.1.2:8000/five", timeout=20).read()).hexdigest())'); }
check "Python's urllib" equal "$(asked)" "$(hash <"$served/files/five")"
[ "$LAB_ROUTER" = kernel ] || check "the kernel saw none of it" equal "$(kernel_segments)" "$before"
if has wrk; then
  echo 1 >"$served/files/one"
  (serve wrk -t 2 -c 20 -d 2 --timeout 10 http://10.0.1.2:8000/one) >"$lab/wrk" 2>&1
  check "wrk on Millrace: answers" says '[1-9][0-9]* requests in' cat "$lab/wrk"
fi
end "$far"
