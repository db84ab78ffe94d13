#!/usr/bin/env bash
# Bulk traffic through the router: TCP in both directions, UDP without loss.
. "$(dirname "$0")/lab.sh"
two_hosts
two_ports
start
transfers 10.0.2.2 2001:db8:2::2
check "TCP the other way" iperf a -c 10.0.2.2 -n 20M -R
check "IPv6 TCP the other way" iperf a -c 2001:db8:2::2 -n 20M -R
check "eight connections at once" iperf a -c 10.0.2.2 -n 20M -P 8
