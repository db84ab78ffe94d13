#!/usr/bin/env bash
# A port that reads a capture file: real traffic replayed through the graph. LAB_CAPTURES may name a folder
# of captures (pcap or pcapng); each file is replayed, and the daemon has to live on.
. "$(dirname "$0")/lab.sh"
needs_millrace
host a b
link left a 10.0.1.2/24 2001:db8:1::2/64
link right b 10.0.2.2/24 2001:db8:2::2/64
mkdir "$lab/captures"

# A capture of the two kernels' own traffic, the router's kernel between them.
exec_on router tshark -q -i left -F pcap -w "$lab/captures/own.pcap" >/dev/null 2>&1 &
sniffer=$!
within 20 test -s "$lab/captures/own.pcap" || fail "tshark does not start"
on router sysctl -q -w net.ipv4.ip_forward=1
on router ip address add 10.0.1.1/24 dev left
on router ip address add 10.0.2.1/24 dev right
gateway a 10.0.1.1
gateway b 10.0.2.1
on a ping -n -q -c 20 -i 0.02 10.0.2.2 >/dev/null
on a traceroute -n 10.0.2.2 >/dev/null
# What comes before the last one is in the capture when that is.
on a ping -n -q -c 1 -s 777 10.0.2.2 >/dev/null
last() { [ "$(tshark -r "$lab/captures/own.pcap" -Y 'icmp.type == 8 && frame.len > 700' 2>/dev/null | wc -l)" -ge 1 ]; }
within 20 last || fail "tshark has not seen all"
kill -INT "$sniffer"
wait "$sniffer"
on router sysctl -q -w net.ipv4.ip_forward=0
on router ip address flush dev left
on router ip address flush dev right

port right 10.0.2.1/24 2001:db8:2::1/64
cp "$lab_config" "$lab/head.toml"
# Runs the daemon on a capture until it has taken in every frame: replay FILE [CONFIGURATION-LINE...]
replay() {
  local file=$1 frames
  shift
  frames=$(capinfos -c -M -T -r "$file" | awk '{print $NF}')
  cp "$lab/head.toml" "$lab_config"
  device file "pcap:$file,out=$lab/out.pcap" 10.0.1.1/24 2001:db8:1::1/64
  config "$@"
  start
  taken() { [ "$(value "show ports" '.. | objects | select(.name == "file") | .counters.rx_packets')" -ge "$frames" ]; }
  check "$(basename "$file"): all $frames frames are taken in" within 30 taken
  check "$(basename "$file"): the router lives" pings b 10.0.2.1
  stop_daemon 15
  check "$(basename "$file"): it ends in order" equal $? 0
}

before=$(received b right)
# The recorded frames were sent to the MAC address of the router's own end.
replay "$lab/captures/own.pcap" "mac = \"$(mac router left)\"" '' '[neighbors]' 'queue = 256'
check "the echoes of the capture were routed" test "$(($(received b right) - before))" -ge 25

[ -n "${LAB_CAPTURES:-}" ] || exit 0
while IFS= read -r -d '' file; do
  editcap -F pcap "$file" "$lab/captures/next.pcap" 2>/dev/null || continue
  echo "$file"
  replay "$lab/captures/next.pcap" 'promiscuous = true'
done < <(find "$LAB_CAPTURES" -type f -regex '.*\.\(pcap\|pcapng\|cap\)' -print0)
