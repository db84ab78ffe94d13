"""What a hostile process does to the daemon's sessions socket: stacks, sessions on stack workers and links that lie in their
memory, parcels of bytes that are no connections, files of every kind, carriers without end. Anybody may have a stack, so that
nothing is said of strangers here.
"""

import io
import json
import mmap
import os
import socket
import struct
import time

from hostile import PATIENCE, Ended, word
from kinds import KINDS

PROTOCOL = 11
# How `host` marks a connection's bytes, so that some of the garbage is read further than that.
MARK = b"MRHS"


class Session:
    """A connection to the sessions socket."""

    def __init__(self, hostile):
        self.hostile, self.rng = hostile, hostile.rng
        path = os.path.join(os.path.dirname(hostile.path), "sessions.sock")
        self.connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        timeout = struct.pack("ll", PATIENCE, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeout)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, timeout)
        self.connection.connect(path)

    def ask(self, request, files=()):
        """The answer, which is noted, and the descriptors that came with it. What happens meanwhile is passed over."""
        socket.send_fds(self.connection, [json.dumps(request).encode()], list(files))
        while True:
            bytes_, received, _, _ = socket.recv_fds(self.connection, 1 << 16, 160)
            reply = json.loads(bytes_) if bytes_ else None
            if reply is None:
                raise Ended("ended")
            if not isinstance(reply, dict) or "event" not in reply:
                self.hostile.note(word(reply))
                return reply, received

    def hello(self):
        reply, _ = self.ask({"hello": {"protocol": PROTOCOL, "library": "hostile", "name": "hostile"}})
        if word(reply) == "version":
            raise ValueError(f"the daemon does not speak version {PROTOCOL}: nothing is tried")
        if word(reply) != "welcome":
            raise Ended(word(reply))
        return self

    def stack(self):
        """A stack that was started: its number and its memory."""
        asked = {"slots": 64, "capacity": 1984, "claims": 1024, "connections": 64}
        reply, files = self.ask({"open-stack": asked})
        if word(reply) != "stack-opened":
            raise Ended(word(reply))
        number = reply["stack-opened"]["stack"]
        memory = mmap.mmap(files[0], 0)
        self.ask({"start-stack": number})
        for file in files:
            os.close(file)
        return number, memory

    def lodging(self):
        """The memory of sessions on a stack worker, which serves them from now on, and the bell that wakes it."""
        asked = {"sessions": self.rng.choice([64, 1024]), "chunks": self.rng.choice([16, 256])}
        reply, files = self.ask({"open-shared": asked})
        if word(reply) != "shared-opened":
            raise Ended(word(reply))
        memory = mmap.mmap(files[0], 0)
        self.ask({"start-stack": reply["shared-opened"]["stack"]})
        for file in files[:-1]:
            os.close(file)
        return memory, socket.socket(fileno=files[-1])

    def listens(self, stack, address="0.0.0.0"):
        """The number of a listener of that stack. `None`: it was refused."""
        listener = socket.socket()
        listener.bind((address, 0))
        listener.listen()
        reply, _ = self.ask({"listen": {"stack": stack, "weight": self.rng.randrange(256)}}, [listener.fileno()])
        listener.close()
        return reply["listening"]["listener"] if "listening" in reply else None

    def parcel(self):
        """A file of parcels, or of something like them, and how many it is said to have."""
        count = self.rng.choice([0, 1, 1, 1, 2, 64, 4096, 1 << 31])
        file = os.memfd_create("parcel")
        for _ in range(min(count, 64)):
            body = self.rng.randbytes(self.rng.choice([0, 1, 40, 700, 20000]))
            body = self.rng.choice([b"", MARK, MARK + b"\x01\0\0\0"]) + body
            length = self.rng.choice([len(body)] * 4 + [self.rng.getrandbits(32)])
            os.write(file, struct.pack("<I", length) + body)
        if self.rng.random() < 0.1:
            os.ftruncate(file, 1 << 40)
        return file, count


def scribble(rng, memory):
    """Writes bytes somewhere that are no marks, lengths and counters, or are the wrong ones."""
    at = rng.randrange(0, max(1, len(memory) - 4096), 64)
    memory[at : at + 4096] = rng.choice([rng.randbytes(4096), b"\xff" * 4096, b"\x01" * 4096])


def scribbling_stack(self):
    """Random bytes all over a stack's rings, claims and table of connections."""
    session = Session(self).hello()
    stack, memory = session.stack()
    session.listens(stack)
    session.ask({"lease": {"stack": stack, "first": None}})
    for _ in self.for_a_while():
        scribble(self.rng, memory)


