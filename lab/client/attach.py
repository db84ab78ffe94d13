"""A client of the daemon's packet queues, written from docs/build.md alone: the standard library, no libmillrace.

usage: attach.py SOCKET MODE OPEN     OPEN: the request as JSON, as in {"take": "divert", "spread": "flow", ...}

MODE  what becomes of packets
echo     ends swapped (Ethernet, IP, UDP), sent by the port where they came from
return   back into the graph as they are
deaf     never looked at
hold     taken, never given back
keep     slots given back, but never the buffers that they refer to
garbage  random bytes all over the segment, for ever
absurd   marks of absurd lengths and ports in every slot of every ring, for ever
It writes 'attached' when it is, and what it was refused for.
"""

import array
import json
import mmap
import os
import random
import socket
import struct
import sys
import time

LINE = 64
GRAPH, REFERENCE = 1, 4


class Ring:
    """One ring in the segment: both ends' arithmetic."""

    def __init__(self, memory, place):
        self.sleeps = place["offset"]
        self.memory, self.start, self.slots = memory, place["offset"] + 2 * LINE, place["slots"]
        self.capacity = place["capacity"]
        self.stride = (-(-(4 + self.capacity) // LINE) | 1) * LINE
        self.position = 0

    def slot(self, position):
        return self.start + position % self.slots * self.stride

    def empty(self, position):
        return position // self.slots % 2 * 2

    def mark(self, position):
        return struct.unpack_from("<I", self.memory, self.slot(position))[0]

    def take(self):
        """The next slot: number of its port, flags and bytes; None: there is none."""
        word = self.mark(self.position)
        if word & 3 != self.empty(self.position) + 1:
            return None
        at, length = self.slot(self.position) + 4, word >> 2 & 0x3FFF
        return word >> 16 & 0xFF, word >> 25, bytes(self.memory[at : at + length])

    def give_back(self):
        struct.pack_into("<I", self.memory, self.slot(self.position), self.empty(self.position) ^ 2)
        self.position += 1

    def wake(self, bell):
        """Rings for a worker that has said that it sleeps."""
        if struct.unpack_from("<I", self.memory, self.sleeps)[0]:
            struct.pack_into("<I", self.memory, self.sleeps, 0)
            bell.send(b"\1")

    def send(self, packet, port, flags):
        if self.mark(self.position) & 3 != self.empty(self.position):
            return False
        at = self.slot(self.position)
        self.memory[at + 4 : at + 4 + len(packet)] = packet
        word = self.empty(self.position) + 1 | len(packet) << 2 | port << 16 | flags << 25
        struct.pack_into("<I", self.memory, at, word)
        self.position += 1
        return True


class Buffers:
    """The device's buffers in the segment, for a dedicated receive queue."""

    def __init__(self, memory, place):
        self.memory, self.place = memory, place

    def span(self, reference):
        number, offset, length = struct.unpack("<III", reference)
        at = self.place["offset"] + number * self.place["size"] + offset
        return slice(at, at + length)

    def read(self, reference):
        return bytes(self.memory[self.span(reference)])

    def write(self, reference, packet):
        self.memory[self.span(reference)] = packet


class Queues:
    """What an answer to an open brought: the segment mapped, its rings, and the bells that wake workers."""

    def __init__(self, opened, files):
        self.number, self.workers = opened["queues"], opened["workers"]
        self.memory = mmap.mmap(files[0], 0)
        rings = [pair for channel in opened["channels"] for pair in channel["rings"]]
        self.receive = [Ring(self.memory, pair[0]) for pair in rings]
        self.transmit = [Ring(self.memory, pair[1]) for pair in rings]
        self.buffers = Buffers(self.memory, opened.get("buffers"))
        channels = len(opened["channels"])
        self.bells = [socket.socket(fileno=file) for file in files[1 + channels : 1 + channels + self.workers]]


def exchange(connection, request):
    """A request and its answer; an answer of no bytes, at the end of the connection, is None."""
    connection.send(json.dumps(request).encode())
    files = array.array("i")
    reply, ancillary, _, _ = connection.recvmsg(65536, socket.CMSG_SPACE(160 * files.itemsize))
    for _, _, data in ancillary:
        files.frombytes(data[: len(data) // files.itemsize * files.itemsize])
    return json.loads(reply) if reply else None, files


def ask(connection, request):
    reply, files = exchange(connection, request)
    if "refused" in reply:
        print("refused:", reply["refused"]["kind"] + ":", reply["refused"]["message"], flush=True)
        sys.exit(3)
    return reply, files


def swapped(packet):
    """The frame of an answer: both ends of each layer exchanged."""
    macs, kind = packet[6:12] + packet[0:6], packet[12:14]
    if kind == b"\x08\x00":
        ip, rest = packet[14:26], packet[34:]
        ends = packet[30:34] + packet[26:30]
    else:
        ip, rest = packet[14:22], packet[54:]
        ends = packet[38:54] + packet[22:38]
    return macs + kind + ip + ends + rest[2:4] + rest[0:2] + rest[4:]


def main():
    path, mode, request = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(path)
    version = int(os.environ.get("PROTOCOL", "3"))
    more = json.loads(os.environ.get("MORE", "{}"))
    ask(connection, {"hello": {"protocol": version, "library": "python", "name": mode, **more}})
    reply, files = ask(connection, {"open": request})
    queues = Queues(reply["opened"], files)
    memory, buffers, receive, transmit = queues.memory, queues.buffers, queues.receive, queues.transmit
    ask(connection, {"start": queues.number})
    print("attached", flush=True)
    generator = random.Random(1)
    while True:
        if mode == "garbage":
            at = generator.randrange(0, len(memory) - 4096, 64)
            memory[at : at + 4096] = generator.randbytes(4096)
            continue
        if mode == "absurd":
            for ring in receive + transmit:
                for position in range(ring.slots):
                    struct.pack_into("<I", memory, ring.slot(position), generator.getrandbits(32))
            continue
        busy = False
        for at, (incoming, outgoing) in enumerate(zip(receive, transmit)):
            found = None if mode == "deaf" else incoming.take()
            if found is None:
                continue
            busy = True
            port, flags, slot = found
            if mode == "hold":
                incoming.position += 1
                continue
            if mode == "keep":
                incoming.give_back()
                continue
            reference = flags & REFERENCE
            packet = buffers.read(slot) if reference else slot
            if mode == "echo":
                packet = swapped(packet)
            if reference:
                buffers.write(slot, packet)
            outgoing.send(slot if reference else packet, port, reference | (GRAPH if mode == "return" else 0))
            incoming.give_back()
            outgoing.wake(queues.bells[at % queues.workers])
        if not busy:
            time.sleep(0.0005)


if __name__ == "__main__":
    main()
