#!/usr/bin/env bash
# Several hundred cases of the socket API, on the kernel's stack and on Millrace's at the same time: every return value,
# errno, event mask, option and byte is compared. On Millrace the cases of lab/sockets/agreed run, which have been seen to
# agree; ALL=1 runs all. CASES, a part of their names, limits them.
# With the kernel as router both are the kernel's, which shows that the cases say the same twice.
. "$(dirname "$0")/lab.sh"
. "$(dirname "$0")/serve/serve.sh"
make -s -C "$lab_root/lab/sockets" OUT="$lab" || fail "lab/sockets does not build"
sockets=$lab/sockets
# The subject has 10.0.1.1, its peer 10.0.1.2: in the router and host a, and on the kernel in hosts c and d.
one_host
host c d
ip link add left netns "$lab_name-c" type veth peer name left netns "$lab_name-d" || fail "cannot join c and d"
for end in c:1 d:2; do
  name=${end%:*} number=${end#*:}
  on "$name" ethtool -K left tx off rx off gro off gso off tso off >/dev/null 2>&1
  on "$name" ip link set left up
  on "$name" ip address add "10.0.1.$number/24" dev left
  on "$name" ip address add "2001:db8:1::$number/64" dev left
done
for name in a c d; do
  # Errors come as fast as the cases provoke them, and not one is held back.
  on "$name" sysctl -q -w net.ipv4.icmp_ratelimit=0 net.ipv6.icmp.ratelimit=0
done
start_serving

selected=()
[ "$LAB_ROUTER" = kernel ] || [ -n "${ALL:-}" ] || selected=(--cases "$lab_root/lab/sockets/agreed")
least=590
[ ${#selected[@]} -eq 0 ] || least=$(wc -l <"$lab_root/lab/sockets/agreed")
[ -z "${CASES:-}" ] || least=1
own=10.0.1.1,2001:db8:1::1 other=10.0.1.2,2001:db8:1::2
run() {
  local name=$1 peer_host=$2
  shift 2
  exec_on "$peer_host" "$sockets" peer --control "$lab/$name.peer" --own "$other" --peer "$own" 2>"$lab/$name.peer.log" &
  within 5 test -S "$lab/$name.peer" || fail "no peer: $(cat "$lab/$name.peer.log")"
  "$@" "$sockets" subject --control "$lab/$name.peer" --own "$own" --peer "$other" --only "${CASES:-}" --limit "${LIMIT:-10}" \
    "${selected[@]}" \
    >"$lab/$name" 2>"$lab/$name.errors" &
}
run reference d exec_on c
reference=$!
run subject a serve
subject=$!
wait "$reference" || fail "the reference: $(cat "$lab/reference.errors")"
wait "$subject" || fail "the subject: $(tail -n 5 "$lab/subject.errors")"

count=$(awk '{print $1}' "$lab/reference.errors")
check "the cases ran: $count" test "${count:-0}" -ge "$least"
ended() { fails grep -E ': (DID NOT END|ENDED with|the peer is gone|no connection)' "$lab/reference"; }
check "each to its end on the kernel" ended
"$lab_root/lab/sockets/compare" "$lab/reference" "$lab/subject" "$lab_root/lab/sockets/differences" >"$lab/compared"
verdict=$?
check "both say the same: $(tail -n 1 "$lab/compared")" equal "$verdict" 0
[ "$verdict" -eq 0 ] || head -n 200 "$lab/compared" | sed 's/^/    /'
[ -z "${KEEP:-}" ] || cp "$lab/reference" "$lab/subject" "$lab/compared" "$KEEP"
