# SPDX-License-Identifier: Apache-2.0
"""progress - the progress line of a benchmark in Python, as progress.h has it for C: which case of how many,
for how long, and about how long still.  It stands on a terminal only, ours or ctrun's, and after the
first second; it begins with a carriage return and is taken away by blanks, by which ctrun knows a bar.
"""
import os
import stat
import sys
import threading
import time


def find_room():
    """How many characters the line may have; 0: there is none.  ctrun's variable is about its pipe."""
    if "CT_PROGRESS_ROOM" in os.environ and stat.S_ISFIFO(os.fstat(2).st_mode):
        return int(os.environ["CT_PROGRESS_ROOM"])
    if not os.isatty(2) or os.environ.get("TERM", "dumb") == "dumb":
        return 0
    return (os.get_terminal_size(2).columns or 80) - 1


class Progress:
    def __init__(self, program, of):
        self.program, self.of, self.done, self.what, self.stands = program, of, -1, "", 0
        self.room, self.began, self.lock = find_room(), time.monotonic(), threading.Lock()

    def case(self, what):
        """The next one begins."""
        self.done, self.what = self.done + 1, what
        self.show()

    def show(self):
        spent = time.monotonic() - self.began
        if self.room and spent >= 1:
            left = f", about {spent / self.done * (self.of - self.done):.0f} s to go" if self.done else ""
            self.put(f"{self.program}: {self.done + 1} of {self.of}, {spent:.0f} s{left}: {self.what}"[: self.room])

    def put(self, text):
        with self.lock:
            sys.stderr.write(f"\r{text:{self.stands}}" + ("" if text else "\r"))
            sys.stderr.flush()
            self.stands = len(text)

    def wipe(self):
        """Before other lines, and at the end."""
        if self.stands:
            self.put("")

    def keep_showing(self):
        """From now on each second, for cases that take many; the function that is returned ends it."""
        over = threading.Event()

        def run():
            while not over.wait(1):
                self.show()

        def end():
            over.set()
            thread.join()
            self.wipe()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return end
