#!/usr/bin/env bash
# Connections that move between processes: forked servers, programs started on a connection, descriptors that are passed on,
# processes that end with data left to send, reloads, restarts of the daemon.
. "$(dirname "$0")/lab.sh"
. "$(dirname "$0")/serve/serve.sh"
one_host
start_serving
cc -std=gnu11 -O1 -Wall -Wextra -Werror -o "$lab/mover" "$lab_root/lab/serve/mover.c" || fail "mover does not build"

# A check that shows what the server has said when it fails: try NAME WHAT COMMAND...
try() {
  local name=$1 before=$lab_failures
  shift
  check "$@"
  [ "$lab_failures" -eq "$before" ] || said "$name"
}
talk() { on a "$python" "$lab_root/lab/serve/talk" 10.0.1.1 "$@"; }

# 1. A process for each connection.
server forking 7001 "$python" "$lab_root/lab/serve/forking.py" 7001
try forking "Python's ForkingTCPServer: ten connections at once, each its own process" says '^200 answers$' talk 7001 10 20
end "$server" TERM
server fork 7002 "$lab/mover" fork 7002
try fork "the same in C, over and over" says '^100 answers$' talk 7002 5 20
for round in 1 2 3; do try fork "again, $round" says '^20 answers$' talk 7002 10 2; done
end "$server" TERM
server half 7003 "$lab/mover" half 7003 3
try half "two processes take turns, and nothing that one has not read is lost" equal \
  "$(talk 7003 --say 'a\nb\nc\nd\ne\nf\ng\n' | tr '\n' ';')" \
  'parent: a;child: b;parent: c;child: d;parent: e;child: f;parent: g;end;'
end "$server" TERM
# Packets arrive at every moment of a move, also between the one at which they are steered to its new stack and the one at which the
# connection is there.
server turns 7010 "$lab/mover" half 7010 12
try turns "they take turns while the peer keeps sending" equal "$(talk 7010 --steadily 3000)" 'child 12 parent 2988 end'
end "$server" TERM
server shut 7004 "$lab/mover" shut 7004
try shut "a child's shutdown is the connection's" equal "$(talk 7004 --say 'a\nrest' | tr '\n' ';')" 'parent: a;end;'
wait "$server"
check "and the parent sees it, and still reads" says '^parent: EPIPE, then read 4 bytes$' cat "$served/logs/shut"

# 2. A program for each connection.
server inetd 7005 "$lab/mover" inetd 7005 cat
try inetd "cat is started on each connection" says '^100 answers$' talk 7005 5 20
end "$server" TERM
server started 7006 "$lab/mover" inetd 7006 "$python" -c '
import os
while data := os.read(0, 65536):
    while data: data = data[os.write(1, data):]'
try started "so is Python" says '^60 answers$' talk 7006 3 20
end "$server" TERM

# 3. Passed on by SCM_RIGHTS, half used.
server pass 7007 "$lab/mover" pass 7007
try pass "one process accepts and reads, another goes on" equal "$(talk 7007 --say 'a\nb\nc\n' | tr '\n' ';')" \
  'parent: a;child: b;child: c;end;'
for round in 1 2 3; do
  try pass "again, $round" equal "$(talk 7007 --say 'a\nb\n' | tr '\n' ';')" 'parent: a;child: b;end;'
done
end "$server" TERM

