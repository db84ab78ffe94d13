"""Runs a program as on a kernel before 6.16, which can't forbid descriptors on a socket: `setsockopt(SO_PASSRIGHTS)` fails.

usage: before_6_16.py PROGRAM ARGUMENT...
"""

import ctypes
import os
import struct
import sys

SETSOCKOPT = {"x86_64": 54, "aarch64": 208}
SOL_SOCKET, SO_PASSRIGHTS, ENOPROTOOPT = 1, 83, 92
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000 | ENOPROTOOPT
# struct seccomp_data: the call's number, and the low words of its second and third argument.
NUMBER, LEVEL, OPTION = 0, 16 + 8, 16 + 16

steps = [
    (LOAD, 0, 0, NUMBER),
    (JUMP_IF_EQUAL, 0, 5, SETSOCKOPT[os.uname().machine]),
    (LOAD, 0, 0, LEVEL),
    (JUMP_IF_EQUAL, 0, 3, SOL_SOCKET),
    (LOAD, 0, 0, OPTION),
    (JUMP_IF_EQUAL, 0, 1, SO_PASSRIGHTS),
    (RETURN, 0, 0, FAIL),
    (RETURN, 0, 0, ALLOW),
]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
prctl = ctypes.CDLL(None, use_errno=True).prctl
for arguments in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0)):
    if prctl(*arguments) != 0:
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
os.execvp(sys.argv[1], sys.argv[1:])
