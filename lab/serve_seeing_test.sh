#!/usr/bin/env bash
# Connections and UDP sockets of served programs can be seen, and their peers hear of a process that dies without a word.
. "$(dirname "$0")/lab.sh"
. "$(dirname "$0")/serve/serve.sh"
needs_millrace
command -v nginx >/dev/null || skip "no nginx: scripts/setup"
one_host
start_serving
printf x >"$served/files/1"
data 20000000 20 >"$served/files/20000000"
chmod -R a+rX "$served"

# NGINX as one process: server NAME
server() {
  cat >"$served/$1.conf" <<END
daemon off; master_process off; pid $served/$1.pid; error_log $served/logs/$1 info;
events { worker_connections 1024; }
http {
  access_log off; keepalive_timeout 600;
  client_body_temp_path $served/temp/body; proxy_temp_path $served/temp/proxy; fastcgi_temp_path $served/temp/fastcgi;
  uwsgi_temp_path $served/temp/uwsgi; scgi_temp_path $served/temp/scgi;
  server { listen 80; listen [::]:80; root $served/files; }
}
END
  serve nginx -p "$served" -c "$served/$1.conf" 2>"$served/logs/$1.stderr" &
  nginx=$!
  within 20 get -o /dev/null http://10.0.1.1/1 || fail "nginx does not serve: $(cat "$served/logs/$1.stderr")"
}
# Connections that nobody talks on: idlers ADDRESS COUNT NAME
idlers() {
  exec_on a "$lab_root/lab/serve/idlers" "$1" 80 "$2" >"$lab/$3" 2>&1 &
  idlers=$!
  within 20 grep -q connected "$lab/$3" || fail "$2 clients: $(cat "$lab/$3")"
}
connections() { value "show sessions $1" .total; }

counts() { equal "$(connections "$1")" "$2"; }

