# SPDX-License-Identifier: Apache-2.0
"""The API of `import ctrun as ct`: groups, works and stores of libct."""

import atexit
import collections
import contextlib
import ctypes
import os
import threading
import weakref

from ctrun import _places
from ctrun._buffers import Buffer
from ctrun._libct import (
    DTYPE,
    DTYPES,
    OPS,
    Error,
    GroupOptions,
    InitOptions,
    InvalidError,
    MessageFields,
    Status,
    TimedOut,
    check,
    done_within,
    failure,
    integer,
    lib,
    milliseconds,
    text,
)

ANY_SOURCE = -1
ANY_TAG = -1
Message = collections.namedtuple("Message", "source tag count dtype")  # of group.probe(); count is of elements
_MANY_WORKS = 64  # under way: those that are done are looked for, since a program may have dropped them


def _described(fields):
    return Message(fields.source, fields.tag, fields.count, DTYPES[fields.dtype][0])


def _op(name):
    try:
        return OPS[name]
    except KeyError:
        raise ValueError(f"op {name!r}: one of {', '.join(OPS)}") from None


def _same_dtype(send, recv):
    if send is not None and recv is not None and send.dtype != recv.dtype:
        raise TypeError(f"send has elements of {send.dtype_name}, recv of {recv.dtype_name}")


def _address(buffer):
    return buffer.address if buffer is not None else None


def _optional(array, writable=False):
    return None if array is None else Buffer(array, writable)


def _sizes(counts, size, what):
    if len(counts) != size:
        raise ValueError(f"{what}: {len(counts)} counts for {size} ranks")
    return (ctypes.c_size_t * size)(*[integer(n, what, 0, 2**64 - 1) for n in counts])


class Work:
    """An asynchronous call; its buffers belong to libct until wait() has returned or done() is true."""

    __slots__ = ("_group", "_handle", "_buffers", "_lock", "_ended", "_failure", "source", "__weakref__")

    def __init__(self, group, *buffers):
        """Before the call is made: whatever interrupts it, the buffers are kept."""
        self._group, self._handle, self._buffers = group, ctypes.c_void_p(), buffers
        self._lock, self._ended, self._failure = threading.Lock(), False, None
        self.source = None
        if len(group._pending) >= _MANY_WORKS:
            group._reap()
        group._pending.add(self)  # the program may drop a work that is under way

    def _begin(self, function, *arguments):
        status = function(*arguments, ctypes.byref(self._handle))
        if status:
            self._end(None)
            raise failure(status)
        return self

    def wait(self, timeout=None):
        """Waits until the call is done; of a receive, source is the sender's rank then.

        timeout: in seconds; TimedOut then, and a collective goes on.  Raises what the call itself would have raised.
        """
        if timeout is not None and not done_within(self.done, milliseconds(timeout) / 1000):
            raise TimedOut(f"the call was not done within {timeout} s; it goes on")
        with self._lock:
            if not self._ended:
                handle, self._handle = (
                    self._handle,
                    None,
                )  # ct_wait_from() frees it, even if we are interrupted
                if handle is None:
                    raise InvalidError(
                        "an earlier wait() for this call was interrupted: how it ended is not known"
                    )
                source = ctypes.c_int(-1)
                status = lib.ct_wait_from(handle, ctypes.byref(source))
                self.source = source.value if source.value >= 0 else None
                self._end(failure(status) if status else None)
        if self._failure is not None:
            raise self._failure

    def done(self):
        """True once the call is done; wait() then returns at once."""
        with self._lock:
            if self._ended or self._handle is None:
                return True
            done = ctypes.c_int(1)
            check(lib.ct_test(self._handle, ctypes.byref(done)))
            return bool(done.value)

    def _end(self, error):
        self._ended, self._failure = True, error
        self._handle, self._buffers = None, ()
        self._group._pending.discard(self)


