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


def ask(request, files=()):
    """The daemon's answer. Descriptors that come along stay open."""
    said = json.dumps(request).encode()
    if files:
        socket.send_fds(channel, [said], files)
    else:
        channel.send(said)
    answer, *_ = socket.recv_fds(channel, 65536, 160)
    return json.loads(answer)


def begin(name):
    """The number of a stack that was started."""
    ask({"hello": {"protocol": int(sys.argv[2]), "library": "test", "name": name}})
    opened = ask({"open-stack": {"slots": 64, "capacity": 1984, "claims": 1024, "connections": 64}})
    stack = opened["stack-opened"]["stack"]
    ask({"start-stack": stack})
    return stack


