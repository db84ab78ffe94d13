#!/usr/bin/env python3
"""Python's server with a process for each connection: echoes each line with the process that has read it.

usage: forking.py PORT
"""
import os
import socketserver
import sys


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(b"%d %s" % (os.getpid(), line))


class Server(socketserver.ForkingTCPServer):
    allow_reuse_address = True
    max_children = 200


with Server(("", int(sys.argv[1])), Handler) as server:
    server.serve_forever()