class Group:
    """Ranks that make calls together.  All ranks make the same collectives in the same order.

    Arrays are any objects with Python's buffer protocol (numpy, array.array, bytearray, memoryview) or DLPack
    (tensors of torch), in host memory and contiguous.  With async_op=True a call returns a Work at once, else None when it is done.
    op is one of "sum", "avg", "product", "min", "max", "band", "bor", "bxor".
    As a context manager it is left at the end of the block.
    """

    def __init__(self, handle, root=None):
        self._handle, self._gone = handle, False
        self._root = root  # None: it is one
        self._made, self._pending = set(), set()
        self.is_leaving = False
        _groups.add(self)
        if handle is not None:
            _places.begin()

    def __enter__(self):
        self._pid = os.getpid()
        return self

    def __exit__(self, kind, *_):
        if self._gone or self._pid != os.getpid() or (self is world and not is_initialized()):
            return
        if kind is None:
            self.destroy()
        else:  # the others learn at once that this rank has left, and it does not wait for them
            lib.ct_abort(self._handle)

    def __repr__(self):
        return "<ctrun.Group: destroyed>" if self._gone else f"<ctrun.Group: rank {self.rank} of {self.size}>"

    # ---- What it is -----------------------------------------------------------

    @property
    def rank(self):
        """This process' rank; -1: it is no member."""
        return lib.ct_rank(self._at())

    @property
    def size(self):
        return lib.ct_size(self._at())

    @property
    def ranks(self):
        """The members' ranks in the root group, by their rank here."""
        size = self.size
        return list((ctypes.c_int * size).from_address(lib.ct_group_ranks(self._at()))) if size > 0 else []

    def set_timeout(self, seconds):
        """How long each later call may take; TimedOut names the ranks that are missing."""
        check(lib.ct_set_timeout(self._at(), milliseconds(seconds)))

    # ---- Groups of it ---------------------------------------------------------

    def new_group(self, ranks, timeout=None, name=None, local_sync=False):
        """A group of these ranks of this one.  Every rank makes the call; with local_sync only the members do."""
        options = GroupOptions(
            ctypes.sizeof(GroupOptions),
            text(name, "name") if name else None,
            None,
            milliseconds(timeout),
            self._at(),
            int(local_sync),
            None,
        )
        handle, ranks = ctypes.c_void_p(), [integer(r, "a rank") for r in ranks]
        check(
            lib.ct_new_group_with(
                (ctypes.c_int * len(ranks))(*ranks), len(ranks), ctypes.byref(options), ctypes.byref(handle)
            )
        )
        return self._make(handle)

    def split(self, color, key=0):
        """Ranks with the same color form a group, ordered by key; color < 0: none (MPI_Comm_split)."""
        handle = ctypes.c_void_p()
        check(
            lib.ct_split_group(self._at(), integer(color, "color"), integer(key, "key"), ctypes.byref(handle))
        )
        return self._make(handle)

    def shrink(self, timeout=None):
        """After a member died: the group of those that are left.  All of them make the call."""
        handle = ctypes.c_void_p()
        check(lib.ct_shrink_group(self._at(), milliseconds(timeout), ctypes.byref(handle)))
        return Group(handle)

    def abort(self):
        """Ends the calls of this group on all ranks; destroy() is still owed."""
        check(lib.ct_abort(self._at()))

    def destroy(self):
        """Leaves the group.  Groups that were made of a root group (world, create_group()) end with it."""
        handle = self._at()
        for group in (self, *self._made):
            group._reap()
        _places.leave(self, *self._made)
        check(lib.ct_destroy_process_group(handle))  # it completes collectives: their buffers are in use
        self._forget()

    def _at(self):
        if self._gone:
            raise InvalidError("the group was destroyed, or the one that it was made of")
        return self._handle

    def _forget(self):
        self._gone = self is not world  # which init() may make again
        for work in list(self._pending):
            work._end(InvalidError("the group was destroyed before the call was waited for"))
        for group in list(self._made):
            group._forget()
        self._made.clear()
        if self._root is not None:
            self._root._made.discard(self)

    def _reap(self):
        """Calls ct_wait() for each work that is done, since the program may have dropped it."""
        for work in list(self._pending):
            if work._handle is not None and work.done():
                with contextlib.suppress(Error):
                    work.wait()  # which keeps the failure for who asks

    # A group of no members has no size to check arrays against.
    def _members(self):
        size = self.size
        if size < 0:
            raise InvalidError("there is no default group: init() makes it")
        if self.rank < 0:
            raise Error("this rank is not a member of the group", Status.NOT_MEMBER)
        return size

    def _make(self, handle):
        group = Group(handle, self._root or self)
        group._root._made.add(group)
        return group

    def should_stop(self):
        """True on all ranks at the same step when the job shall stop.  Call it once per step."""
        answer = lib.ct_should_stop(self._at())
        if answer < 0:
            raise failure(answer)
        return bool(answer)

    # ---- Collectives ----------------------------------------------------------

    def _run(self, function, async_op, *arguments, keep=()):
        if not async_op:
            check(function(self._at(), *arguments, None))
            return None
        return Work(self, *keep)._begin(function, self._at(), *arguments)

    def all_reduce(self, array, op="sum", out=None, async_op=False):
        """out[i] = op over every rank's array[i], with the same bits on all ranks; in place without out."""
        send = Buffer(array, out is None)
        recv = send if out is None else self._like(send, out, 1)
        return self._run(
            lib.ct_all_reduce,
            async_op,
            send.address,
            recv.address,
            send.count,
            send.dtype,
            _op(op),
            keep=(send, recv),
        )

    def broadcast(self, array, root=0, async_op=False):
        """array of root is copied to all others."""
        root = integer(root, "root")
        buffer = Buffer(array, self.rank != root)
        return self._run(
            lib.ct_broadcast, async_op, buffer.address, buffer.count, buffer.dtype, root, keep=(buffer,)
        )

    def reduce(self, array, root=0, op="sum", out=None, async_op=False):
        """At root, out[i] = op over every rank's array[i]; in place without out."""
        root = integer(root, "root")
        at_root = self.rank == root
        send = Buffer(array, at_root and out is None)
        recv = self._like(send, out, 1) if at_root and out is not None else send
        return self._run(
            lib.ct_reduce,
            async_op,
            send.address,
            recv.address,
            send.count,
            send.dtype,
            _op(op),
            root,
            keep=(send, recv),
        )

    def all_gather(self, array, out, counts=None, async_op=False):
        """out has every rank's array, one behind the other.  counts: elements of each rank, where they differ."""
        send, recv = Buffer(array), Buffer(out, True)
        _same_dtype(send, recv)
        if counts is None:
            self._holds(recv, send.count * self._members(), "out")
            return self._run(
                lib.ct_all_gather,
                async_op,
                send.address,
                recv.address,
                send.count,
                send.dtype,
                keep=(send, recv),
            )
        self._holds(recv, sum(counts), "out")
        return self._run(
            lib.ct_all_gather_v,
            async_op,
            send.address,
            send.count,
            recv.address,
            _sizes(counts, self._members(), "all_gather"),
            None,
            send.dtype,
            keep=(send, recv),
        )

    def gather(self, array, out=None, root=0, counts=None, async_op=False):
        """At root, out has every rank's array, one behind the other."""
        root = integer(root, "root")
        send, recv = Buffer(array), _optional(out if self.rank == root else None, True)
        _same_dtype(send, recv)
        if self.rank == root and recv is None:
            raise ValueError("gather: root gives out")
        if counts is None:
            if recv is not None:
                self._holds(recv, send.count * self._members(), "out")
            return self._run(
                lib.ct_gather,
                async_op,
                send.address,
                _address(recv),
                send.count,
                send.dtype,
                root,
                keep=(send, recv),
            )
        if recv is not None:
            self._holds(recv, sum(counts), "out")
        return self._run(
            lib.ct_gather_v,
            async_op,
            send.address,
            send.count,
            _address(recv),
            _sizes(counts, self._members(), "gather"),
            None,
            send.dtype,
            root,
            keep=(send, recv),
        )

    def scatter(self, array, out, root=0, counts=None, async_op=False):
        """out of rank r is the r-th part of root's array; the others give None as array."""
        root = integer(root, "root")
        send, recv = _optional(array if self.rank == root else None), Buffer(out, True)
        _same_dtype(send, recv)
        if self.rank == root and send is None:
            raise ValueError("scatter: root gives the array")
        if counts is None:
            if send is not None:
                self._holds(send, recv.count * self._members(), "array")
            return self._run(
                lib.ct_scatter,
                async_op,
                _address(send),
                recv.address,
                recv.count,
                recv.dtype,
                root,
                keep=(send, recv),
            )
        if send is not None:
            self._holds(send, sum(counts), "array")
        return self._run(
            lib.ct_scatter_v,
            async_op,
            _address(send),
            _sizes(counts, self._members(), "scatter"),
            None,
            recv.address,
            recv.count,
            recv.dtype,
            root,
            keep=(send, recv),
        )

    def reduce_scatter(self, array, out, op="sum", counts=None, async_op=False):
        """out of rank r is the r-th part of op over every rank's array."""
        send, recv = Buffer(array), Buffer(out, True)
        _same_dtype(send, recv)
        if counts is None:
            self._holds(send, recv.count * self._members(), "array")
            return self._run(
                lib.ct_reduce_scatter,
                async_op,
                send.address,
                recv.address,
                recv.count,
                send.dtype,
                _op(op),
                keep=(send, recv),
            )
        self._holds(send, sum(counts), "array")
        self._holds(recv, counts[self.rank], "out")
        return self._run(
            lib.ct_reduce_scatter_v,
            async_op,
            send.address,
            recv.address,
            _sizes(counts, self._members(), "reduce_scatter"),
            send.dtype,
            _op(op),
            keep=(send, recv),
        )

    def all_to_all(self, array, out, send_counts=None, recv_counts=None, async_op=False):
        """Part j of rank i's array becomes part i of rank j's out.  Counts: elements of each part, where they differ."""
        send, recv, size = Buffer(array), Buffer(out, True), self._members()
        _same_dtype(send, recv)
        if (send_counts is None) != (recv_counts is None):
            raise ValueError("all_to_all: send_counts and recv_counts come together")
        if send_counts is None:
            if send.count % size:
                raise ValueError(f"all_to_all: {send.count} elements are no {size} equal parts")
            self._holds(recv, send.count, "out")
            return self._run(
                lib.ct_all_to_all,
                async_op,
                send.address,
                recv.address,
                send.count // size,
                send.dtype,
                keep=(send, recv),
            )
        self._holds(send, sum(send_counts), "array")
        self._holds(recv, sum(recv_counts), "out")
        return self._run(
            lib.ct_all_to_all_v,
            async_op,
            send.address,
            _sizes(send_counts, size, "send_counts"),
            None,
            recv.address,
            _sizes(recv_counts, size, "recv_counts"),
            None,
            send.dtype,
            keep=(send, recv),
        )

    def barrier(self, async_op=False):
        """No rank returns before all ranks have come."""
        return self._run(lib.ct_barrier, async_op)

    def monitored_barrier(self, timeout=None, wait_all=False):
        """A barrier that names the rank (with wait_all: all ranks) that did not come."""
        check(lib.ct_monitored_barrier(self._at(), milliseconds(timeout), int(wait_all)))

    def _like(self, send, out, times):
        recv = Buffer(out, True)
        _same_dtype(send, recv)
        self._holds(recv, send.count * times, "out")
        return recv

    @staticmethod
    def _holds(buffer, count, what):
        if buffer.count != count:
            raise ValueError(f"{what} has {buffer.count} elements, {count} are needed")

    # ---- Messages ---------------------------------------------------------------

    def send(self, array, dst, tag=0):
        buffer = Buffer(array)
        dst, tag = integer(dst, "dst"), integer(tag, "tag")
        check(lib.ct_send(self._at(), buffer.address, buffer.count, buffer.dtype, dst, tag))

    def recv(self, array, src=ANY_SOURCE, tag=0):
        """Returns the rank that sent it."""
        buffer, source = Buffer(array, True), ctypes.c_int(-1)
        check(
            lib.ct_recv(
                self._at(),
                buffer.address,
                buffer.count,
                buffer.dtype,
                integer(src, "src"),
                integer(tag, "tag"),
                ctypes.byref(source),
            )
        )
        return source.value

    def probe(self, src=ANY_SOURCE, tag=ANY_TAG):
        """Waits for a message that no receive was posted for: its Message, which recv() then gets."""
        message = MessageFields()
        check(lib.ct_probe(self._at(), integer(src, "src"), integer(tag, "tag"), ctypes.byref(message)))
        return _described(message)

    def iprobe(self, src=ANY_SOURCE, tag=ANY_TAG):
        """The same without waiting; None if there is none."""
        message, found = MessageFields(), ctypes.c_int(0)
        check(
            lib.ct_iprobe(
                self._at(), integer(src, "src"), integer(tag, "tag"), ctypes.byref(found), ctypes.byref(message)
            )
        )
        return _described(message) if found.value else None

    def isend(self, array, dst, tag=0):
        return self._message(lib.ct_isend, Buffer(array), dst, tag)

    def irecv(self, array, src=ANY_SOURCE, tag=0):
        return self._message(lib.ct_irecv, Buffer(array, True), src, tag)

    def _message(self, function, buffer, peer, tag):
        peer, tag = integer(peer, "the peer's rank"), integer(tag, "tag")
        work = Work(self, buffer)
        return work._begin(function, self._at(), buffer.address, buffer.count, buffer.dtype, peer, tag)

    # ---- Memory that peers reach ----------------------------------------------

    def alloc(self, count, dtype="u8"):
        """Memory that the other ranks of this host read and write where it lies: calls on it copy nothing in between.

        A collective; the same count and dtype on all ranks.  It is zeros, a ctypes array of bytes (numpy.frombuffer(m,
        dtype) makes an array of it), and lives until free() or the end of the root group.
        """
        if dtype not in DTYPE:
            raise ValueError(f"dtype {dtype!r}: one of {', '.join(DTYPE)}")
        address = ctypes.c_void_p()
        size = integer(count * DTYPES[DTYPE[dtype]][1], "the bytes to allocate", 0, 2**63 - 1)
        check(lib.ct_mem_alloc(self._at(), size, ctypes.byref(address)))
        return (ctypes.c_ubyte * size).from_address(address.value)

    def free(self, memory):
        """A collective: what alloc() gave; no array of it may be used any more."""
        check(lib.ct_mem_free(self._at(), ctypes.addressof(memory)))


