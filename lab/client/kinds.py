"""Files of every kind that a process can hand over, and what each needs to stay as it is: functions that open one.

Descriptors are numbers: whoever gets them closes them.
"""

import os
import select
import socket


def regular(_rng):
    """A file without a name."""
    file = os.open("/dev/shm", os.O_TMPFILE | os.O_RDWR, 0o600)
    os.write(file, bytes(1 << 16))
    return [file]


def folder(rng):
    """A directory, or its path alone."""
    return [os.open("/", rng.choice([os.O_RDONLY, os.O_PATH]) | os.O_DIRECTORY)]


def pipe(rng):
    """An end of a pipe that nobody empties."""
    ends = list(os.pipe2(os.O_NONBLOCK))
    os.write(ends[1], bytes(1 << 15))
    rng.shuffle(ends)
    return ends


def epoll(_rng):
    """Files that are watched, an epoll instance among them."""
    inner, outer = select.epoll(), select.epoll()
    read, write = os.pipe()
    inner.register(read, select.EPOLLIN)
    outer.register(inner.fileno(), select.EPOLLIN)
    return [os.dup(outer.fileno()), os.dup(inner.fileno()), read, write]


def unsealed(rng):
    """Memory that nothing keeps from being cut off, or that it has sealed itself against nothing."""
    memory = os.memfd_create("unsealed", rng.choice([0, os.MFD_ALLOW_SEALING]))
    os.ftruncate(memory, 1 << 20)
    return [memory]


def unread(rng):
    """A socket with as many messages as it takes."""
    kind = rng.choice([socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM])
    full, sender = socket.socketpair(socket.AF_UNIX, kind)
    sender.setblocking(False)
    try:
        while True:
            sender.send(bytes(1024))
    except BlockingIOError:
        pass
    return [full.detach(), sender.detach()]


def nested(_rng):
    """Sockets in messages to one another that nobody reads, the innermost in one to itself."""
    files = []
    inside = None
    for _ in range(3):
        near, far = socket.socketpair(socket.AF_UNIX)
        socket.send_fds(near, [b"1"], [far.fileno() if inside is None else inside])
        inside = far.detach()
        files = [inside, near.detach(), *files]
    return files


KINDS = [regular, folder, pipe, epoll, unsealed, unread, nested]
