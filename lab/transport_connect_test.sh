#!/usr/bin/env bash
# The transport stack connects, the kernel listens: every congestion control, IPv4 and IPv6, over a clean path and one
# that loses, reorders and doubles packets. MEGABYTES (10) go each way at once.
. "$(dirname "$0")/lab.sh"
. "$(dirname "$0")/transport/kernel.sh"
[ -x "$peer" ] || fail "no $peer: cargo build -p millrace-transport --example peer"
host host
bytes=$((${MEGABYTES:-10} * 1000000))
exec_on host "$lab_root/lab/transport/talk" serve &
# It listens for IPv6 last.
within 15 says '\[::\]:7 ' on host ss -Hltn || fail "no server"

# Everything came back as it was sent.
whole() { says "port 1 read $bytes wrong 0 " cat "$lab/peer.log"; }

round() {
  local what=$1 version
  for version in 4 6; do
    joined
    stack connect "${stack_address[$version]}" "${kernel_address[$version]}" 7 "$bytes" &
    stack=$!
    check "$what, IPv$version" within 60 whole
  done
}

for algorithm in cubic newreno bbr; do
  CONGESTION=$algorithm round "$algorithm, clean"
  export LOSS=0.01 REORDER=0.02 DUPLICATE=0.01 SEED=$rounds
  CONGESTION=$algorithm round "$algorithm, 1 % lost, 2 % reordered, 1 % doubled"
  unset LOSS REORDER DUPLICATE SEED
done
for setting in tcp_sack=0 tcp_timestamps=0 tcp_ecn=1; do
  on host sysctl -q -w "net.ipv4.$setting"
  LOSS=0.005 round "kernel with $setting"
done
part
check "no malformed packet, no wrong checksum" no_faults
