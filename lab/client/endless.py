"""What no signal ends: a file whose file system (FUSE) does not answer when it is closed or made, and a page that never comes
(userfaultfd), which holds up whoever has the kernel read or write it.

Root makes both. The tests of crates/daemon put this before programs of theirs.
"""

import ctypes
import errno
import fcntl
import mmap
import os
import signal
import struct

# linux/fuse.h
LOOKUP, FORGET, GETATTR, OPEN, FLUSH, INIT, CREATE, INTERRUPT, BATCH_FORGET = 1, 2, 3, 14, 25, 26, 35, 36, 42
DIRECTORY, REGULAR = 0o040755, 0o100644
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 0x40000
# linux/userfaultfd.h
USERFAULTFD = {"x86_64": 323, "aarch64": 282}
UFFDIO_API, UFFDIO_REGISTER = 0xC018AA3F, 0xC020AA00
UFFD_API, UFFDIO_REGISTER_MODE_MISSING = 0xAA, 1
# There is one everywhere, and this process needs nothing of it.
FOLDER = "/sys"
libc = ctypes.CDLL(None, use_errno=True)


def mounted(uid):
    """A file system for that user, in a mount namespace of this process: the descriptor by which it is served."""
    fuse = os.open("/dev/fuse", os.O_RDWR)
    options = b"fd=%d,rootmode=40000,user_id=%d,group_id=%d" % (fuse, uid, uid)
    private, plain = ctypes.c_ulong(MS_REC | MS_PRIVATE), ctypes.c_ulong(0)
    if (
        libc.unshare(CLONE_NEWNS) != 0
        or libc.mount(b"none", b"/", None, private, None) != 0
        or libc.mount(b"lab", FOLDER.encode(), b"fuse", plain, options) != 0
    ):
        raise OSError(ctypes.get_errno(), "mount")
    return fuse


def missing_page(_uid):
    """A page that nobody ever brings, and the descriptor that tells who waits for it."""
    number = USERFAULTFD.get(os.uname().machine, -1)
    missing = libc.syscall(number, os.O_CLOEXEC | os.O_NONBLOCK)
    if missing < 0:
        raise OSError(ctypes.get_errno(), "userfaultfd")
    page = mmap.mmap(-1, mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    fcntl.ioctl(missing, UFFDIO_API, bytearray(struct.pack("QQQ", UFFD_API, 0, 0)))
    pages = struct.pack("QQQQ", address, mmap.PAGESIZE, UFFDIO_REGISTER_MODE_MISSING, 0)
    fcntl.ioctl(missing, UFFDIO_REGISTER, bytearray(pages))
    return missing, page


def serve(fuse, seconds, has_file=True):
    """Serves a file system with one file for so long, and answers everything but that it is closed; without one, everything but that
    one is made. Never returns."""

    def attributes(inode):
        mode = DIRECTORY if inode == 1 else REGULAR
        return struct.pack("<QQQQQQIIIIIIIIII", inode, *[0] * 8, mode, 1, 0, 0, 0, 4096, 0)

    def answer(number, said=b"", error=0):
        os.write(fuse, struct.pack("<IiQ", 16 + len(said), -error, number) + said)

    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        while True:
            _, kind, number, inode = struct.unpack_from("<IIQQ", os.read(fuse, 1 << 20))
            if kind == INIT:
                answer(number, struct.pack("<IIIIHHIIHHII24x", 7, 31, 65536, 0, 16, 12, 65536, 1, 0, 0, 0, 0))
            elif kind == LOOKUP and not has_file:
                answer(number, error=errno.ENOENT)
            elif kind == LOOKUP:
                answer(number, struct.pack("<QQQQII", 2, 0, 1, 1, 0, 0) + attributes(2))
            elif kind == GETATTR:
                answer(number, struct.pack("<QII", 1, 0, 0) + attributes(inode))
            elif kind == OPEN:
                answer(number, struct.pack("<QII", 7, 0, 0))
            elif kind not in (FLUSH, CREATE, FORGET, BATCH_FORGET, INTERRUPT):
                answer(number, error=errno.ENOSYS)
    finally:
        os._exit(0)
