#!/usr/bin/env bash
# Ports on AF_XDP sockets.
LAB_PORT=afxdp
. "$(dirname "$0")/lab.sh"
needs_millrace
two_hosts
two_ports
start
check "IPv4" pings a 10.0.2.2
check "IPv6" pings a 2001:db8:2::2
check "full-size frames" pings a 10.0.2.2 -s 1472 -M "do"
check "the router answers" pings b 10.0.2.1
check "a long echo, in fragments, is answered by the router" pings b 10.0.2.1 -s 5000
check "in IPv6 too" pings b 2001:db8:2::1 -s 5000
transfers 10.0.2.2 2001:db8:2::2
