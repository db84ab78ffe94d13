#!/usr/bin/env bash
# Packets that break the rules are dropped under the reason's name, and the router goes on.
. "$(dirname "$0")/lab.sh"
needs_millrace
two_hosts
two_ports
start
pings a 10.0.2.2 >/dev/null

# Host a sends 10 frames of each kind; the words are those of `millrace show drops`.
cat >"$lab/send" <<'END'
import socket, struct, sys

router, own = (bytes.fromhex(mac.replace(":", "")) for mac in sys.argv[1:3])

def checksum(header):
    total = sum(struct.unpack("!%dH" % (len(header) // 2), header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF

def ip4(source="10.0.1.2", destination="10.0.2.2", version=4, words=5, length=28, ttl=64, flaw=0):
    head = struct.pack("!BBHHHBBH4s4s", version << 4 | words, 0, length, 7, 0, ttl, 17, 0,
                       socket.inet_aton(source), socket.inet_aton(destination))
    head = head[:10] + struct.pack("!H", checksum(head) ^ flaw) + head[12:]
    return b"\x08\x00" + head + struct.pack("!HHHH", 9, 9, 8, 0) + bytes(18)

def ip6(source="2001:db8:1::2", destination="2001:db8:2::2", version=6, length=8, hops=64, next_header=17):
    head = struct.pack("!IHBB", version << 28, length, next_header, hops)
    head += socket.inet_pton(socket.AF_INET6, source) + socket.inet_pton(socket.AF_INET6, destination)
    return b"\x86\xdd" + head + struct.pack("!HHHH", 9, 9, 8, 0)

flaws = {
    "ip4-checksum": ip4(flaw=1),
    "ip4-version": ip4(version=5),
    "ip4-header-length": ip4(words=4),
    "ip4-total-length": ip4(length=1000),
    "ip4-ttl": ip4(ttl=1),
    "ip4-martian-source": ip4(source="127.0.0.1"),
    "ip4-martian-destination": ip4(destination="127.0.0.1"),
    "ip4-no-route": ip4(destination="192.0.2.1"),
    "ip4-directed-broadcast": ip4(destination="10.0.2.255"),
    "ip6-version": ip6(version=4),
    "ip6-payload-length": ip6(length=1000),
    "ip6-hop-limit": ip6(hops=1),
    "ip6-martian-source": ip6(source="::1"),
    "ip6-no-route": ip6(destination="2001:db8:dead::1"),
    "ethertype-unknown": b"\x88\xb5" + bytes(46),
    "vlan-unknown": b"\x81\x00\x0f\x00" + ip4(),
}
if len(sys.argv) == 3:
    print(*flaws)
else:
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    wire.bind(("left", 0))
    for _ in range(10):
        wire.send(router + own + flaws[sys.argv[3]])
END
send() { on a python3 "$lab/send" "$(mac router left)" "$(mac a left)" "$@"; }
ten_more() { [ "$(drops "$1")" -ge $((before + 10)) ]; }
reasons=$(send)
[ -n "$reasons" ] || fail "no frames to send"
for reason in $reasons; do
  before=$(drops "$reason")
  send "$reason"
  check "$reason" within 15 ten_more "$reason"
done

# Noise of every length, addressed to the router.
on a python3 -c '
import random, socket, sys
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
wire.bind(("left", 0))
dice = random.Random(1)
head = bytes.fromhex(sys.argv[1].replace(":", "")) + bytes.fromhex(sys.argv[2].replace(":", ""))
for count in range(20000):
    kind = dice.choice((b"\x08\x00\x45", b"\x86\xdd\x60", b"\x08\x06\x00", b"\x81\x00\x00", b"\x88\xa8\x00"))
    wire.send(head + kind + dice.randbytes(dice.randrange(1400)))
' "$(mac router left)" "$(mac a left)" || fail "no noise"
# Its ring may still be full of noise.
check "the router lives" within 15 pings a 10.0.2.2
check "for IPv6 too" within 15 pings a 2001:db8:2::2
