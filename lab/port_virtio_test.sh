#!/usr/bin/env bash
# A virtio-user port: testpmd as the host (vhost-user) carries it on to host b. It is back when its peer is.
. "$(dirname "$0")/lab.sh"
needs_millrace
two_hosts
port left 10.0.1.1/24 2001:db8:1::1/64
device peer "virtio-user:$lab/virtio.sock" 10.0.2.1/24 2001:db8:2::1/64
start

# Host b's end of the link `right` is its network; testpmd holds the other end and the shared memory.
peer() { wire router "net_vhost0,iface=$lab/virtio.sock" net_af_packet0,iface=right; }
peer
check "IPv4" within 40 pings a 10.0.2.2
check "IPv6" within 20 pings a 2001:db8:2::2
check "full-size frames" pings a 10.0.2.2 -s 1472 -M "do"
check "the router answers" pings b 10.0.2.1
transfers 10.0.2.2 2001:db8:2::2

unwire
check "without its peer the port is down" within 20 says "link-down|gone" value "show ports" '.[] | select(.name == "peer") | .state'
check "the daemon goes on" pings a 10.0.1.1
peer
check "with a new peer it is back" within 40 pings a 10.0.2.2
