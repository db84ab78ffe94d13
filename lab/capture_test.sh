#!/usr/bin/env bash
# `capture` writes pcapng that Wireshark reads: what it holds is what was on the wire.
. "$(dirname "$0")/lab.sh"
needs_millrace
two_hosts
two_ports
start
pings a 10.0.2.2 >/dev/null
pings a 2001:db8:2::2 >/dev/null

# Captures while a command runs: captured OPTION... -- COMMAND...
captured() {
  local options=() pid
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  rm -f "$lab/capture.pcapng"
  millrace capture --write "$lab/capture.pcapng" --timeout 6 "${options[@]}" >"$lab/capture.log" 2>&1 &
  pid=$!
  # The file is made when the daemon has begun.
  within 10 test -e "$lab/capture.pcapng" || { cat "$lab/capture.log"; return 1; }
  "$@" >/dev/null 2>&1
  wait "$pid" || { cat "$lab/capture.log"; return 1; }
}
# Frames of the capture that match a display filter.
frames() { tshark -o ip.check_checksum:TRUE -r "$lab/capture.pcapng" -Y "$1" 2>/dev/null | wc -l; }

check "a capture of ten echoes" captured --port left --direction rx -- on a ping -n -c 10 -i 0.05 10.0.2.2
check "all ten are there" equal "$(frames 'icmp.type == 8')" 10
check "and no answer, which left by that port" equal "$(frames 'icmp.type == 0')" 0
check "checksums are right" equal "$(frames 'icmp.type == 8 && ip.checksum.status == "Good"')" 10
check "the file is pcapng" says 'pcapng' capinfos -t "$lab/capture.pcapng"
check "both directions" captured --direction any -- on a ping -n -c 3 -i 0.05 10.0.2.2
check "a request comes in, and goes out with a smaller TTL" equal "$(frames 'icmp.type == 8 && ip.ttl == 63')" 3
check "host filter" captured --host 2001:db8:2::2 -- pings a 2001:db8:2::2
check "only that host" equal "$(frames '!(ipv6.addr == 2001:db8:2::2)')" 0
check "but that host" test "$(frames 'icmpv6.type == 128')" -ge 5
check "protocol filter and count" captured --protocol icmp --count 4 -- pings a 10.0.2.2
check "four frames" equal "$(frames frame)" 4
check "dropped packets" captured --direction drop -- on a ping -n -c 2 -i 0.1 -t 1 -W 1 10.0.2.2
check "both are there" equal "$(frames 'icmp.type == 8 && ip.ttl == 1')" 2
check "snap length" captured --snaplen 64 --direction rx -- on a ping -n -c 2 -s 1000 -i 0.1 10.0.2.2
check "frames are cut" equal "$(frames 'frame.cap_len > 64')" 0
check "which were longer" test "$(frames 'frame.len > 1000')" -ge 2
check "traffic went on" pings a 10.0.2.2