def init(init_method=None, rank=-1, world_size=-1, store=None, timeout=None):
    """Joins the default group and returns it when every rank has come.

    Without arguments all comes from the environment: that of ctrun or torchrun, mpirun, srun; else this process is alone.
    """
    options = InitOptions(
        ctypes.sizeof(InitOptions),
        text(init_method, "init_method") if init_method else None,
        integer(rank, "rank"),
        integer(world_size, "world_size"),
        None,
        milliseconds(timeout),
        store.at() if store is not None else None,
    )
    check(lib.ct_init_process_group(ctypes.byref(options)))
    world.is_leaving = False
    _places.begin()
    return world


def create_group(store, rank, size, timeout=None, name=None):
    """A group of its own: `size` callers meet at store, each with another rank.  Each group needs keys of its own:
    give it store.prefix(...)."""
    options = GroupOptions(
        ctypes.sizeof(GroupOptions),
        text(name, "name") if name else None,
        None,
        milliseconds(timeout),
        None,
        0,
        None,
    )
    handle = ctypes.c_void_p()
    rank, size = integer(rank, "rank"), integer(size, "size")
    check(lib.ct_create_group(store.at(), rank, size, ctypes.byref(options), ctypes.byref(handle)))
    return Group(handle)


_groups = weakref.WeakSet()
world = Group(None)  # the default group, that of init(): CT_WORLD


def finalize():
    """Leaves the default group and all groups that were made from it."""
    world.destroy()


def is_initialized():
    """True between init() and finalize()."""
    return bool(lib.ct_is_initialized())


def rank():
    """This process' rank in the default group; -1 before init()."""
    return lib.ct_rank(None)


def size():
    """The default group's size; -1 before init()."""
    return lib.ct_size(None)


def local_rank():
    """LOCAL_RANK or its like; 0 when alone."""
    return lib.ct_local_rank()


def restart_count():
    """Restarts by ctrun so far; 0: the first start."""
    return lib.ct_restart_count()


def version():
    """libct's."""
    return lib.ct_version().decode()


# The interpreter frees arrays while libct's threads still use those of works that are under way: these live for ever.
@atexit.register
def _keep_buffers():
    for group in list(_groups):
        with contextlib.suppress(Error):
            group._reap()
        for work in list(group._pending):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(work._buffers))
