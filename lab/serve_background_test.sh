#!/usr/bin/env bash
# A server that puts itself into the background: its first clients wait until it accepts, and nobody is refused meanwhile.
. "$(dirname "$0")/lab.sh"
. "$(dirname "$0")/serve/serve.sh"
one_host
start_serving

# Starts one whose first process has ended: background NAME PORT; the process that goes on is in $server.
background() {
  serve "$python" "$lab_root/lab/serve/background.py" "$2" "$lab/$1.pid" "$lab/$1.go" 2>"$served/logs/$1" &
  wait $! || fail "$(said "$1")"
  within 15 test -s "$lab/$1.pid" || fail "$1 does not go on"
  server=$(cat "$lab/$1.pid")
}
# Whether neither the kernel nor the daemon has it: no_listener PORT
no_listener() { ! opens router "$1" && { [ "$LAB_ROUTER" = kernel ] || ! told "$1"; }; }
# Whether so many clients have asked to be connected to a port, answered or not: come PORT COUNT
come() { [ "$(on a ss -Htn "dport = :$1" | wc -l)" -ge "$2" ]; }
# A client in the background: client NAME ADDRESS PORT; its process is in $client.
client() {
  exec_on a "$python" "$lab_root/lab/serve/connect.py" "$2" "$3" >"$lab/$1" 2>&1 &
  client=$!
}

# 1. It accepts. A client asks again after a second, which the machine may take by itself: then there is another try.
for try in 1 2 3; do
  background first 7001
  client early 10.0.1.1 7001
  early=$client
  client early6 2001:db8:1::1 7001
  early6=$client
  within 15 come 7001 2 || fail "the clients do not come"
  # In which they would be refused.
  sleep 0.3
  if [ "$LAB_ROUTER" = millrace ]; then
    check "nobody is refused before it accepts" alive "$early"
    check "nor over IPv6" alive "$early6"
    check "millrace show listeners says why" within 10 says ':7001 .* vacant' millrace show listeners
  fi
  touch "$lab/first.go"
  wait "$early" "$early6"
  if [ "$try" -eq 3 ] || ! grep -q '^served repeated [1-9]' "$lab/early" "$lab/early6"; then break; fi
  end "$server"
  rm "$lab/first.go" "$lab/first.pid"
  within 10 no_listener 7001
done
check "who came before is served, and need not ask twice" equal "$(cat "$lab/early")" 'served repeated 0'
check "over IPv6 as well" equal "$(cat "$lab/early6")" 'served repeated 0'
promptly() {
  client late 10.0.1.1 7001
  wait "$client"
  equal "$(cat "$lab/late")" 'served repeated 0'
}
check "who comes later, too" within 15 promptly
[ "$LAB_ROUTER" = kernel ] || check "and nothing is vacant any more" within 10 fails says 'vacant' millrace show listeners
end "$server"
refused() {
  client refused 10.0.1.1 "$1"
  wait "$client"
  grep -q refused "$lab/refused"
}
check "after its end connections are refused" within 15 refused 7001

# 2. It ends without having accepted.
background second 7002
client waiting 10.0.1.1 7002
waiting=$client
within 15 come 7002 1 || fail "the client does not come"
sleep 0.3
[ "$LAB_ROUTER" = kernel ] || check "another waits" alive "$waiting"
end "$server"
within 5 fails alive "$waiting"
wait "$waiting"
check "and is refused when nobody is left who could accept" says 'refused|reset' cat "$lab/waiting"
check "and so are others" within 15 refused 7002
if [ "$LAB_ROUTER" = millrace ]; then
  check "nothing is left in the daemon" within 15 no_stacks
  check "nor of its listeners" within 15 fails says ':700[12] ' millrace show listeners
fi
