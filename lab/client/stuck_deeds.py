"""Deeds that let whoever receives a descriptor wait for it, as no signal ends: a file whose file system (FUSE) does not answer when
it is closed, and a socket whose lock its owner holds. After some seconds the user's judge is free again.

What only root can make, `AS_ROOT` makes before the process becomes its user: the deed finds it in `made`.
"""

import errno
import os
import select
import socket
import threading
import time

from endless import FOLDER, missing_page, mounted, serve
from hostile import PATIENCE, Ended, word
from session_deeds import Session

AS_ROOT = {"unclosed": mounted, "unexamined": missing_page}


def lacks(name):
    """Why that deed cannot be done here. None: it can be."""
    pid = os.fork()
    if pid == 0:
        status = 255
        try:
            AS_ROOT[name](0)
            status = 0
        except OSError as error:
            status = error.errno
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return os.strerror(status) if status else None


def presents(self, file):
    """Presents it as a listening socket again and again, whatever becomes of the one who receives it."""
    for _ in self.for_a_while(4):
        try:
            session = Session(self).hello()
            stack, _ = session.stack()
            reply, _ = session.ask({"listen": {"stack": stack, "weight": 1}}, [file])
            if word(reply) == "listening":
                self.note("!listens with what does not")
        except Ended as ended:
            self.note(str(ended))
        except OSError as error:
            self.note(errno.errorcode.get(error.errno, "error"))
        time.sleep(0.02)


def unclosed(self):
    """Hands over a file that cannot be closed, until the process that serves it ends."""
    # This one must not serve it: it would wait for itself when it closes the file.
    if os.fork() == 0:
        serve(self.made, self.rng.uniform(1, 4))
    os.close(self.made)
    presents(self, os.open(f"{FOLDER}/file", os.O_RDONLY))


def unexamined(self):
    """Hands over a socket that cannot be examined: a thread sends a page by it that is missing."""
    missing, page = self.made
    with socket.create_server(("127.0.0.1", 0)) as listener:
        locked = socket.create_connection(listener.getsockname())
        threading.Thread(target=os.write, args=(locked.fileno(), page), daemon=True).start()
        select.select([missing], [], [], PATIENCE)
        presents(self, locked.fileno())
        # The thread gets the page.
        os.close(missing)


DEEDS = [unclosed, unexamined]
