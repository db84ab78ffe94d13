#!/usr/bin/env bash
# UDP servers and clients on Millrace's stack, unchanged: Python, NGINX's stream proxy, dnsmasq, dig, iperf3.
. "$(dirname "$0")/lab.sh"
. "$(dirname "$0")/serve/serve.sh"
one_host
start_serving
udp=$lab_root/lab/serve/udp
ask() { on a "$python" "$udp" ask "$@"; }

# 1. One socket, two worlds.
server echo 7000 "$python" "$udp" echo :: 7000
# Longer ones do not come by a port of AF_PACKET, which has the kernel put fragments together and truncates the packet.
check "datagrams of 0 to 1,900 bytes come back from the address they went to" says '^7 answers from 10\.0\.1\.1$' \
  ask 10.0.1.1 7000 0 1 100 1000 1472 1473 1900
check "over IPv6" says '^5 answers from 2001:db8:1::1$' ask 2001:db8:1::1 7000 0 1 100 1000 1452
check "from the host itself" says '^3 answers from 127\.0\.0\.1$' on router "$python" "$udp" ask 127.0.0.1 7000 1 1000 20000
[ "$LAB_ROUTER" = kernel ] || check "millrace show listeners has it" says 'udp .*:7000 |:7000 .*udp' millrace show listeners
check "nobody's port is refused" says 'refused' ask 10.0.1.1 7001 1
end "$server"
[ "$LAB_ROUTER" = kernel ] || check "and so is a server's that has ended" within 25 says 'refused' ask 10.0.1.1 7000 1

