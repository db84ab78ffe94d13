#!/usr/bin/env bash
# ARP, ND and the API are answered while devices are opened and closed, a full table of routes is loaded and taken away, a
# million routes come by the API, and one list of 100,000. Prints how long the slowest answers took, on an idle machine far
# below 50 ms, and how long the million took, which may be 3 s with the programs of a release build (LAB_BIN).
. "$(dirname "$0")/lab.sh"
needs_millrace
two_hosts
two_ports
sed -i 's/^buffers = .*/buffers = 32768/' "$lab_config"
config '' '[limits]' 'routes4 = 1200000'
for n in 1 2 3 4 5 6; do link "more$n" b; done
start
cp "$lab_config" "$lab/first.toml"

# Runs a command while the prober asks: during WORDS COMMAND...
during() {
  local words=$1 status=0 prober
  shift
  mkfifo "$lab/hold"
  exec_on a "$lab_root/lab/prober" left 10.0.1.1 2001:db8:1::1 "$lab_socket" 60 <"$lab/hold" >"$lab/probed" &
  prober=$!
  exec 9>"$lab/hold"
  sleep 1
  "$@" >"$lab/said" 2>&1 || { status=1; cat "$lab/said"; }
  exec 9>&-
  wait "$prober" || status=1
  rm "$lab/hold"
  echo "$words: $(cat "$lab/probed")" >>"$lab/measured"
  return $status
}
again() { cp "$lab/first.toml" "$lab_config" && millrace reload; }
more_ports() { for n in 1 2 3 4 5 6; do port "more$n"; done; millrace reload; }
python3 -c '
for n in range(1000000):
    print(f"{16 + (n >> 16)}.{n >> 8 & 255}.{n & 255}.0/24 via 10.0.2.2")' >"$lab/full.txt"
full_table() { config '' '[routes]' "files = [\"$lab/full.txt\"]" && millrace reload; }
python3 -c '
import json
print(json.dumps([{"prefix": f"100.{64 + (n >> 16)}.{n >> 8 & 255}.{n & 255}/32", "kind": "blackhole"} for n in range(100000)]))' >"$lab/list.json"
list() { curl -s -f --unix-socket "$lab_socket" -H 'Content-Type: application/json' -d "@$lab/list.json" http://millrace/v1/routes; }

python3 - "$lab" <<'END'
import json, sys
for part in range(10):
    numbers = range(part * 100000, (part + 1) * 100000)
    via = [{"address": "10.0.2.2"}]
    routes = [{"prefix": f"{16 + (n >> 16)}.{n >> 8 & 255}.{n & 255}.0/24", "via": via} for n in numbers]
    with open(f"{sys.argv[1]}/part{part}.json", "w") as out:
        json.dump(routes, out)
END
million() {
  local began part took
  began=$(date +%s%3N)
  for part in 0 1 2 3 4 5 6 7 8 9; do
    curl -s -f --unix-socket "$lab_socket" -H 'Content-Type: application/json' -d "@$lab/part$part.json" http://millrace/v1/routes || return 1
  done
  took=$(($(date +%s%3N) - began))
  echo "a million routes by the API: $took ms" >>"$lab/measured"
  # Programs with debug information and without optimization take several times as long.
  case $LAB_BIN in */release) test "$took" -lt 3000 ;; esac
}

check "nothing happens" during "idle" sleep 2
check "six devices are opened" during "opening" more_ports
check "and closed" during "closing" again
check "a million routes come from a file" during "full table" full_table
total() { curl -s --unix-socket "$lab_socket" 'http://millrace/v1/routes?family=4&limit=1' | jq .total; }
check "they are there" test "$(total)" -ge 1000000
check "and go" during "taking it away" again
check "a million routes come by the API" during "a million by the API" million
check "they are there" test "$(total)" -ge 1000000
check "100,000 routes come by the API" during "list" list
cat "$lab/measured"
