#!/usr/bin/env bash
# A change of 100,000 routes under traffic loses no packet; the table is all there afterwards.
. "$(dirname "$0")/lab.sh"
needs_millrace
two_hosts
two_ports
on b ip address add 20.77.88.1/32 dev lo
start

# 20.0.0.0/24 .. 21.134.159.0/24
awk 'BEGIN {for (i = 0; i < 100000; i++) printf "%d.%d.%d.0/24 via 10.0.2.2\n", 20 + i / 65536, i / 256 % 256, i % 256}' >"$lab/routes"
check "no route yet" says 'Net Unreachable' on a ping -n -c 1 -W 10 20.77.88.1
check "100,000 routes are loaded without loss" lossless millrace route load "$lab/routes"
check "the first is there" says '20.0.0.0/24' millrace route get 20.0.0.9
check "the last is there" says '21.134.159.0/24' millrace route get 21.134.159.9
check "and used" pings a 20.77.88.1
sed 's/via 10.0.2.2/blackhole/' "$lab/routes" >"$lab/black"
check "all are replaced without loss" lossless millrace route load "$lab/black"
check "and used: silence" fails on a ping -n -c 1 -W 1 20.77.88.1
check "one is taken away" millrace route del 20.77.88.0/24
check "and answers unreachable" says 'Net Unreachable' on a ping -n -c 1 -W 10 20.77.88.1
printf '20.0.0.0/24 via 10.0.2.2\n20.0.1.0/33 via 10.0.2.2\n' >"$lab/bad"
check "a bad line is refused with its place" says 'bad:2' millrace route load "$lab/bad"
check "nothing of that file is in force" says blackhole millrace route get 20.0.0.9
