#!/usr/bin/env python3
"""Connects once: prints the line that comes and how often the SYN had to be repeated, or why there is no connection.

usage: connect.py ADDRESS PORT
"""
import socket
import struct
import sys

# Of `struct tcp_info` (Linux, include/uapi/linux/tcp.h): tcpi_total_retrans, and bytes up to its end.
TOTAL_RETRANS, LENGTH = 100, 104

try:
    connection = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=20)
    line = connection.makefile().readline().strip()
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, LENGTH)
    print(line, "repeated", *struct.unpack_from("I", info, TOTAL_RETRANS))
except OSError as error:
    print(error)
