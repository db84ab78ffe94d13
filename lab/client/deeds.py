"""What a hostile process does to the daemon's attach socket: one function for each kind of deed."""

import array
import ctypes
import encodings.idna  # what sockets need of it is loaded while this process may still read the library's folder
import errno
import fcntl
import json
import os
import re
import select
import socket
import struct
import time

import attach
from hostile import FOOD, PROTOCOL, word
from kinds import KINDS

# From Linux 6.16 on a socket can forbid descriptors (SO_PASSRIGHTS).
FORBIDS = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) >= (6, 16)
F_SEAL_SEAL = 0x1
FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE = 0x1, 0x2
libc = ctypes.CDLL(None, use_errno=True)


# Connections and messages.


def silent(self):
    """Connects again and again without a word."""
    held = []
    for _ in range(self.rng.randint(1, 40)):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.setblocking(False)
        try:
            connection.connect(self.path)
            held.append(connection)
            self.note("connected")
        except BlockingIOError:
            self.note("no place")
    # Sometimes for longer than one may take to say hello.
    time.sleep(self.rng.choice([0, 0.5, 1, 6]))


def storm(self):
    """Connects and goes away as fast as it can."""
    for _ in self.for_a_while(0.5):
        self.connect().close()
        self.note("connected")


def garbage(self):
    """Messages that are none, before and after hello."""
    rng = self.rng
    for _ in range(rng.randint(1, 10)):
        connection = self.attached() if rng.random() < 0.5 else self.connect()
        known = b'{"open":{"take":"copy","spread":"flow","channels":1,"slots":64,"capacity":2048}}'
        message = rng.choice([
            rng.randbytes(rng.randint(1, 3000)),
            b"[" * rng.randint(1, 60000),
            b'{"open":' * 5000,
            b" " * rng.randint(65000, 70000),
            known[: rng.randrange(len(known))],
            bytes(byte ^ (rng.random() < 0.02) << rng.randrange(8) for byte in known),
            b'{"hello":{"protocol":1e999}}',
            b'"ports"\0',
        ])
        connection.send(message)
        reply = connection.recv(1 << 16)
        self.note(word(json.loads(reply) if reply else None))


def hellos(self):
    """Says hello as nobody does."""
    rng = self.rng
    for _ in range(rng.randint(1, 10)):
        connection = self.connect()
        hello = {"protocol": rng.choice([PROTOCOL, 0, 2, 9, 1 << 31]), "library": "x" * rng.choice([0, 63, 64, 60000])}
        hello["name"] = rng.choice(["", "\0", "\x1b[2J", "n" * 64, "é" * 32, "two"])
        hello.update(rng.choice([{}, {"more": [{}] * 100}]))
        self.ask(connection, {"hello": hello})
        self.ask(connection, {"hello": hello})


def disorder(self):
    """The right requests at the wrong time."""
    rng = self.rng
    connection = self.attached() if rng.random() < 0.7 else self.connect()
    number = 1
    for _ in range(rng.randint(5, 40)):
        request = rng.choice(["ports", {"start": number}, {"start": 1 << 31}, {"close": number}, {"close": 0},
                              {"open": self.request()}, {"hello": {"protocol": PROTOCOL, "library": "", "name": "x"}}])
        reply, _ = self.ask(connection, request)
        if reply is None:
            return
        if word(reply) == "opened":
            number = reply["opened"]["queues"]


def flood(self):
    """Requests without an end, of which no answer is read."""
    connection = self.attached()
    for _ in self.for_a_while():
        request = self.rng.choice(["ports", {"open": self.request()}, {"close": self.rng.randint(0, 20)}])
        try:
            connection.send(json.dumps(request).encode(), socket.MSG_DONTWAIT)
            self.note("sent")
        except BlockingIOError:
            self.note("not taken")
            time.sleep(0.01)


def halves(self):
    """Closes one direction, or both, at any stage."""
    stage = self.rng.choice([self.connect, self.attached, lambda: self.started()[0]])
    connection = stage()
    how = self.rng.choice([socket.SHUT_RD, socket.SHUT_WR, socket.SHUT_RDWR])
    connection.shutdown(how)
    if how != socket.SHUT_RD:
        self.note("ended" if self.sees_end(connection) else "!not ended after a shutdown")
        return
    try:
        connection.send(b'"ports"')
        self.note("sent")
    finally:
        time.sleep(self.rng.random() / 5)


