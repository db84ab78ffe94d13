#!/usr/bin/env bash
# A new configuration takes effect without a lost packet; a wrong one changes nothing.
. "$(dirname "$0")/lab.sh"
needs_millrace
two_hosts
two_ports
on b ip address add 198.51.100.1/32 dev lo
start
cp "$lab_config" "$lab/first.toml"

more() {
  config '' '[[route]]' 'prefix = "198.51.100.0/24"' 'via = "10.0.2.2"'
  config '' '[[route]]' 'prefix = "2001:db8:f::/48"' 'via = "2001:db8:2::2"'
  config '' '[neighbors]' 'reachable-time = "20s"'
  millrace reload
}
less() { cp "$lab/first.toml" "$lab_config" && millrace reload; }
check "reload under traffic loses nothing" lossless more
check "the new route is used" pings a 198.51.100.1
check "taking it away loses nothing" lossless less
check "and it is gone" says 'Net Unreachable' on a ping -n -c 1 -W 10 198.51.100.1
back_and_forth() { for _ in {1..5}; do more && less || return 1; done; }
check "ten reloads lose nothing" lossless back_and_forth

silent() { config '' '[forwarding]' 'miss = "drop"' && millrace reload; }
check "switches change while traffic flows" lossless silent
check "a miss is dropped in silence now" says '1 packets transmitted, 0 received, 100% packet loss' on a ping -n -c 1 -W 1 198.51.100.1
check "and back" less

config '' '[[route]]' 'prefix = "198.51.100.0/24"' 'via = "10.0.2.2"'
# Requests that come before the route would be lost.
led() { equal "$(value 'route get 198.51.100.1' '.next_hops[0].interface')" right; }
hup() { kill -HUP "$daemon" && within 10 led && pings a 198.51.100.1; }
check "SIGHUP reloads too, without loss" lossless hup

config '' '[[route]]' 'prefix = "203.0.113.0/24"' 'via = "10.0.2.2"' '[[port]]' 'name = "left"' 'device = "nothing:1"'
wrong() { fails millrace reload; }
check "a wrong configuration is refused without loss" lossless wrong
check "the refusal names the line" says 'millrace.toml:[0-9]+: ' millrace reload
check "nothing of it is in force" says 'Net Unreachable' on a ping -n -c 1 -W 10 203.0.113.1
check "what was there still is" pings a 198.51.100.1

# A configuration that is found out only while it is applied: nothing of it stays, also not what a device was told first.
cp "$lab/first.toml" "$lab_config"
check "back to the first" millrace reload
bytes() { on router cat /sys/class/net/left/mtu; }
check "the port has its MTU" test "$(bytes)" -eq 1500
sed -i '/^name = "left"$/a mtu = 1400' "$lab_config"
check "another one is taken" lossless millrace reload
check "by the device too" test "$(bytes)" -eq 1400
sed -i 's/^mtu = 1400$/mtu = 1300/' "$lab_config"
config '' '[[port]]' 'name = "missing"' 'device = "afpacket:missing"'
check "a port that cannot be opened is refused" lossless fails millrace reload
check "the device is as it was" test "$(bytes)" -eq 1400
check "and the daemon too" equal "$(value 'show ports' '.[] | select(.name == "left") | .mtu')" 1400
