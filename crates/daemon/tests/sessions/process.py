"""The beginning of a program that is a process with a stack.

Its arguments are the sessions socket and the version of what is spoken there.
"""
import json
import os
import socket
import sys
import time

channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
channel.connect(sys.argv[1])


def exchange(request, files=()):
    """The daemon's answer, and the descriptors that come with it."""
    said = json.dumps(request).encode()
    if files:
        socket.send_fds(channel, [said], files)
    else:
        channel.send(said)
    answer, received, *_ = socket.recv_fds(channel, 65536, 160)
    return json.loads(answer), received


def ask(request, files=()):
    """The daemon's answer. Descriptors that come along stay open."""
    return exchange(request, files)[0]


def open_stack(name):
    """The number of a stack that waits to be started, and its descriptors: that of its memory first."""
    ask({"hello": {"protocol": int(sys.argv[2]), "library": "test", "name": name}})
    asked = {"slots": 64, "capacity": 1984, "claims": 1024, "connections": 64}
    opened, files = exchange({"open-stack": asked})
    return opened["stack-opened"]["stack"], files


def begin(name):
    """The number of a stack that was started."""
    stack, _ = open_stack(name)
    ask({"start-stack": stack})
    return stack