if [ "$LAB_ROUTER" = millrace ]; then
  server again 7008 "$python" "$udp" echo :: 7008
  [ "${MILLRACE_PLACEMENT:-}" != shared ] ||
    check "a stack worker of the daemon runs its stack" says '^[1-9]' grep -c '^stack-' <(cat "/proc/$daemon/task"/*/comm)
  check "the daemon restarts" millrace restart
  check "and the server is reached again" within 25 says '^2 answers from 10\.0\.1\.1$' ask 10.0.1.1 7008 1 1000
  end "$server"
fi

server forked 7005 "$python" "$udp" forked 0.0.0.0 7005
check "a process that has forked another serves on" says '^2 answers from 10\.0\.1\.1$' ask 10.0.1.1 7005 1 1000
end "$server"

# 2. Several processes, which share a port.
server shared 7002 "$python" "$udp" share 0.0.0.0 7002 3
# The port is open when one of them has it.
check "three processes share a port's peers" within 20 says '^3 processes$' ask --many 10.0.1.1 7002 60
end "$server" TERM

# 3. Clients.
exec_on a "$python" "$udp" echo :: 7003 2>/dev/null &
peer=$!
within 15 opens a 7003 || fail "no server in host a"
client() { serve "$python" "$udp" "$@"; }
check "a client that connects" says '^3 answers from 10\.0\.1\.2$' client ask 10.0.1.2 7003 1 1000 1400
check "a client that does not" says '^3 answers from 10\.0\.1\.2$' client ask --unconnected 10.0.1.2 7003 1 1000 1400
check "a client of the host itself and of the network, with one socket" says '^both answered$' \
  client both 10.0.1.2 127.0.0.1 7003
check "segments, received as they were sent" says '^10 of 1000, 1 of 500$' client segments 10.0.1.2 7003
end "$peer"
exec_on a "$python" "$udp" digest :: 7006 2>/dev/null &
peer=$!
within 15 opens a 7006 || fail "no server in host a"
check "datagrams of up to 65,507 bytes leave whole" says '^7 came whole$' client ask --digest 10.0.1.2 7006 1472 1473 1957 20000 65493 65494 65507
check "over IPv6" says '^6 came whole$' client ask --digest 2001:db8:1::2 7006 1452 1453 1957 20000 65478 65479
end "$peer"

# Own addresses: what nobody serves by Millrace is the kernel's, if the kernel has the address, too.
check "a child answers a client of the same process" says '^answer$' client itself 10.0.1.1
check "an own port that nobody has is refused" says '^refused$' client ask 10.0.1.1 7099 1
if [ "$LAB_ROUTER" = millrace ]; then
  on router ip address add 10.0.1.1/32 dev lo
  exec_on router "$python" "$udp" echo 10.0.1.1 7009 2>/dev/null &
  near=$!
  within 15 opens router 7009 || fail "no server at the kernel's 10.0.1.1"
  check "a server of the kernel's at an address of both is reached" says '^2 answers from 10\.0\.1\.1$' client ask 10.0.1.1 7009 1 1000
  check "and a child answers as before" says '^answer$' client itself 10.0.1.1
  end "$near"
  on router ip address delete 10.0.1.1/32 dev lo
fi

# 4. NGINX as a proxy for UDP: to the kernel's loopback, and to the network.
if has nginx && [ -e /usr/lib/nginx/modules/ngx_stream_module.so ]; then
  exec_on router "$python" "$udp" echo 127.0.0.1 7004 2>/dev/null &
  near=$!
  exec_on a "$python" "$udp" echo 10.0.1.2 7004 2>/dev/null &
  far=$!
  within 15 opens router 7004 || fail "no server on the kernel's loopback"
  within 15 opens a 7004 || fail "no server in host a"
  cat >"$served/stream.conf" <<END
load_module /usr/lib/nginx/modules/ngx_stream_module.so;
daemon off; worker_processes 2; user www-data; pid $served/stream.pid; error_log $served/logs/stream info;
events { worker_connections 1024; }
stream {
  server { listen 7010 udp; listen [::]:7010 udp; proxy_pass 127.0.0.1:7004; proxy_responses 1; }
  server { listen 7011 udp reuseport; proxy_pass 10.0.1.2:7004; proxy_timeout 5s; }
}
END
  server stream 7010 nginx -p "$served" -c "$served/stream.conf"
  # Its master has opened the ports; a worker answers: by_workers PORT...
  by_workers() {
    local port
    for port; do
      grep -q -x -F "$(pgrep -P "$server")" \
        <<<"$(value "show listeners" ".[] | select(.address | endswith(\":$port\")) | .members[].pid")" || return 1
    done
  }
  [ "$LAB_ROUTER" = kernel ] || within 10 by_workers 7010 7011
  check "nginx proxies to the kernel's loopback" says '^4 answers from 10\.0\.1\.1$' ask 10.0.1.1 7010 1 100 1000 1400
  check "over IPv6" says '^2 answers from 2001:db8:1::1$' ask 2001:db8:1::1 7010 1 1000
  check "and back into the network" says '^4 answers from 10\.0\.1\.1$' ask 10.0.1.1 7011 1 100 1000 1400
  check "50 clients, two workers, reuseport" says '^50 answers$' ask --clients 10.0.1.1 7011 50
  check "the same from the host itself" says '^2 answers from 127\.0\.0\.1$' \
    on router "$python" "$udp" ask 127.0.0.1 7010 1 1000
  end "$server" TERM
  end "$near"
  end "$far"
fi

# 5. What a process sends just before it ends.
exec_on a "$python" -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("10.0.1.2", 7020))
s.settimeout(60)
got = set()
while len(got) < 40:
    got.add(s.recv(10))
    s.settimeout(10)
print("all of them")' >"$lab/last" 2>&1 &
far=$!
within 15 opens a 7020 || fail "no receiver in host a"
(serve "$python" -c '
import os, socket
for number in range(40):
    child = os.fork()
    if child == 0:
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"%d" % number, ("10.0.1.2", 7020))
        os._exit(0)
    os.waitpid(child, 0)')
check "what each of 40 processes sends as its last arrives" within 15 says '^all of them$' cat "$lab/last"
end "$far"

# 6. DNS.
if has dnsmasq && has dig; then
  server dnsmasq 53 dnsmasq --keep-in-foreground --no-resolv --no-hosts --user=root --conf-file=/dev/null --pid-file= \
    --address=/lab.example/192.0.2.7 --txt-record=long.example,"$(data 180 5 | od -An -tx1 | tr -d ' \n' | head -c 250)"
  look() { on a dig +time=3 +tries=2 "$@"; }
  check "dnsmasq answers dig" says '^192\.0\.2\.7$' look +short @10.0.1.1 www.lab.example
  check "over IPv6" says '^192\.0\.2\.7$' look +short @2001:db8:1::1 www.lab.example
  check "a long answer" says 'ANSWER: 1' look @10.0.1.1 txt long.example
  end "$server" TERM
  exec_on a dnsmasq --keep-in-foreground --no-resolv --no-hosts --user=root --conf-file=/dev/null --pid-file= \
    --listen-address=10.0.1.2 --bind-interfaces --address=/lab.example/192.0.2.8 2>/dev/null &
  far=$!
  within 15 opens a 53 || fail "no dnsmasq in host a"
  check "dig on Millrace asks the network" says '^192\.0\.2\.8$' serve dig +short +time=3 @10.0.1.2 www.lab.example
  end "$far"
fi

# 7. iperf3.
if has iperf3; then
  server iperf3 5202 iperf3 -s -p 5202
  # What a's own socket had no room for, while the client did not run, has arrived.
  lost() {
    local before
    before=$(overruns a)
    iperf a -c 10.0.1.1 -p 5202 -u -b 5M -t 1 -l 1200 "$@" >"$lab/iperf3" || { cat "$lab/iperf3"; return 1; }
    sed -n -E 's|.* ([0-9]+)/([0-9]+) .*receiver.*|\2 \1|p' "$lab/iperf3" |
      awk -v overruns=$(($(overruns a) - before)) '{print "packets", $1, "lost", ($2 > overruns ? $2 - overruns : 0)}'
  }
  check "iperf3 -u: datagrams arrive" says '^packets [1-9][0-9][0-9]+ lost [0-9]$' lost
  check "iperf3 -u -R: the other way" says '^packets [1-9][0-9][0-9]+ lost [0-9]$' lost -R
  end "$server" TERM
fi
