"""Flow counter: counts copies of all packets by 5-tuple and shows the ten flows with the most bytes."""

import argparse
import collections
import heapq
import ipaddress
import sys
import time

import millrace

# Flows at most; packets of others are not counted.
MOST = 100_000


def flow(frame):
    """Protocol, source and destination with their ports, as bytes; None for what is neither IPv4 nor IPv6."""
    kind, ip, later = frame[12:14], frame[14:], 0
    if kind == b"\x08\x00" and len(ip) >= 20:
        protocol, source, destination, header = ip[9], ip[12:16], ip[16:20], (ip[0] & 15) * 4
        later = int.from_bytes(ip[6:8]) & 0x1FFF
    elif kind == b"\x86\xdd" and len(ip) >= 40:
        protocol, source, destination, header = ip[6], ip[8:24], ip[24:40], 40
    else:
        return None
    # A fragment behind the first has no ports.
    ports = ip[header : header + 4] if protocol in (6, 17) and not later else bytes(4)
    return (protocol, source, ports[:2], destination, ports[2:])


def end(address, port):
    return f"{ipaddress.ip_address(address)} {int.from_bytes(port)}"


def show(flows):
    if sys.stdout.isatty():
        print("\x1b[2J\x1b[H", end="")
    print(f"{'packets':>12} {'bytes':>15}  flow ({len(flows)} known)")
    top = heapq.nlargest(10, flows.items(), key=lambda item: item[1][1])
    for (protocol, source, from_port, destination, to_port), (packets, size) in top:
        ends = f"{end(source, from_port)} > {end(destination, to_port)}"
        print(f"{packets:>12} {size:>15}  {protocol} {ends}")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("every", metavar="SECONDS", type=float, nargs="?", default=1.0, help="between two tables (1)")
    parser.add_argument("ports", metavar="PORT", nargs="*", help="names of ports (all)")
    arguments = parser.parse_args()
    client = millrace.Client("flow counter")
    (channel,) = client.open(ports=arguments.ports, take="copy")
    flows = collections.defaultdict(lambda: [0, 0])
    due = time.monotonic() + arguments.every
    while True:
        channel.wait(max(0.0, due - time.monotonic()))
        packets = channel.receive(256)
        for packet in packets:
            key = flow(packet.data[:80].tobytes())
            if key and (key in flows or len(flows) < MOST):
                count = flows[key]
                count[0] += 1
                count[1] += len(packet)
        channel.release(packets)
        if time.monotonic() >= due:
            show(flows)
            due += arguments.every


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
    except millrace.Error as error:
        sys.exit(f"flow_counter: {error}")
