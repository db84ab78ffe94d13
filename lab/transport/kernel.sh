# shellcheck shell=bash disable=SC2154
# The transport stack and the kernel's as peers, over a TUN device in a namespace. Sourced after lab.sh.

# shellcheck disable=SC2034 # used by the tests
stack_address=([4]=10.77.0.2 [6]=fd77::2)
# shellcheck disable=SC2034
kernel_address=([4]=10.77.0.1 [6]=fd77::1)
peer=$LAB_BIN/examples/peer
rounds=0

# Joins both anew: joined; LOSS, REORDER, DUPLICATE and SEED are the path's.
joined() {
  rounds=$((rounds + 1))
  part $rounds
  exec_on host "$lab_root/lab/transport/bridge" "tun$rounds" "$lab/bridge$rounds" "$lab/peer$rounds" "$lab/$rounds.pcap" &
  bridge=$!
  within 15 test -e "$lab/bridge$rounds" || fail "no bridge"
}

# Starts the stack: stack [connect LOCAL REMOTE PORT BYTES]; its words go to $lab/peer.log.
stack() {
  exec "$peer" "$lab/peer$rounds" "$lab/bridge$rounds" "$@" >"$lab/peer.log" 2>&1
}

# Ends what the last round has started.
part() {
  local process
  for process in ${bridge:-} ${stack:-}; do
    kill "$process" 2>/dev/null
    wait "$process" 2>/dev/null
  done
  bridge='' stack=''
  # The next one's words are not there until it has begun.
  rm -f "$lab/peer.log"
}

ours='(ip.src == 10.77.0.2 or ipv6.src == fd77::2)'
# What Wireshark has to say against what the stack has sent in all rounds.
faults() {
  local file
  local wrong='_ws.malformed or ip.checksum.status == "Bad" or tcp.checksum.status == "Bad" or udp.checksum.status == "Bad"'
  for file in "$lab"/*.pcap; do
    tshark -r "$file" -d tcp.port==1-65535,data -o ip.check_checksum:TRUE -o tcp.check_checksum:TRUE \
      -o udp.check_checksum:TRUE -Y "$ours and ($wrong)" 2>/dev/null
  done
}
no_faults() {
  says '10\.77\.0\.2|fd77::2' tshark -n -r "$lab/1.pcap" -c 100 -Y "$ours" || return
  equal "$(faults | head -n 5)" ''
}
