#!/usr/bin/env bash
# A wrong configuration: refused as a whole, each fault with file, line, key and what would be right.
. "$(dirname "$0")/lab.sh"
needs_millrace

# refuses WHAT PATTERN, with the configuration on standard input
refuses() {
  local what=$1 pattern=$2 output status
  cat >"$lab/bad.toml"
  output=$(on router timeout 20 "$LAB_BIN/millraced" --check --config "$lab/bad.toml" 2>&1)
  status=$?
  check "$what: refused" equal "$status" 2
  check "$what: says why" says "$pattern" printf '%s\n' "$output"
}
base='[[port]]
name = "left"
device = "null"
'
refuses "broken TOML" 'bad.toml:1' <<<'[daemon'
refuses "an unknown key" 'bad.toml:4: .*mtuu.*mtu' <<<"${base}mtuu = 1500"
refuses "an unknown section" 'bad.toml:4: .*forwardin' <<<"${base}[forwardin]"
refuses "a wrong type" 'bad.toml:4: .*mtu' <<<"${base}mtu = \"big\""
refuses "a number out of range" 'bad.toml:5: .*vector.*256' <<<"${base}[workers]
vector = 1000"
refuses "an unknown device kind" 'bad.toml:3: .*afxdp.*afpacket.*memif' <<<'[[port]]
name = "left"
device = "afpakcet:eth0"'
refuses "a bad address" 'bad.toml:4: .*addresses' <<<"${base}addresses = [\"10.0.0.300/24\"]"
refuses "two ports of one name" 'bad.toml:5: .*left' <<<"${base}[[port]]
name = \"left\"
device = \"null\""
refuses "a VLAN of no port" 'bad.toml:6: .*middle' <<<"${base}[[vlan]]
name = \"v\"
port = \"middle\"
id = 7"
refuses "a next hop on no network" 'bad.toml:6: .*192.0.2.1' <<<"${base}[[route]]
prefix = \"10.0.0.0/8\"
via = \"192.0.2.1\""
refuses "a prefix with host bits" 'bad.toml:5: .*10.0.0.0/8' <<<"${base}[[route]]
prefix = \"10.0.0.1/8\"
kind = \"blackhole\""
printf '%s' "${base}mtu = 1
promiscuous = 7
" >"$lab/both.toml"
both=$(on router "$LAB_BIN/millraced" --check --config "$lab/both.toml" 2>&1)
check "every fault is told at once" says mtu printf '%s\n' "$both"
check "the second too" says promiscuous printf '%s\n' "$both"
check "what is no regular file is refused" says 'regular file' on router "$LAB_BIN/millraced" --check --config <(printf '%s' "$base")
check "a missing file is named" says '/nowhere.toml' on router timeout 20 "$LAB_BIN/millraced" --config "/nowhere.toml"

refuses_device() {
  printf '[[port]]\nname = "left"\ndevice = "%s"\n' "$2" >"$lab/bad.toml"
  check "$1" says "$3" on router timeout 20 "$LAB_BIN/millraced" --config "$lab/bad.toml" --socket "$lab_socket"
}
refuses_device "an interface that is not there" afpacket:nope0 'nope0'
refuses_device "a capture that is not there" pcap:/nope.pcap '/nope.pcap'
refuses_device "an option that is not there" 'afpacket:lo,colour=red' 'colour'
