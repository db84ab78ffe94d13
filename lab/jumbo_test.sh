#!/usr/bin/env bash
# Frames of 9,216 bytes and their headers: routed, and through clients, in slots that hold all of one or pieces.
. "$(dirname "$0")/lab.sh"
two_hosts
port left 10.0.1.1/24 2001:db8:1::1/64
mtu left a 9216
port right 10.0.2.1/24 2001:db8:2::1/64
mtu right b 9216
config 'client-queues = 1'
[ "$LAB_PORT" = afpacket ] || skip "$LAB_PORT takes no such frames"
sed -i 's/^buffers = .*/buffers = 4096\nbuffer-size = 9728/' "$lab_config"
start

check "9,216 bytes are routed in IPv4" pings a 10.0.2.2 -s 9188 -M "do"
check "and in IPv6" pings a 2001:db8:2::2 -s 9168 -M "do"
check "not one more" fails pings a 10.0.2.2 -s 9189 -M "do"
[ "$LAB_ROUTER" = millrace ] || exit 0

client() {
  : >"$lab/client"
  exec_on router python3 "$lab_root/lab/client/attach.py" "$lab/attach.sock" return "$1" >"$lab/client" 2>&1 &
  client=$!
  within 15 grep -q '^attached' "$lab/client" || fail "the client is not attached: $(cat "$lab/client")"
}
end() {
  kill -KILL "$client"
  wait "$client" 2>/dev/null || true
  within 15 nobody || fail "the client is still attached"
}
nobody() { equal "$(value "show clients" '. | length')" 0; }
through() {
  pings a 10.0.2.2 -s 9188 -M "do" &&
    test "$(value "show clients" '.[].queues[0].sent')" -ge 5
}
client '{"take": "divert", "spread": "flow", "channels": 1, "slots": 64, "capacity": 9400}'
check "and in one piece" through
end
client '{"take": "divert", "spread": "flow", "channels": 1, "slots": 256, "capacity": 60, "queue": {"port": "right", "queue": 0}}'
# What the device has still put elsewhere goes by the router, as before.
check "and from where the device has put them" within 20 through
end
# libmillrace's rings have slots of 2,048 bytes.
if [ -x "$LAB_BIN/examples/rate_limiter" ]; then
  MILLRACE_ATTACH=$lab/attach.sock exec_on router "$LAB_BIN/examples/rate_limiter" 1000 1000 left >"$lab/client" 2>&1 &
  client=$!
  within 15 says 'rate limiter' millrace show clients || fail "the rate limiter is not attached: $(cat "$lab/client")"
  check "and in pieces" through
  end
fi