# 4. The end of a process.
bytes=1000000
wanted=$("$python" -c 'import sys,hashlib
print(hashlib.sha256(bytes((at * 2654435761 & 0xffffffff) >> 24 for at in range(int(sys.argv[1])))).hexdigest())' $bytes)
server burst 7008 "$lab/mover" burst 7008 $bytes
try burst "all of 1 MB arrives from a server that writes it and ends" equal "$(talk 7008 --hear)" "$bytes $wanted end"
wait "$server"
# An inline stack ends with its process.
if [ "${MILLRACE_PLACEMENT-}" = shared ] || [ "$LAB_ROUTER" = kernel ]; then
  server leave 7011 "$lab/mover" leave 7011 $bytes
  talk 7011 --hear "$lab/killed" >"$lab/heard" &
  heard=$!
  within 10 says '^closed$' cat "$served/logs/leave" || fail "the server does not come to its end"
  end "$server" KILL
  touch "$lab/killed"
  wait "$heard"
  try leave "all of 1 MB arrives from a server that writes it, closes, and is killed" \
    says "^$bytes $wanted end\$" cat "$lab/heard"
fi
if [ "$LAB_ROUTER" = millrace ]; then
  server waits 7009 "$lab/mover" wait 7009
  talk 7009 --hear >"$lab/heard" &
  heard=$!
  # What the server has sent is there.
  within 10 says 'bytes_received:5( |$)' on a ss -Htin 'dport = :7009' || fail "nobody hears"
  end "$server" KILL
  check "a killed process's connection is reset at once" within 8 fails alive "$heard"
  wait "$heard"
  check "with what was sent before" says '^5 [0-9a-f]* reset$' cat "$lab/heard"
fi

# 5. Programs.
data 10000 5 >"$served/files/page"
if has redis-server; then
  server redis 6379 redis-server --port 6379 --bind 10.0.1.1 --protected-mode no --save '' --dir "$served/temp"
  try redis "redis forks to save while clients are connected" says '^saved 5 8$' on a "$python" -c '
import socket, time
clients = [socket.create_connection(("10.0.1.1", 6379), 10) for _ in range(8)]
files = [client.makefile("rb") for client in clients]
def ask(n, line):
    clients[n].sendall(line + b"\r\n")
    return files[n].readline().strip()
def value(n, key):
    length = int(ask(n, b"GET " + key)[1:])
    return files[n].read(length + 2)[:-2]
for n in range(8): assert ask(n, b"SET k%d %s" % (n, b"v" * 20000)) == b"+OK"
rounds = 0
for save in range(5):
    before = ask(0, b"LASTSAVE")
    time.sleep(1.1)
    assert ask(save, b"BGSAVE").startswith(b"+Background"), save
    for n in range(8): assert value(n, b"k%d" % n) == b"v" * 20000
    for _ in range(100):
        if ask(0, b"LASTSAVE") != before: break
        time.sleep(0.1)
    else: raise SystemExit("not saved")
    rounds += 1
print("saved", rounds, sum(ask(n, b"PING") == b"+PONG" for n in range(8)))'
  end "$server" TERM
fi
if has haproxy; then
  exec_on router "$python" "$lab_root/lab/serve/backend" 127.0.0.1 9000 2>"$served/logs/backend" &
  backend=$!
  within 15 opens router 9000 || fail "no backend"
  # The sockets that the new one asks for: with one of any address it goes on; one that the library has let it bind to an address that
  # the kernel has not (IP_FREEBIND) it takes for another's, and binds its own beside it.
  for at in 10.0.1.1:8080 :8081; do
    cat >"$served/haproxy.cfg" <<END
global
  maxconn 200
  stats socket $served/haproxy.sock mode 600 level admin expose-fd listeners
defaults
  mode http
  timeout connect 5s
  timeout client 10s
  timeout server 10s
frontend web
  bind $at
  http-request return status 200 content-type text/plain file $served/files/page if { path /page }
  default_backend back
backend back
  server one 127.0.0.1:9000
END
    server haproxy "${at#*:}" haproxy -db -f "$served/haproxy.cfg"
    load "${at#*:}" "$served/files/page"
    sleep 1
    for round in 1 2 3; do
      old=$server
      server haproxy "${at#*:}" haproxy -db -f "$served/haproxy.cfg" -x "$served/haproxy.sock" -sf "$old"
      try haproxy "HAProxy at $at is replaced, $round" within 20 fails alive "$old"
    done
    enough 100
    try haproxy "and no request failed" failed_at_most 0 100
    end "$server" TERM
  done
  end "$backend"
fi

# 6. Connections that a program opens: what it leaves when it closes them, having forked, and a daemon that restarts.
exec_on a "$python" -c '
import socket, time
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
listener.bind(("10.0.1.2", 7101))
listener.listen()
listener.accept()
peer = listener.accept()[0]
time.sleep(1)
count = 0
while data := peer.recv(65536): count += len(data)
print(count, flush=True)' >"$lab/sink" 2>&1 &
peer=$!
within 15 opens a 7101 || fail "no server in host a"
serve "$python" -c '
import os, socket, time
socket.create_connection(("10.0.1.2", 7101), 10)
child = os.fork()
if child == 0: os._exit(0)
os.waitpid(child, 0)
s = socket.create_connection(("10.0.1.2", 7101), 10)
s.sendall(bytes(50000))
s.close()
time.sleep(30)' >"$served/logs/leaver" 2>&1 &
client=$!
try leaver "what a process that has forked leaves arrives while it lives on" within 20 says '^50000$' cat "$lab/sink"
end "$client"
end "$peer"
# The connections of a stack worker end with the daemon.
if [ "$LAB_ROUTER" = millrace ] && [ "${MILLRACE_PLACEMENT:-}" != shared ]; then
  exec_on a "$python" "$lab_root/lab/serve/forking.py" 7100 &
  peer=$!
  within 15 opens a 7100 || fail "no server in host a"
  serve "$python" -c '
import socket, sys, time
s = socket.create_connection(("10.0.1.2", 7100), 10)
f = s.makefile("rb")
s.settimeout(20)
for n in range(100):
    s.sendall(b"line %d\n" % n)
    assert f.readline().endswith(b"line %d\n" % n), n
    print(n, flush=True)
    time.sleep(0.1)
print("over")' >"$served/logs/client" 2>&1 &
  client=$!
  check "a client is connected" within 20 says '^5$' cat "$served/logs/client"
  check "the daemon restarts" millrace restart
  try client "the connection goes on" within 40 says '^over$' cat "$served/logs/client"
  end "$client"
  end "$peer"
  check "nothing is left in the daemon" within 15 no_stacks
fi
