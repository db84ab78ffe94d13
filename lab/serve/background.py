#!/usr/bin/env python3
"""A server that puts itself into the background, and accepts only when it is told to: a line for each connection.

usage: background.py PORT FILE-WITH-ITS-PROCESS FILE-THAT-TELLS-IT
"""
import os
import socket
import sys
import time

port, process, go = sys.argv[1:]
listener = socket.create_server(("", int(port)), family=socket.AF_INET6, dualstack_ipv6=True)
if os.fork():
    os._exit(0)
os.setsid()
with open(process, "w") as file:
    file.write(str(os.getpid()))
while not os.path.exists(go):
    time.sleep(0.02)
while True:
    connection, _ = listener.accept()
    connection.sendall(b"served\n")
    connection.close()
