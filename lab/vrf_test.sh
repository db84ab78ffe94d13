#!/usr/bin/env bash
# VRFs: two customers with the same addresses on both sides of one router, apart until a route leads across.
. "$(dirname "$0")/lab.sh"
needs_millrace
# Red is a and b, blue is c and d; s is in the default VRF.
host a b c d s
while read -r vrf near far; do
  link "$vrf-near" "$near" 10.0.1.2/24 2001:db8:1::2/64
  link "$vrf-far" "$far" 10.0.2.2/24 2001:db8:2::2/64
  gateway "$near" 10.0.1.1 2001:db8:1::1
  gateway "$far" 10.0.2.1 2001:db8:2::1
  config '' '[[vrf]]' "name = \"$vrf\""
  port "$vrf-near" 10.0.1.1/24 2001:db8:1::1/64
  config "vrf = \"$vrf\""
  port "$vrf-far" 10.0.2.1/24 2001:db8:2::1/64
  config "vrf = \"$vrf\""
done <<<'red a b
blue c d'
link shared s 10.0.9.2/24 2001:db8:9::2/64
gateway s 10.0.9.1 2001:db8:9::1
port shared 10.0.9.1/24 2001:db8:9::1/64
start

# Five requests from HOST to each ADDRESS reach the host behind PORT, and hardly any packet the one behind OTHER:
# reaches HOST PORT-HOST PORT OTHER-HOST OTHER ADDRESS...
reaches() {
  local from=$1 there=$2 port=$3 elsewhere=$4 other=$5 to before
  shift 5
  for to; do
    before=("$(received "$there" "$port")" "$(received "$elsewhere" "$other")")
    pings "$from" "$to" || return
    [ "$(received "$there" "$port")" -ge $((before[0] + 5)) ] || { echo "not by $port"; return 1; }
    [ "$(received "$elsewhere" "$other")" -le $((before[1] + 2)) ] || { echo "by $other, too"; return 1; }
  done
}
unreachable() { fails on "$1" ping -n -c 2 -i 0.2 -W 1 "$2"; }

check "red's packets stay in red" reaches a b red-far d blue-far 10.0.2.2 2001:db8:2::2
check "blue's packets stay in blue" reaches c d blue-far b red-far 10.0.2.2 2001:db8:2::2
check "the router answers red" pings a 10.0.1.1
check "the router answers blue" pings d 10.0.2.1
check "the router answers blue in IPv6" pings d 2001:db8:2::1
check "an error comes from red's address" says 'From 10.0.1.1 .*exceeded' on a ping -n -c 1 -W 10 -t 1 10.0.2.2
check "and is blue's in blue" says 'From 10.0.2.1 .*exceeded' on d ping -n -c 1 -W 10 -t 1 10.0.1.2

check "programs are said to be reached in the default VRF alone" \
  says 'reaches it at 10\.0\.9\.1, 2001:db8:9::1$' on router "$LAB_BIN/millrace" --socket "$lab_socket" exec true

check "the default VRF is not reached from red" says 'From 10.0.1.1 .*Unreachable' on a ping -n -c 1 -W 10 10.0.9.2
check "nor red from the default VRF" says 'From 10.0.9.1 .*Unreachable' on s ping -n -c 1 -W 10 10.0.1.2
check "a route leads from red to the default VRF" millrace route add 10.0.9.0/24 lookup default --vrf red
check "one leads back" millrace route add 10.0.1.0/24 lookup red
check "red reaches the default VRF" pings a 10.0.9.2
check "and is reached from there" reaches s a red-near c blue-near 10.0.1.2
check "blue is not, and does not" unreachable c 10.0.9.2
check "the same in IPv6" millrace route add 2001:db8:9::/64 lookup default --vrf red
check "and back" millrace route add 2001:db8:1::/64 lookup red
check "red reaches the default VRF in IPv6" pings a 2001:db8:9::2
check "a look-up says where it goes" says 'then in VRF red: 10\.0\.1\.2/32 .*from neighbor' millrace route get 10.0.1.2

millrace route add 10.5.0.0/16 lookup blue --vrf red
millrace route add 10.5.0.0/16 lookup red --vrf blue
check "a loop leads nowhere" unreachable a 10.5.0.1
counted() { [ "$(drops vrf-loop)" -ge 2 ]; }
check "its packets are counted" within 10 counted

waiting() { equal "$(value "show routes --vrf $1" '[.routes[] | select(.parked) | .prefix] | join(" ")')" "$2"; }
names() { equal "$(value 'show vrfs' '[.[].name] | join(" ")')" "$1"; }
cp "$lab_config" "$lab/first.toml"
sed -i 's/"blue"/"green"/' "$lab_config"
check "a reload renames blue" millrace reload
check "its packets have their way as before" reaches c d blue-far b red-far 10.0.2.2 2001:db8:2::2
check "its name waits with its route" names "default red blue green"
check "as does what leads to it" waiting red 10.5.0.0/16
check "red goes on" reaches a b red-far d blue-far 10.0.2.2
cp "$lab/first.toml" "$lab_config"
check "another reload takes it back" millrace reload
check "all of it is in force" waiting red ""
check "and what nothing names is gone" names "default red blue"
millrace route del 10.0.9.0/24 --vrf red
millrace route del 10.0.1.0/24
check "without the leak red reaches the default VRF no more" unreachable a 10.0.9.2
sed -i '/^vrf = "red"/d' "$lab_config"
check "interfaces change their VRF" millrace reload
check "they are in the default one now" pings a 10.0.9.2
check "and blue goes on" reaches c d blue-far b red-far 10.0.2.2 2001:db8:2::2