def descriptors(self):
    """Hands over a descriptor whose closing takes 20 s, or files of any kind, in messages and over bells."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sender = socket.create_connection(listener.getsockname())
        deaf, _ = listener.accept()
        sender.setblocking(False)
        try:
            while True:
                sender.send(bytes(1 << 16))
        except BlockingIOError:
            pass
        targets = [self.connect()]
        if self.ports:
            connection, queues, files = self.started()
            targets += [connection, *queues.bells, socket.socket(fileno=os.dup(files[1]))]
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 20))
        others = self.rng.choice(KINDS)(self.rng)
        rights = array.array("i", self.rng.choice([[sender.fileno()] * self.rng.randint(1, 100), others]))
        for target in targets:
            try:
                target.sendmsg([b'"ports"'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)], socket.MSG_DONTWAIT)
                self.note("!descriptors sent" if FORBIDS else "sent")
            except OSError as error:
                self.note(errno.errorcode[error.errno])
        for file in others:
            os.close(file)
        if FORBIDS:
            # Nobody else has it: its end must not keep this process.
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        deaf.close()


def api(self):
    """Goes to the API's socket, which is root's."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self.api)
            self.note("!connected")
    except PermissionError:
        self.note("EACCES")


# Requests for queues.


def absurd(self):
    """Opens of any size, for any port."""
    rng = self.rng
    connection = self.attached()
    numbers = [-1, 0, 1, 2, 3, 63, 64, 65, 1 << 14, 1 << 16, 1 << 20, 1 << 31, (1 << 64) - 1, 1e300, None, "x"]
    for _ in range(rng.randint(5, 30)):
        asked = self.request()
        for key in rng.sample(["channels", "slots", "capacity"], rng.randint(0, 3)):
            asked[key] = rng.choice(numbers)
        if rng.random() < 0.4:
            asked["ports"] = rng.choice([["nowhere"], ["left"] * 3000, ["left"], ["side"], ["\n"], "left"])
        if rng.random() < 0.3:
            asked["filter"] = rng.choice([{"protocol": "x"}, {"host": "::"}, {"host": "1.2.3"}, {"source-port": 65536}])
        if rng.random() < 0.3:
            asked["queue"] = {"port": rng.choice(["side", "left", ""]), "queue": rng.choice([0, 1, 65535, 65536])}
            asked.update(rng.choice([{}, {"ports": [], "take": "divert", "filter": {}, "channels": 1}]))
        wanted = set(asked["ports"]) | {queue["port"] for key, queue in asked.items() if key == "queue"}
        foreign = not wanted <= set(self.ports)
        reply, _ = self.ask(connection, {"open": asked})
        if word(reply) == "opened" and foreign:
            self.note("!a port of others")
        if reply is None:
            return


def bounds(self):
    """As much as it can get of one thing, and more."""
    rng = self.rng
    small = {"take": "nothing", "filter": {}, "channels": 1, "slots": 2, "capacity": 60}
    kind = rng.choice([
        {},
        {"channels": 64},
        {"take": "copy", "filter": FOOD},
        {"slots": 1 << 12, "capacity": 2048},
    ])
    held = [self.attached()]
    if rng.random() < 0.2:
        for _ in range(40):
            held.append(self.connect())
            self.hello(held[-1])
    for _ in range(40):
        connection = rng.choice(held)
        reply, _ = self.ask(connection, {"open": {**self.request(), **small, **kind}})
        if word(reply) != "opened":
            break
        if rng.random() < 0.5:
            self.ask(connection, {"start": reply["opened"]["queues"]})


def churn(self):
    """Opens, starts and closes without a rest."""
    connection = self.attached()
    for _ in self.for_a_while():
        queues, _ = self.open(connection)
        for request in {"start": queues.number}, {"close": queues.number}:
            self.ask(connection, request)


# Packets and shared memory.


def sends(self):
    """Fills its rings with packets, for its ports and others, as fast as it can."""
    _connection, queues, _ = self.started()
    rng = self.rng
    kinds = [b"\x08\x00", b"\x86\xdd", b"\x08\x06", b"\x81\x00", rng.randbytes(2)]
    for _ in self.for_a_while():
        for at, ring in enumerate(queues.transmit):
            frame = rng.randbytes(12) + rng.choice(kinds) + rng.randbytes(rng.randint(0, ring.capacity - 14))
            ring.send(frame[: rng.choice([0, 13, 60, len(frame)])], rng.randint(0, 255), rng.randint(0, 7))
            ring.wake(queues.bells[at % queues.workers])


def marks(self):
    """Writes marks of any length, port and flags into every slot of every ring."""
    _connection, queues, _ = self.started()
    for _ in self.for_a_while():
        for ring in queues.receive + queues.transmit:
            for position in range(ring.slots):
                struct.pack_into("<I", queues.memory, ring.slot(position), self.rng.getrandbits(32))


def scribble(self):
    """Random bytes all over the segment."""
    _connection, queues, _ = self.started()
    for _ in self.for_a_while():
        at = self.rng.randrange(0, max(1, len(queues.memory) - 4096), 64)
        queues.memory[at : at + 4096] = self.rng.randbytes(4096)


def deaf(self):
    """Receives and never looks."""
    _connection, _queues, _ = self.started(take="copy", filter={})
    time.sleep(self.rng.uniform(0.1, 2))