# 1. What is shown.
server shown
idlers 10.0.1.1 20 four
four=$idlers
idlers 2001:db8:1::1 10 six
six=$idlers
check "all connections are shown" within 10 counts '--state established' 30
check "by address" equal "$(connections '--address 2001:db8:1::/64')" 10
check "by a single address" equal "$(connections '--address 10.0.1.2')" 20
check "by port" equal "$(connections '--port 80')" 30
check "by a port that none has" equal "$(connections '--port 81')" 0
check "by process" equal "$(connections "--process $nginx")" 30
check "by its name" equal "$(connections '--process nginx')" 30
check "by state" within 10 counts '--state close-wait,time-wait' 0
check "a state that there is not is refused" says "'open' is no state" millrace show sessions --state open
check "as a table" says '^established +10\.0\.1\.1:80 +10\.0\.1\.2:[0-9]+ +nginx/' millrace show sessions --address 10.0.1.2
check "in the words of ss" says '(bbr|cubic|newreno) .*rto:.*rtt:.*mss:14.*bytes_received:' millrace show sessions --info
# By one look, when the machine holds neither the program nor the daemon up for so long.
# shellcheck disable=SC2016 # jq's own
recent() { equal "$(value 'show sessions' '[.connections[] | select(.written > 500)] | length')" 0; }
check "each has been written down within half a second" within 20 recent
half() { equal "$(value 'show sessions --address 10.0.1.2' '[.connections[] | select(.bytes_received > 20)] | length')" 10; }
check "those that were talked to have received a request" within 10 half
metrics() { curl -s --unix-socket "$lab_socket" http://millrace/metrics; }
check "metrics count them" within 10 says '^millrace_stack_connections\{stack="[0-9]+",name="nginx",state="established"\} 30$' metrics
check "and what stacks count" says '^millrace_stack_established_total\{.*\} [1-9]' metrics

# A transfer that goes on.
exec_on a curl -s -o /dev/null --limit-rate 2M http://10.0.1.1/20000000 &
slow=$!
sending() { says '"send_queue": [1-9]' millrace --json show sessions --state established; }
check "data that waits for a slow reader is seen" within 8 sending
end "$slow" TERM

# 2. Peers of a process that was killed hear of it, though they send nothing.
end "$nginx" KILL
ended() { grep -q "$2" "$lab/$1"; }
check "IPv4 clients that only wait are reset" within 20 ended four '^reset 20$'
check "IPv6 clients too" within 20 ended six '^reset 10$'
wait "$four" "$six"
none() { equal "$(connections '')" 0; }
check "nothing is left" within 15 none

server again
idlers 10.0.1.1 100 hundred
exec_on a curl -s -o /dev/null --max-time 20 --limit-rate 2M http://10.0.1.1/20000000 2>"$lab/busy" &
busy=$!
check "a busy one among them" within 8 sending
end "$nginx" KILL
check "a hundred clients are reset" within 20 ended hundred '^reset 100$'
check "and the busy one" within 8 fails alive "$busy"
wait "$busy"
check "with an error" equal $? 56

# 3. An orderly end says nothing but good-bye.
server orderly
idlers 10.0.1.1 20 closed
kill -QUIT "$nginx"
check "an orderly end closes connections" within 15 ended closed '^closed 20$'
wait "$nginx"
# Their last words would be the trace's, too.
check "and nothing is left of them" within 15 none

# 4. A connection can be followed into and out of its stack.
server traced
millrace trace --count 80 --timeout 20 --protocol tcp --transport-port 80 --host 10.0.1.2 >"$lab/trace" 2>&1 &
trace=$!
# Nothing says that it has begun: until it has enough packets.
while alive "$trace"; do
  get -o /dev/null http://10.0.1.1/1
  sleep 0.2
done
stack=$(value "show stacks" '.[] | select(.name == "nginx") | .number')
check "a trace shows what goes into the stack, by its number in show stacks" says "for stack $stack\$" cat "$lab/trace"
check "and is delivered to it" says "delivered to stack $stack\$" cat "$lab/trace"
check "and what comes out of it" says "from stack $stack: .*10\.0\.1\.1.*10\.0\.1\.2" cat "$lab/trace"
check "nodes begin one after the other" says '^ +[1-9][0-9]* ns  ip-local' cat "$lab/trace"
captured() { millrace capture --write "$lab/followed.pcapng" --host 10.0.1.2 --transport-port 80 "$@" >/dev/null 2>&1; }
captured --timeout 6 &
capture=$!
# The file is made when the daemon has begun.
within 10 test -e "$lab/followed.pcapng" || fail "no capture"
get -o /dev/null http://10.0.1.1/1
wait "$capture"
# Packets of the capture that match a display filter.
seen() { tshark -r "$lab/followed.pcapng" -Y "$1" 2>/dev/null | wc -l; }
check "a capture has what goes into the stack" equal "$(seen 'ip.src == 10.0.1.2 && http.request')" 1
check "and what comes out of it" equal "$(seen 'ip.src == 10.0.1.1 && http.response')" 1
check "from the handshake" equal "$(seen 'tcp.flags.syn == 1')" 2
check "to the last words" test "$(seen 'tcp.flags.fin == 1')" -ge 2
end "$nginx" TERM

# 5. Connections that nobody accepts are seen to wait.
cat >"$served/waits.py" <<'END'
import select, socket, sys
listener = socket.create_server(("", 80), backlog=9)
while not select.select([sys.stdin], [], [], 0.05)[0]:
    pass
for _ in range(3):
    listener.accept()
select.select([], [], [], 60)
END
mkfifo "$served/word"
serve python3 "$served/waits.py" <"$served/word" 2>"$served/logs/waits" &
waits=$!
exec {word}>"$served/word"
waiting() { equal "$(value 'show listeners' "[.[] | select(.address == \"0.0.0.0:80\") | .members[].waiting] | add")" "$1"; }
check "a listener without clients has none" within 15 waiting 0
check "of nine that may wait" equal "$(value 'show listeners' '[.[] | select(.address == "0.0.0.0:80") | .members[].backlog] | max')" 9
exec_on a python3 -c '
import socket, time
kept = [socket.create_connection(("10.0.1.1", 80), 10) for _ in range(7)]
time.sleep(60)' &
clients=$!
check "seven wait" within 15 waiting 7
check "as the connections say" within 10 says 'not accepted yet' millrace show sessions --info
echo go >&"$word"
check "four are left once three are accepted" within 15 waiting 4
end "$waits" KILL
end "$clients" KILL

# 6. UDP sockets are seen, with what waits in them and what they had no room for.
cat >"$served/sockets.py" <<'END'
import select, socket, sys
unread = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
unread.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
unread.bind(("", 7000))
connected = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
connected.connect(("10.0.1.2", 7003))
select.select([sys.stdin], [], [], 60)
while select.select([unread], [], [], 0.5)[0]:
    unread.recv(65536)
connected.close()
select.select([], [], [], 60)
END
mkfifo "$served/go"
serve "$python" "$served/sockets.py" <"$served/go" 2>"$served/logs/sockets" &
sockets=$!
exec {go}>"$served/go"
udp() { equal "$(value "show sessions $1" "$2")" "$3"; }
within 20 udp --udp .udp_total 2 || fail "no UDP sockets: $(cat "$served/logs/sockets")"
check "two UDP sockets are seen" udp --udp .udp_total 2
check "beside connections, if nothing is said" udp '' .udp_total 2
check "but not with --tcp" udp --tcp .udp_total 0
check "one serves" udp '--state unconnected --port 7000' '.udp_sockets[] | "\(.state) \(.local) \(.remote)"' 'unconnected 0.0.0.0:7000 null'
check "one has a peer" udp '--udp --address 10.0.1.2' '.udp_sockets[] | "\(.state) \(.remote)"' 'established 10.0.1.2:7003'
check "of the process" udp "--process $sockets" .udp_total 2
check "nothing waits" udp '--port 7000' '.udp_sockets[] | [.receive_queue, .send_queue, .dropped] | add' 0
# In both placements more than the socket and what lies before it hold.
on a "$python" -c '
import socket, time
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range(400):
    sender.sendto(bytes([number % 256]) * 1400, ("10.0.1.1", 7000))
    time.sleep(0.001)'
check "datagrams that nobody reads wait, and the rest is dropped" within 10 \
  udp '--port 7000' '.udp_sockets[] | .receive_queue > 1400 and .dropped > 0 and .dropped < 400' true
check "as a table" says '^unconnected +0\.0\.0\.0:7000 +- +python3[^ ]*/[0-9]+ +[0-9]+ +[1-9][0-9]+ +0 +[1-9]' millrace show sessions --udp --port 7000
echo go >&"$go"
check "what is read waits no more" within 10 udp '--port 7000' '.udp_sockets[] | .receive_queue' 0
check "and a socket that is closed is gone" within 10 udp --udp .udp_total 1
end "$sockets" KILL
check "as its process is" within 15 udp --udp .udp_total 0
