#!/usr/bin/env bash
# With nothing to do the daemon lets its cores rest.
. "$(dirname "$0")/lab.sh"
needs_millrace
two_hosts
two_ports
start
pings a 10.0.2.2 >/dev/null
sleep 2

# Processor time of the daemon so far: clock ticks, of which a second has CLK_TCK.
ticks() { awk '{print $14 + $15}' "/proc/$daemon/stat"; }
before=$(ticks)
sleep 10
used=$(($(ticks) - before))
echo "idle for 10 s: $used ticks of $(($(getconf CLK_TCK) * 10))"
check "under 2 % of one core" test "$used" -le $(($(getconf CLK_TCK) * 10 * 2 / 100))
check "and is awake at once" pings a 10.0.2.2
