#!/usr/bin/env python3
"""Numbered frames of an experimental EtherType (IEEE Std 802), which no kernel answers.

usage: marked.py send INTERFACE COUNT PAUSE     COUNT 0: until killed; PAUSE: seconds between two
       marked.py receive INTERFACE COUNT        waits for as many different ones, at most 30 s; says how many came
       marked.py reflected INTERFACE COUNT      sends as many; says how many came back with MAC addresses swapped
"""

import itertools
import socket
import sys
import time

MARK = 0x88B5
HERE, THERE = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")


def frame(number):
    return THERE + HERE + MARK.to_bytes(2, "big") + number.to_bytes(8, "big") + bytes(100)


def incoming(packets, count):
    """Numbers of those that come in, with their MAC addresses."""
    seen, end = {}, time.monotonic() + 30
    packets.settimeout(0.1)
    while len(seen) < count and time.monotonic() < end:
        try:
            data, address = packets.recvfrom(2048)
        except TimeoutError:
            continue
        if address[2] != socket.PACKET_OUTGOING:
            seen[int.from_bytes(data[14:22], "big")] = data[:12]
    return seen


def main():
    mode, interface, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(MARK))
    packets.bind((interface, MARK))
    packets.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    if mode == "send":
        for number in range(count) if count else itertools.count():
            packets.send(frame(number))
            time.sleep(float(sys.argv[4]))
    elif mode == "receive":
        print("listening", flush=True)
        print(len(incoming(packets, count)), flush=True)
    else:
        for number in range(count):
            packets.send(frame(number))
            time.sleep(0.001)
        print(sum(addresses == HERE + THERE for addresses in incoming(packets, count).values()))


main()
