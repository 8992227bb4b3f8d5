# SPDX-License-Identifier: Apache-2.0
"""Works of the backend "ct": calls under way, and who waits for them."""

import contextlib
import ctypes
import threading
from datetime import timedelta

import torch
import torch.distributed as dist
from torch._C._autograd import _record_function_with_args_exit
from torch._C._distributed_c10d import _create_work_from_future

from ctrun._libct import Status, done_within, lib

ANY_SOURCE = -1


class Error(dist.DistBackendError):
    """A call of libct failed.  status is the ct_status, and the text is libct's message."""

    __module__ = "ctrun.torch_backend"  # where programs find it

    def __init__(self, status, sentence):
        super().__init__(sentence)
        self.status = status


class InvalidError(Error, ValueError):
    """CT_ERR_INVALID: an argument is wrong.  The call was refused and changed nothing."""

    __module__ = "ctrun.torch_backend"


def error_of(status):
    """Returns the exception for the status of this thread's last call."""
    sentence = lib.ct_last_error().decode(errors="replace")
    if status == Status.TIMEOUT:  # the words by which torch's users and tests know a timeout
        sentence = f"ct: Timed out in {sentence}"
    return (InvalidError if status == Status.INVALID else Error)(Status(status), sentence)


def finished(result):
    future = torch.futures.Future()
    future.set_result(result)
    return _create_work_from_future(future)


class Held(dist._Work):
    """torch hands the program a C++ object that forwards wait() and get_future() to this one (PyWorkHolder); complete
    that by add_missing_methods()."""

    def get_future(self):
        if _asks_for.flag:
            _asks_for.work = self
            raise RuntimeError("asked for the work")
        return self.future()

    def is_success(self):
        return self.exception() is None

    def exception(self):
        return None

    def result(self):
        return []

    def source_rank(self):
        return ANY_SOURCE

    def _source_rank(self):
        return self.source_rank()


class Together(Held):
    """Works of one coalesced batch."""

    def __init__(self, works):
        super().__init__()
        self._works = works

    def wait(self, timeout=None):
        failure = None
        for work in self._works:
            try:
                work.wait(timeout)
            except Error as error:
                failure = failure or error
        if failure is not None:
            raise failure
        return True

    def future(self):
        return torch.futures.collect_all([work.get_future() for work in self._works])

    def is_completed(self):
        return all(work.is_completed() for work in self._works)

    def exception(self):
        return next((work.exception() for work in self._works if work.exception() is not None), None)

    def result(self):
        return [tensor for work in self._works for tensor in work.result()]


class Work(Held):
    """Calls of libct that are under way together, and what is left to do here when they are done.  device: None, or the
    GPU whose streams can wait for them."""

    def __init__(self, group, handles, result, finish=None, keep=(), is_message=False, row=None, device=None):
        super().__init__()
        self._group, self._handles, self._result = group, handles, result
        self._finish, self._keep = finish, keep
        self._is_message, self._row, self._device = is_message, row, device
        self.is_in_stream = False  # a stream waits for it, and so will whoever ends the group
        self._future = self._begun = self._failure = None
        self._source = ANY_SOURCE
        self._lock = threading.Lock()
        group.pending.add(self)  # a program may drop it; its tensors are in use until it is done

    def wait(self, timeout=None):
        """Raises what the call itself would have raised.  timeout: 0 and None are the call's own limit."""
        wait_for(self, timeout)
        if self._device is not None and self._finish is None and self._let_stream_wait():
            return True
        self.complete()
        if self._failure is not None:
            raise self._failure
        return True

    def _let_stream_wait(self):
        """The host goes on.  False: the call failed, or its group."""
        with self._lock:
            stream = torch.cuda.current_stream(self._device)
            with torch.cuda.device(self._device):  # that of stream 0
                for handle in self._handles:
                    if lib.ct_wait_on_stream(handle, stream.cuda_stream):
                        return False
            self.is_in_stream = bool(self._handles)
            for tensor in self._keep.tensors() if self._keep else ():
                tensor.record_stream(stream)  # it may be freed now
            self._keep = ()
            return self._failure is None

    def complete(self):
        """Waits for the calls, once; what failed is kept for all who ask."""
        with self._lock:
            for handle in self._handles:
                source = ctypes.c_int(ANY_SOURCE)
                status = lib.ct_wait_from(handle, ctypes.byref(source))
                if status and self._failure is None:
                    self._failure = self._group.failed(status)
                self._source = source.value
            if self._handles and self._failure is None and self._finish is not None:
                try:
                    self._finish()
                    if (
                        self._device is not None
                    ):  # it copies in this thread's stream, and the program may wait in another stream
                        torch.cuda.current_stream(self._device).synchronize()
                except Exception as error:  # such as no memory for a copy: every thread that waits gets it
                    self._failure = error
            self._end()

    def give_up(self):
        """Its group is being destroyed, which ends the call."""
        with self._lock:
            if self._handles and self._failure is None:
                self._failure = Error(
                    Status.ABORTED, "the process group was destroyed before the call was done"
                )
            self._end()

    def _end(self):
        if self._row is not None:
            _end_row(self._row)
        self._handles, self._keep, self._finish, self._row = (), (), None, None
        self._group.pending.discard(self)

    def future(self):
        with self._lock:
            if self._future is not None:
                return self._future
            # Future.set_exception() would make the exception the value: torch's C++ code (DDP's) takes it for tensors.
            # What a callback raises is the error of the future that then() gave.
            self._begun = torch.futures.Future(devices=[self._device] if self._device is not None else None)
            self._future = self._begun.then(self._outcome)
            is_to_come = bool(self._handles) and self._group.settler.take(self, self._handles[-1], self._is_message)
        if not is_to_come:
            self.settle()
        return self._future

    def _outcome(self, _):
        if self._failure is not None:
            raise self._failure
        return self._result

    def settle(self):
        """Completes the future, and runs the program's callbacks."""
        self.complete()
        self._begun.set_result(None)

    def is_completed(self):
        with self._lock:
            return all(map(_is_done, self._handles))

    def exception(self):
        return self._failure

    def result(self):
        return self._result

    def source_rank(self):
        if self.is_in_stream:  # libct knows it when the message is there
            self.complete()
        return self._source