def lodger(self):
    """Random bytes all over the memory of sessions on a stack worker, whose bell never rests."""
    session = Session(self).hello()
    memory, bell = session.lodging()
    for _ in self.for_a_while():
        scribble(self.rng, memory)
        try:
            bell.send(b"1", socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except OSError:
            # It is full, or the daemon has had enough.
            pass


def introduces(self):
    """Has a stack introduced to another one over and over, writes all over what they share, and closes links, its own or not."""
    server, client = Session(self).hello(), Session(self).hello()
    (there, _), (stack, _) = server.stack(), client.stack()
    listener = socket.socket()
    listener.bind(("0.0.0.0", 0))
    listener.listen()
    server.ask({"listen": {"stack": there, "weight": 1}}, [listener.fileno()])
    served = f"10.0.2.1:{listener.getsockname()[1]}"
    for _ in self.for_a_while():
        asked = {"stack": self.rng.choice([stack] * 4 + [there]), "destination": self.rng.choice([served] * 4 + ["10.0.2.1:1"])}
        reply, files = client.ask({"introduce": asked})
        made = reply.get("introduced", {}).get("made")
        if made:
            self.note("linked")
            scribble(self.rng, mmap.mmap(files[0], 0))
        for file in files:
            os.close(file)
        client.ask({"unlink": made["link"] if made and self.rng.random() < 0.7 else self.rng.getrandbits(32)})


def serves_anything(self):
    """Listens with whatever there is, leases whatever there is, and goes."""
    session = Session(self).hello()
    stack, _ = session.stack()
    for _ in self.for_a_while():
        number = self.rng.choice([stack, stack, stack + 1, self.rng.getrandbits(32)])
        what = self.rng.randrange(6)
        if what == 0:
            session.listens(number, self.rng.choice(["0.0.0.0", "127.0.0.1"]))
        elif what == 1:
            kinds = [lambda: os.memfd_create("none"), lambda: os.open("/dev/null", os.O_RDWR), lambda: socket.socket().detach()]
            file = self.rng.choice(kinds)()
            session.ask({"listen": {"stack": number, "weight": 1}}, [file] * self.rng.choice([1, 1, 2, 8]))
            os.close(file)
        elif what == 2:
            session.ask({"lease": {"stack": number, "first": self.rng.choice([None, 0, 10240, 65535])}})
        elif what == 3:
            session.ask({"unlisten": [number, self.rng.getrandbits(32)]})
        elif what == 4:
            address = self.rng.choice(["10.0.2.2:80", "0.0.0.0:0", "255.255.255.255:1", "[::1]:80", "[ff02::1]:65535"])
            session.ask({"route": {"protocol": self.rng.choice(["tcp", "udp"]), "destination": address}})
        else:
            session.ask({"close-stack": stack})
            stack, _ = session.stack()


def hands_files(self):
    """Hands over files of every kind in place of sockets and parcels, more than are asked for, and keeps them open."""
    session = Session(self).hello()
    stack, _ = session.stack()
    kept = []
    for _ in self.for_a_while():
        if len(kept) > 100:
            for _ in range(50):
                os.close(kept.pop(0))
        files = self.rng.choice(KINDS)(self.rng)
        kept += files
        reply, _ = session.ask(self.rng.choice([
            {"listen": {"stack": stack, "weight": 1}},
            {"deposit": {"stack": stack, "id": [1, 2], "at": 0}},
            {"abandon": {"stack": stack, "at": 0, "count": 1}},
            {"hand": {"stack": stack, "listener": 1, "at": 0, "count": 1}},
            {"wait-out": {"stack": stack, "at": 0}},
        ]), self.rng.choice([files[:1], files[:1], files, files[:1] * 8]))
        if word(reply) == "listening":
            self.note("!listens with a file that does not")


def keeps_files(self):
    """Keeps memory that it has closed: its file, the path to that, a mapping, or the file in a message that nobody reads."""

    def in_a_message(file):
        ends = socket.socketpair()
        socket.send_fds(ends[0], [b"1"], [file])
        return ends

    ways = [
        lambda file: io.FileIO(os.dup(file)),
        lambda file: io.FileIO(os.open(f"/proc/self/fd/{file}", os.O_PATH)),
        lambda file: mmap.mmap(file, 0),
        in_a_message,
    ]
    session = Session(self).hello()
    kept = []
    for _ in self.for_a_while():
        asked = {"slots": 64, "capacity": 1984, "claims": 1024, "connections": 64}
        reply, files = session.ask({"open-stack": asked})
        if word(reply) != "stack-opened":
            # It has as much as it may: it lets some go.
            del kept[: len(kept) // 2 + 1]
            continue
        kept.append(self.rng.choice(ways)(files[0]))
        for file in files:
            os.close(file)
        session.ask({"close-stack": reply["stack-opened"]["stack"]})
    self.note("kept", len(kept))


def carriers(self):
    """As many carriers as it gets; some are closed at once, and names that it has not are asked for."""
    session = Session(self).hello()
    stack, _ = session.stack()
    held = []
    for _ in self.for_a_while():
        carrier = Session(self)
        reply, _ = carrier.ask({"carrier": self.rng.choice([stack] * 5 + [self.rng.getrandbits(32)])})
        if "carried" in reply:
            held.append((carrier, reply["carried"]))
        if held and self.rng.random() < 0.5:
            carrier, name = held[self.rng.randrange(len(held))]
            name = self.rng.choice([name, [self.rng.getrandbits(64), self.rng.getrandbits(64)]])
            session.ask(self.rng.choice([{"decline": name}, {"withdraw": {"stack": stack, "id": name}}]))
        if held and self.rng.random() < 0.3:
            held.pop(self.rng.randrange(len(held)))[0].connection.close()


def parcels(self):
    """Deposits, abandons, hands over and leaves in TIME-WAIT what is no connection."""
    session = Session(self).hello()
    stack, _ = session.stack()
    listener = session.listens(stack)
    carrier = Session(self)
    reply, _ = carrier.ask({"carrier": stack})
    name = reply.get("carried", [1, 2])
    for _ in self.for_a_while():
        file, count = session.parcel()
        at = self.rng.choice([0, time.monotonic_ns(), (1 << 64) - 1])
        number = self.rng.choice([stack] * 4 + [stack + 1])
        session.ask(self.rng.choice([
            {"deposit": {"stack": number, "id": name, "at": at}},
            {"abandon": {"stack": number, "at": at, "count": count}},
            {"wait-out": {"stack": number, "at": at}},
            {"hand": {"stack": number, "listener": listener or 1, "at": at, "count": count}},
        ]), self.rng.choice([[file]] * 6 + [[], [file, file]]))
        os.close(file)
        if self.rng.random() < 0.2:
            session.ask({"withdraw": {"stack": stack, "id": name}})


DEEDS = [scribbling_stack, lodger, introduces, serves_anything, hands_files, keeps_files, carriers, parcels]
