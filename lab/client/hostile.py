"""A hostile process of one user, as lab/client/deeds.py has them: what it asks for, and what it notes of the answers.

A note is the kind of the answer (`opened`), the kind of a refusal and the bound that it names, `ended` when the daemon closed
the connection, the name of an errno. One that begins with '!' says that something was granted that must not be.
"""

import collections
import re
import socket
import struct
import time

import attach

PROTOCOL = 3
# What nobody else waits for: only this may be diverted from ports that others use.
FOOD = {"protocol": "udp", "destination-port": 9}
PATIENCE = 15


class Ended(Exception):
    """The daemon closed the connection, or has refused it: the word for it."""


def word(reply):
    """An answer in a few words."""
    if reply is None:
        return "ended"
    kind, value = next(iter(reply.items())) if isinstance(reply, dict) else (reply, None)
    if kind != "refused":
        return kind
    bound = re.search(r"(?:clients|sessions)\.[\w-]+", value["message"])
    return " ".join([value["kind"]] + ([bound.group()] if bound else []))


class Hostile:
    """One process of one user. `ports`: those that it may use; none for a stranger. `made`: what root has made for its deed."""

    def __init__(self, path, api, ports, rng):
        self.path, self.api, self.ports, self.rng = path, api, ports, rng
        self.notes = collections.Counter()
        self.made = None

    def note(self, what, count=1):
        self.notes[what] += count

    def for_a_while(self, most=1.0):
        end = time.monotonic() + self.rng.uniform(0.05, most)
        while time.monotonic() < end:
            yield

    def connect(self):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        timeout = struct.pack("ll", PATIENCE, 0)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeout)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, timeout)
        connection.connect(self.path)
        return connection

    def ask(self, connection, request):
        """The answer, which is noted."""
        reply, files = attach.exchange(connection, request)
        self.note(word(reply))
        return reply, files

    def hello(self, connection, **more):
        hello = {"protocol": PROTOCOL, "library": "hostile", "name": "hostile", **more}
        reply, _ = attach.exchange(connection, {"hello": hello})
        if word(reply) != "welcome":
            raise Ended(word(reply))
        if not self.ports:
            self.note("!welcome for a stranger")
        return reply["welcome"]

    def attached(self):
        connection = self.connect()
        self.hello(connection)
        return connection

    def request(self, **more):
        """A request that could be granted, and that takes nothing from others that they would miss."""
        take = self.rng.choice(["copy", "divert", "nothing"])
        asked = {
            "ports": [] if self.rng.random() < 0.3 else self.ports,
            "take": take,
            "spread": self.rng.choice(["round-robin", "port", "flow"]),
            "filter": FOOD if self.shares() and take == "divert" else self.rng.choice([FOOD, {}]),
            "channels": self.rng.randint(1, 4),
            "slots": 1 << self.rng.randint(1, 8),
            "capacity": self.rng.choice([60, 256, 2048]),
        }
        return {**asked, **more}

    def shares(self):
        """Whether its ports are those of others as well."""
        return len(self.ports) > 1

    def open(self, connection, **more):
        reply, files = attach.exchange(connection, {"open": self.request(**more)})
        if word(reply) != "opened":
            raise Ended(word(reply))
        self.note("opened")
        return attach.Queues(reply["opened"], files), files

    def started(self, **more):
        """A whole client: its connection, its queues, their descriptors."""
        connection = self.attached()
        queues, files = self.open(connection, **more)
        reply, _ = attach.exchange(connection, {"start": queues.number})
        if word(reply) != "started":
            raise Ended(word(reply))
        return connection, queues, files

    def sees_end(self, connection):
        """Whether the daemon ends the connection in time, whatever it says before."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                if not connection.recv(1 << 16):
                    return True
            except ConnectionError:
                return True
            except BlockingIOError:
                pass
        return False
