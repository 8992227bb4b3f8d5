# SPDX-License-Identifier: Apache-2.0
"""Says in which line of Python a rank waits, for `ctctl status` and ctrun's lines about a job that stands.

A thread looks once a second where the threads of this process are.  A call that it sees twice gets its place by
ct_note_place(); calls pay nothing for it.
"""

import atexit
import os
import sys
import threading

from ctrun._libct import lib

_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
_NOT_THE_PROGRAM = (_OURS, f"{os.sep}torch{os.sep}", "<frozen ")
_INTERVAL_S = 1.0


class _Watch:
    """A group is marked under the lock before it is destroyed, and places are noted under the lock."""

    def __init__(self):
        self.lock, self._over, self._thread = threading.Lock(), threading.Event(), None
        self._seen = set()

    def begin(self):
        with self.lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="ctrun places", daemon=True)
                self._thread.start()

    def end(self):
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self):
        while not self._over.wait(_INTERVAL_S):
            with self.lock:
                self._look()

    def _look(self):
        seen, frames = set(), sys._current_frames()
        main = _place_of(frames.get(threading.main_thread().ident))
        for thread, frame in frames.items():
            group, place = _call_of(frame)
            place = place or main  # a thread of ours or of torch's (autograd) works for loss.backward()
            if group is None or not place:
                continue
            key = (thread, id(frame), id(group), place)
            seen.add(key)
            if key in self._seen and not group.is_leaving:
                lib.ct_note_place(group._handle, place.encode())
        self._seen = seen


def _call_of(frame):
    """The group in one of whose calls a thread is, and the line of the program that made it."""
    group = None
    while frame is not None and frame.f_code.co_filename.startswith(_OURS):
        owner = frame.f_locals.get("self")
        owner = getattr(owner, "_group", owner)
        if hasattr(owner, "is_leaving"):
            group = owner
        frame = frame.f_back
    return group, _place_of(frame)


def _place_of(frame):
    """The innermost line of the program, "train.py:88 (step)"; empty if the stack has no line of the program."""
    while frame is not None and any(part in frame.f_code.co_filename for part in _NOT_THE_PROGRAM):
        frame = frame.f_back
    if frame is None or frame.f_code.co_filename == threading.__file__:
        return ""
    name = os.path.basename(frame.f_code.co_filename)
    function = frame.f_code.co_name
    return f"{name}:{frame.f_lineno}" + ("" if function == "<module>" else f" ({function})")


def of_thread(thread):
    """The line of the program at which a Python thread is."""
    return _place_of(sys._current_frames().get(thread.ident))


_watch = _Watch()
begin = _watch.begin


def leave(*groups):
    """Before they are destroyed."""
    with _watch.lock:
        for group in groups:
            group.is_leaving = True


atexit.register(_watch.end)
os.register_at_fork(after_in_child=_watch.__init__)  # the thread is not there, and may have had the lock
