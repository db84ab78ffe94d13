"""How long somebody waited for the daemon, and how much of that was the daemon's own: not the scheduler's, which lets threads
that could run wait for a core, nor the hypervisor's, which takes the core away.

The kernel counts for each thread how long it was ready and did not run (`run_delay`, the second number of schedstat). What
the asking process, the daemon's threads and those that handle interrupts waited so while somebody waited for an answer is
not the daemon's. It may be more than what lay in the way of this one answer; it is less only by what threads waited that ended
meanwhile.
"""

import array
import glob
import os
import re
import socket
import struct
import threading
import time

TICK = 1 / os.sysconf("SC_CLK_TCK")
# Threads of others' users: nobody else waits for them.
OTHERS = re.compile(r"(user|serve|api)-[1-9]|strangers|closing")

# A thread waits for something to do.
IDLE = re.compile(r"(epoll_wait|poll_schedule_timeout\S*|futex_do_wait|futex_wait_queue)\+")


def stolen():
    """Seconds that the hypervisor has taken from all cores."""
    with open("/proc/stat") as file:
        return int(file.readline().split()[8]) * TICK


def server(path, kind=socket.SOCK_STREAM):
    """The process that listens at a Unix socket."""
    with socket.socket(socket.AF_UNIX, kind) as connection:
        connection.connect(path)
        return struct.unpack("iII", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]


class Waits:
    def __init__(self, daemon):
        """`daemon`: the number of its process."""
        self.tasks, self.threads = f"/proc/{daemon}/task", {}
        self.look("itself", "/proc/self/schedstat")
        for comm in glob.glob("/proc/[0-9]*/comm"):
            self.look_at(os.path.dirname(comm), lambda name: name.startswith("ksoftirqd/"))
        self.refresh()

    def look_at(self, task, wanted):
        try:
            with open(f"{task}/comm") as file:
                name = file.read().strip()
            if wanted(name):
                self.look(name, f"{task}/schedstat")
        except OSError:
            # It has ended.
            pass

    def look(self, name, path):
        self.threads[path] = name, os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def refresh(self):
        """Looks for threads of the daemon that are new."""
        for task in glob.glob(f"{self.tasks}/*"):
            if f"{task}/schedstat" not in self.threads:
                self.look_at(task, lambda name: not OTHERS.match(name))

    def delays(self):
        """Seconds that each has waited for a core so far."""
        delays = {}
        for path, (name, file) in list(self.threads.items()):
            try:
                delays[path] = name, int(os.pread(file, 64, 0).split()[1]) / 1e9
            except OSError:
                os.close(self.threads.pop(path)[1])
        delays[None] = "the hypervisor", stolen()
        return delays

    def measure(self, act):
        """Does something; gives what it gave, and the [`Wait`]."""
        self.refresh()
        before = self.delays()
        begun = time.monotonic()
        result = act()
        took = time.monotonic() - begun
        # Threads that have begun meanwhile waited all their time meanwhile.
        self.refresh()
        after = self.delays()
        held = ((name, delay - before.get(path, (name, 0.0))[1]) for path, (name, delay) in after.items())
        return result, Wait(took, sorted(((delay, name) for name, delay in held if delay > 0), reverse=True))


class Stacks:
    """Where the daemon's threads are in the kernel when somebody has waited for it for a while."""

    def __init__(self, daemon, after):
        """`daemon`: the number of its process; `after`: how long somebody has waited then, seconds."""
        self.tasks, self.after, self.seen = f"/proc/{daemon}/task", after, ""

    def __enter__(self):
        self.seen = ""
        self.timer = threading.Timer(self.after, self.look)
        self.timer.start()

    def __exit__(self, *_):
        self.timer.cancel()

    def look(self):
        """Notes each thread that does not merely wait for something to do."""
        threads = []
        for task in glob.glob(f"{self.tasks}/*"):
            try:
                name, state, stack = (self.read(f"{task}/{what}") for what in ("comm", "stat", "stack"))
            except OSError:
                continue
            state = state.rpartition(") ")[2][:1]
            calls = [line.split()[1].partition("+")[0] for line in stack.splitlines() if "+" in line]
            if state != "S" or not IDLE.search(stack):
                threads.append(f"{name.strip()} {state} {' < '.join(calls[:6])}")
        self.seen = "; ".join(threads)

    def read(self, path):
        with open(path) as file:
            return file.read()


class Wait:
    """Seconds until an answer, and what held back those who gave it."""

    def __init__(self, took, held):
        self.took, self.own = took, max(0.0, took - sum(delay for delay, _ in held))
        self.held = held[:3]

    def __str__(self):
        held = ", ".join(f"{name} {delay * 1e3:.1f}" for delay, name in self.held)
        return f"{self.took * 1e3:.1f} ms" + (f" (held back: {held})" if self.held else "")


class Summary:
    """What is to be said of many."""

    def __init__(self):
        self.times, self.worst, self.slowest = array.array("d"), Wait(0.0, []), Wait(0.0, [])

    def add(self, wait):
        self.times.append(wait.took)
        self.worst = max(self.worst, wait, key=lambda wait: wait.took)
        self.slowest = max(self.slowest, wait, key=lambda wait: wait.own)

    @property
    def own(self):
        """The most seconds that were the daemon's own."""
        return self.slowest.own

    def __len__(self):
        return len(self.times)

    def __str__(self):
        if not self.times:
            return "none"
        median = sorted(self.times)[len(self.times) // 2]
        return f"median {median * 1e3:.1f} ms, worst {self.worst}, of its own {self.own * 1e3:.1f} ms of {self.slowest}"
