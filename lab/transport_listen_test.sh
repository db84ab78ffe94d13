#!/usr/bin/env bash
# The transport stack listens, the kernel connects: every congestion control on both sides, IPv4 and IPv6, over a
# clean path and one that loses, reorders and doubles packets. MEGABYTES (10) go each way at once.
. "$(dirname "$0")/lab.sh"
. "$(dirname "$0")/transport/kernel.sh"
[ -x "$peer" ] || fail "no $peer: cargo build -p millrace-transport --example peer"
host host
bytes=$((${MEGABYTES:-10} * 1000000))
talk() { on host "$lab_root/lab/transport/talk" "$@"; }

round() {
  local what=$1 version
  joined
  # shellcheck disable=SC2119 # it only listens
  stack &
  stack=$!
  within 15 test -e "$lab/peer$rounds" || fail "no stack"
  for version in 4 6; do
    check "$what, IPv$version" talk echo "${stack_address[$version]}" "$bytes"
  done
}

for algorithm in cubic newreno bbr; do
  # The kernel's name for it, where it has it.
  export KERNEL_CONGESTION=${algorithm/newreno/reno}
  on host grep -qw "$KERNEL_CONGESTION" /proc/sys/net/ipv4/tcp_available_congestion_control || unset KERNEL_CONGESTION
  CONGESTION=$algorithm round "$algorithm, clean"
  export LOSS=0.01 REORDER=0.02 DUPLICATE=0.01 SEED=$rounds
  CONGESTION=$algorithm round "$algorithm, 1 % lost, 2 % reordered, 1 % doubled"
  unset LOSS REORDER DUPLICATE SEED KERNEL_CONGESTION
done
for setting in tcp_sack=0 tcp_timestamps=0 tcp_window_scaling=0 tcp_ecn=1 tcp_ecn=0; do
  on host sysctl -q -w "net.ipv4.$setting"
  LOSS=0.005 round "kernel with $setting"
done
on host sysctl -q -w net.ipv4.tcp_sack=1 net.ipv4.tcp_timestamps=1 net.ipv4.tcp_window_scaling=1 net.ipv4.tcp_ecn=2
round "after all settings"
for version in 4 6; do
  for what in many half refused reset slow quiet udp; do
    check "$what, IPv$version" talk "$what" "${stack_address[$version]}"
  done
done
part
check "no malformed packet, no wrong checksum" no_faults