def _end_row(row):
    """Ends the profiler's row of a call in another thread.  If the thread that began the row ended it, the profiler
    would nest the row in the row that the program began last."""
    thread = threading.Thread(target=_record_function_with_args_exit, args=(row,), name="ctrun row", daemon=True)
    with contextlib.suppress(RuntimeError):  # at the end of Python no thread can start
        thread.start()
        thread.join()


def wait_for(work, limit):
    """On the host, for as long as a wait(limit) says; None and 0 say nothing."""
    if limit and limit > timedelta(0) and not done_within(work.is_completed, limit.total_seconds()):
        raise Error(Status.TIMEOUT, f"ct: Timed out after {limit} of wait(); the call continues")


def _is_done(handle):
    done = ctypes.c_int()
    lib.ct_test(handle, ctypes.byref(done))
    return bool(done.value)


class Settler:
    """The threads that complete the futures of a group's works.

    They wait in libct, without the GIL, for a collective that is done, and execute the collectives meanwhile.  They
    also run the program's callbacks, which may wait for other futures of the group.  So before a thread runs callbacks
    while other futures are to come, another one waits in libct.  Each message has its own thread, since it may be done
    long after later messages."""

    def __init__(self, group):
        self._owner, self._lock = group, threading.Condition()
        self._works = {}  # collectives whose futures are to come, by their tags
        self._threads, self._waiting = [], 0  # threads for collectives; how many of them do not run a callback
        self._callbacks = set()  # threads that run callbacks
        self._unsettled = 0
        self._is_over = False

    @property
    def _group(self):
        """For _places.py: the group in one of whose calls a thread is."""
        return self._owner if self._works else None

    def take(self, work, handle, is_message):
        """Returns False if the call is done, or the group's end has ended it."""
        done = ctypes.c_int()
        with self._lock:
            if not is_message and not self._is_over:
                self._owner._check(lib.ct_watch(handle, id(work), ctypes.byref(done)))
            if self._is_over or done:
                return False
            self._unsettled += 1
            if not is_message:
                self._works[id(work)] = work
                if not self._waiting:
                    self._start()
        if is_message:
            threading.Thread(target=self._settle_message, args=(work,), name="ctrun message", daemon=True).start()
        return True

    def _start(self):
        self._waiting += 1
        self._threads.append(threading.Thread(target=self._run, name="ctrun futures", daemon=True))
        self._threads[-1].start()

    def _run(self):
        tag = ctypes.c_void_p()
        while not self._is_over and not lib.ct_watched(self._owner._handle, ctypes.byref(tag)) and tag:
            with self._lock:
                work = self._works.pop(tag.value)
                self._waiting -= 1
                if self._works and not self._waiting:
                    self._start()
            self._settle(work)
            work = None
            with self._lock:
                self._waiting += 1

    def _settle_message(self, work):
        work.complete()
        self._settle(work)

    def _settle(self, work):
        thread = threading.current_thread()
        with self._lock:
            self._callbacks.add(thread)
            self._lock.notify_all()
        work.settle()
        with self._lock:
            self._callbacks.discard(thread)
            self._unsettled -= 1
            self._lock.notify_all()

    def end(self, limit_s):
        """Waits until the works are done, and then up to limit_s until their callbacks have returned.  Returns the
        threads whose callbacks have not.  Does not wait when a callback calls it to destroy the group."""
        late = []
        with self._lock:
            if not self._is_over and threading.current_thread() not in self._callbacks:
                self._lock.wait_for(lambda: self._unsettled == len(self._callbacks))
                if not self._lock.wait_for(lambda: not self._unsettled, limit_s):
                    late = list(self._callbacks)
            was_over, self._is_over = self._is_over, True
            threads = [thread for thread in self._threads if thread not in self._callbacks]
        if not was_over:
            lib.ct_watch_end(self._owner._handle)
        for thread in threads:
            thread.join()
        return late


# ---- What PyWorkHolder forgets -------------------------------------------------------------------


class _AsksFor(threading.local):
    flag, work = False, None


_asks_for = _AsksFor()


def _behind(holder):
    """The Work of ours that a PyWorkHolder of torch holds; None for any other work."""
    _asks_for.flag, _asks_for.work = True, None
    try:
        holder.get_future()
    except Exception:
        pass
    finally:
        _asks_for.flag = False
        work, _asks_for.work = _asks_for.work, None
    return work


_UNKNOWN = 100  # OpType::UNKNOWN: what a PyWorkHolder says it is


def _forward(name):
    own = getattr(dist.Work, name)

    def method(self):
        work = _behind(self) if type(self) is dist.Work and self._get_op_type() == _UNKNOWN else None
        return own(self) if work is None else getattr(work, name)()

    method.__name__, method.__doc__ = name, own.__doc__
    setattr(dist.Work, name, method)


def add_missing_methods():
    """torch (2.15) hands out works of Python backends in a PyWorkHolder, which forwards nothing but wait() and
    get_future(): is_completed() is False for ever, and a program that polls it never ends; source_rank() raises.
    docs/upstream/py-work-holder.md is the report.  Until torch does it these methods of torch.distributed.Work ask
    the work that is held; for works of other backends nothing changes."""
    for name in ("is_completed", "is_success", "exception", "result", "source_rank", "_source_rank"):
        _forward(name)
