"""DNS responder: answers queries for IPv4 addresses of the names that it knows; all else goes on its way."""

import argparse
import ipaddress
import struct
import sys

import millrace

# Where IPv4, UDP and DNS begin in a frame with an IPv4 header without options.
IP, UDP, DNS = 14, 34, 42


def question(frame):
    """The name asked for, in lower case, and where the question ends; None for what is no query for an address."""
    if len(frame) < DNS + 12 or frame[12:15] != b"\x08\x00\x45" or frame[23] != 17:
        return None
    fragment = int.from_bytes(frame[20:22]) & 0x3FFF
    if fragment or frame[DNS + 2] & 0xF8 or frame[DNS + 4 : DNS + 6] != b"\0\1":
        return None
    name, at = b"", DNS + 12
    while at < len(frame) and 0 < frame[at] < 64:
        label = frame[at + 1 : at + 1 + frame[at]]
        if b"." in label:
            return None
        name += label.lower() + b"."
        at += 1 + frame[at]
    # A zero ends the name; then type A, class IN.
    return (name, at + 5) if frame[at : at + 5] == b"\0\0\1\0\1" else None


def checksum(header):
    total = sum(struct.unpack(f"!{len(header) // 2}H", header))
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF


def answer(frame, end, address):
    query = frame[DNS:end]
    # An answer with authority to one question; the name above, type A, class IN, a minute, four bytes.
    dns = query[:2] + bytes([0x84 | query[2] & 1, 0, 0, 1, 0, 1, 0, 0, 0, 0]) + query[12:]
    dns += bytes([0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]) + address.packed
    # No UDP checksum, as IPv4 allows.
    udp = frame[UDP + 2 : UDP + 4] + frame[UDP : UDP + 2] + struct.pack("!HH", 8 + len(dns), 0)
    ip = struct.pack("!HHHHBBH", 0x4500, 28 + len(dns), 0, 0, 64, 17, 0)
    ip += frame[IP + 16 : IP + 20] + frame[IP + 12 : IP + 16]
    ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    return frame[6:12] + frame[:6] + frame[12:14] + ip + udp + dns


def name_and_address(text):
    name, address = text.split("=")
    return name.rstrip(".").lower().encode() + b".", ipaddress.IPv4Address(address)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", metavar="NAME=ADDRESS", nargs="+", type=name_and_address)
    names = dict(parser.parse_args().names)
    client = millrace.Client("dns responder")
    (channel,) = client.open(protocol="udp", destination_port=53)
    while True:
        channel.wait()
        for packet in channel.receive():
            frame = bytes(packet)
            asked = question(frame)
            if asked and asked[0] in names:
                # An answer that finds no room is one that was lost: it is asked for again.
                channel.send_bytes(answer(frame, asked[1], names[asked[0]]), packet.port)
            else:
                channel.give_back([packet])
            channel.release([packet])


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
    except millrace.Error as error:
        sys.exit(f"dns_responder: {error}")