def holds(self):
    """Takes packets and never gives a slot back."""
    _connection, queues, _ = self.started(take="copy", filter={})
    for _ in self.for_a_while():
        for ring in queues.receive:
            if ring.take() is not None:
                ring.position += 1
        time.sleep(0.001)


def buffers(self):
    """A receive queue of its own: keeps the device's buffers, refers to those of others, writes to what it sent."""
    connection = self.attached()
    own = {"ports": [], "take": "divert", "filter": {}, "channels": 1, "slots": 256, "capacity": 60,
           "queue": {"port": self.ports[0] if self.ports else "side", "queue": 0}}
    queues, _ = self.open(connection, **own)
    self.ask(connection, {"start": queues.number})
    rng, incoming, outgoing = self.rng, queues.receive[0], queues.transmit[0]
    for _ in self.for_a_while():
        found = incoming.take()
        if found is not None:
            incoming.give_back()
        else:
            time.sleep(0.0005)
        reference = rng.choice([struct.pack("<III", *(rng.getrandbits(32) >> rng.randrange(32) for _ in range(3))),
                                struct.pack("<15I", *(rng.getrandbits(16) for _ in range(15)))])
        if found is not None and rng.random() < 0.3:
            reference = found[2]
        outgoing.send(reference, rng.randint(0, 2), rng.choice([0, 1, 4, 5, 8]))
        outgoing.wake(queues.bells[0])


def bells(self):
    """Rings without being asked, makes its ends block, watches them often, says all the time that it sleeps."""
    _connection, queues, files = self.started()
    ends = [socket.socket(fileno=file) for file in list(files[1 : 1 + len(files) - 1 - queues.workers])] + queues.bells
    watches = [select.epoll() for _ in range(self.rng.choice([0, 300]))]
    for epoll in watches:
        for end in ends[:3]:
            epoll.register(end, select.EPOLLIN | select.EPOLLOUT)
    for end in ends:
        fcntl.fcntl(end, fcntl.F_SETFL, self.rng.choice([0, os.O_NONBLOCK, os.O_ASYNC]))
    for _ in self.for_a_while():
        for ring in queues.receive + queues.transmit:
            struct.pack_into("<I", queues.memory, ring.sleeps, 1)
        for end in ends:
            try:
                end.send(b"\1" * self.rng.choice([1, 1, 4096]), socket.MSG_DONTWAIT)
                self.note("rung")
            except OSError as error:
                self.note(errno.errorcode[error.errno])


def closes(self):
    """Closes its ends of the bells, or shuts them, while packets come."""
    _connection, queues, files = self.started(take="copy", filter={})
    ends = [socket.socket(fileno=file) for file in list(files[1 : len(files) - queues.workers])] + queues.bells
    for end in ends:
        deed = self.rng.choice([end.close, lambda end=end: end.shutdown(self.rng.randint(0, 2)), lambda: None])
        deed()
    for _ in self.for_a_while():
        for ring in queues.receive + queues.transmit:
            struct.pack_into("<I", queues.memory, ring.sleeps, 1)
        time.sleep(0.0005)


def segment(self):
    """Takes pages out of the segment, cuts it, maps it again, writes to its file, seals it itself."""
    connection = self.attached()
    queues, files = self.open(connection)
    memory = files[0]

    def tries(what, granted):
        try:
            what()
            self.note(granted)
        except OSError as error:
            self.note(errno.errorcode[error.errno])

    def punch():
        mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE
        if libc.fallocate(memory, mode, ctypes.c_long(0), ctypes.c_long(4096)) != 0:
            raise OSError(ctypes.get_errno(), "fallocate")

    seal = self.rng.random() < 0.3
    if seal:
        tries(lambda: fcntl.fcntl(memory, fcntl.F_ADD_SEALS, F_SEAL_SEAL), "sealed")
    tries(lambda: os.ftruncate(memory, 0), "!cut")
    tries(punch, "a hole before the start")
    reply, _ = self.ask(connection, {"start": queues.number})
    if word(reply) == "started":
        for _ in self.for_a_while(0.3):
            tries(lambda: os.ftruncate(memory, self.rng.choice([0, 4096, 1 << 30])), "!cut")
            tries(punch, "!a hole")
            tries(lambda: attach.mmap.mmap(memory, 0), "mapped once more")
            tries(lambda: os.pwrite(memory, b"x", 0), "written")


# Processes.


def forks(self):
    """Dies, and leaves its connection and its memory to a child."""
    connection = self.started()[0] if self.rng.random() < 0.5 else self.attached()
    if os.fork() != 0:
        os._exit(0)
    self.note("ended" if self.sees_end(connection) else "!not ended when its process died")


DEEDS = [silent, storm, garbage, hellos, disorder, flood, halves, descriptors, api, absurd, bounds, churn, sends, marks,
         scribble, deaf, holds, buffers, bells, closes, segment, forks]
