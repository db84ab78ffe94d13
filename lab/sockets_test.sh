#!/usr/bin/env bash
# Several hundred cases of the socket API, on the kernel's stack and on Millrace's at the same time: every return value,
# errno, event mask, option and byte is compared. On Millrace the cases of lab/sockets/agreed run, which have been seen to
# agree; ALL=1 runs all. CASES, a part of their names, limits them, JOBS says how many run at once.
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
# How a case says that it has not come to its end.
broken=': (DID NOT END|ENDED with|the peer is gone|no connection)'
own=10.0.1.1,2001:db8:1::1 other=10.0.1.2,2001:db8:1::2
# Runs cases on both stacks, with a peer for each, and compares what they say: compare_cases ROUND SUBJECT-OPTION...
compare_cases() {
  local round=$1 reference subject
  shift
  run "reference.$round" d exec_on c "$@"
  reference=$!
  run "subject.$round" a serve "$@"
  subject=$!
  wait "$reference" || fail "the reference: $(cat "$lab/reference.$round.errors")"
  wait "$subject" || fail "the subject: $(tail -n 5 "$lab/subject.$round.errors")"
  "$lab_root/lab/sockets/compare" "$lab/reference.$round" "$lab/subject.$round" "$lab_root/lab/sockets/differences" >"$lab/compared.$round"
  verdict=$?
  [ -z "${KEEP:-}" ] || cp "$lab/reference.$round" "$lab/subject.$round" "$lab/compared.$round" "$KEEP"
}
run() {
  local name=$1 peer_host=$2 how=$3 arguments=()
  shift 3
  [ "$how" != exec_on ] || { arguments=("$1"); shift; }
  exec_on "$peer_host" "$sockets" peer --control "$lab/$name.peer" --own "$other" --peer "$own" 2>"$lab/$name.peer.log" &
  within 15 test -S "$lab/$name.peer" || fail "no peer: $(cat "$lab/$name.peer.log")"
  "$how" "${arguments[@]}" "$sockets" subject --control "$lab/$name.peer" --own "$own" --peer "$other" --only "${CASES:-}" \
    --limit "${LIMIT:-10}" "$@" >"$lab/$name" 2>"$lab/$name.errors" &
}

compare_cases 1 --jobs "${JOBS:-8}" "${selected[@]}"
count=$(awk '{print $1}' "$lab/reference.1.errors")
check "the cases ran: $count" test "${count:-0}" -ge "$least"
round=1
# Time limits are missed on a busy machine: what differs has another try with one beside it, and another alone.
for jobs in 2 1; do
  [ "$verdict" -ne 0 ] || grep -qE "$broken" "$lab/reference.$round" || break
  { sed -n 's/^\([^ ].*\):$/\1/p' "$lab/compared.$round"; sed -nE "s/$broken.*//p" "$lab/reference.$round"; } | sort -u >"$lab/again"
  echo "again: $(wc -l <"$lab/again") cases"
  round=$((round + 1))
  compare_cases "$round" --jobs "$jobs" --cases "$lab/again"
done
ended() { fails grep -E "$broken" "$lab/reference.$round"; }
check "each to its end on the kernel" ended
check "both say the same: $(tail -n 1 "$lab/compared.$round")" equal "$verdict" 0
[ "$verdict" -eq 0 ] || grep -v '^explains nothing' "$lab/compared.$round" | head -n 300 | sed 's/^/    /'
