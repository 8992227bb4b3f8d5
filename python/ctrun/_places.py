# SPDX-License-Identifier: Apache-2.0
"""Where the threads of this process are, as lines of Python."""

import os
import sys
import threading

_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
_PYTHONS = os.path.dirname(os.__file__) + os.sep
_INSTALLED = (_PYTHONS + "site-packages", _PYTHONS + "dist-packages")
_NOT_THE_PROGRAM = (_OURS, f"{os.sep}torch{os.sep}", "typing_extensions.py", "<frozen ")
_lock = threading.Lock()  # a group is marked under it before it is destroyed, and places are noted under it


def as_bytes(text):
    """For C.  A name of a file or thread can have bytes that are not UTF-8."""
    return text.encode(errors="replace")


def outward(frame):
    """The frames of a stack, the innermost first."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_of_program(path):
    if path.startswith(_PYTHONS) and not path.startswith(_INSTALLED):
        return False
    return not any(part in path for part in _NOT_THE_PROGRAM)


def of(frame):
    """The innermost line of the program, "train.py:88 (step)"; empty if the stack has no line of the program."""
    for at in outward(frame):
        name, function = at.f_code.co_filename, at.f_code.co_name
        if _is_of_program(name):
            return f"{os.path.basename(name)}:{at.f_lineno}" + ("" if function == "<module>" else f" ({function})")
    return ""


def of_thread(thread):
    """The line of the program at which a Python thread is."""
    return of(sys._current_frames().get(thread.ident))


def stacks(frames):
    """The stacks of all threads as text, the innermost line first.  Reads no source file, since a file can hang."""
    names, lines = {t.ident: t.name for t in threading.enumerate()}, []
    own = threading.get_ident()
    for thread, frame in sorted(frames.items(), key=lambda item: item[0] != threading.main_thread().ident):
        if thread == own:
            continue
        lines.append(f'Thread "{names.get(thread, thread)}"')
        lines += [f"    {f.f_code.co_name} ({f.f_code.co_filename}:{f.f_lineno})" for f in outward(frame)]
    return "\n".join(lines) + "\n"


def note_calls(lib, frames, main):
    """Notes the place of each call of libct that a thread is in.  main: the place of the main thread, for which other
    threads of ours or of torch's (autograd) work."""
    with _lock:
        for frame in frames.values():
            group, place = _call_of(frame)
            if group is not None and not group.is_leaving and (place or main):
                lib.ct_note_place(group._handle, as_bytes(place or main))


def _call_of(frame):
    """The group in one of whose calls a thread is, and the line of the program that made it."""
    group = None
    for at in outward(frame):
        if not at.f_code.co_filename.startswith(_OURS):
            return group, of(at)
        owner = at.f_locals.get("self")
        owner = getattr(owner, "_group", owner)
        if hasattr(owner, "is_leaving"):
            group = owner
    return group, ""


def leave(*groups):
    """Before they are destroyed."""
    with _lock:
        for group in groups:
            group.is_leaving = True


os.register_at_fork(after_in_child=_lock._at_fork_reinit)  # another thread may have had it
