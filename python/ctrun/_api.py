# SPDX-License-Identifier: Apache-2.0
"""The API of `import ctrun as ct`: groups, works and stores of libct."""

import atexit
import collections
import contextlib
import ctypes
import os
import threading
import weakref

from ctrun import _observer, _places
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
Message = collections.namedtuple("Message", "source tag count dtype")
Message.__doc__ = "A message that no receive has taken: the sender's rank, tag, number of elements and name of the dtype."
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
    """An asynchronous call.

    libct uses the call's buffers until wait() has returned or done() has returned True.  The work keeps the arrays
    alive, even if the program drops it.  After a receive, `source` is the sender's rank; otherwise it is None.
    """

    __slots__ = ("_group", "_handle", "_buffers", "_lock", "_ended", "_failure", "source", "__weakref__")

    def __init__(self, group, *buffers):
        """Must run before the call, so that the buffers are kept if something interrupts the call."""
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
        """Waits until the call is done, and returns None.  May be called repeatedly.

        timeout is in seconds (a number or a timedelta); None waits without a limit.  Raises TimedOut if the call is
        not done after that time; the call continues, and wait() may be called again.  Raises what the call itself
        would have raised.
        """
        if timeout is not None and not done_within(self.done, milliseconds(timeout) / 1000):
            raise TimedOut(f"the call was not done within {timeout} s; it continues")
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
        """Returns True if the call is done, so that wait() returns at once."""
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
    """Ranks that call collectives together.  All ranks call the same collectives in the same order.

    Arrays are objects with Python's buffer protocol (numpy, array.array, bytearray, memoryview) or DLPack (tensors
    of torch).  They must be contiguous and in host memory; the caller owns them.  Counts are in elements, timeouts
    in seconds.  `root`, `src` and `dst` are ranks in this group.  `op` is "sum", "avg", "product", "min", "max",
    "band", "bor" or "bxor".

    A collective with async_op=True returns a Work at once.  Otherwise it returns None when it is done.  Each method
    raises Error or a subclass of it if libct fails.  It raises ValueError if an array has the wrong number of
    elements, TypeError if the dtype of an array does not fit, and BufferError if an array is not contiguous or not
    writable.

    At the end of a `with` block the group is destroyed, or aborted if an exception leaves the block.
    """

    def __init__(self, handle, root=None):
        self._handle, self._gone = handle, False
        self._root = root  # None: it is one
        self._made, self._pending = set(), set()
        self.is_leaving = False
        _groups.add(self)
        if handle is not None:
            _observer.start()

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
        """This process's rank in the group, or -1 if it is not a member."""
        return lib.ct_rank(self._at())

    @property
    def size(self):
        """The number of ranks in the group, or -1 if there is no default group."""
        return lib.ct_size(self._at())

    @property
    def ranks(self):
        """The members' ranks in the root group, as a list ordered by their rank in this group."""
        size = self.size
        return list((ctypes.c_int * size).from_address(lib.ct_group_ranks(self._at()))) if size > 0 else []

    def set_timeout(self, seconds):
        """Sets the time limit of each later call, in seconds.

        A call that takes longer raises TimedOut, which names the missing ranks.
        """
        check(lib.ct_set_timeout(self._at(), milliseconds(seconds)))

    # ---- Groups of it ---------------------------------------------------------

    def new_group(self, ranks, timeout=None, name=None, local_sync=False):
        """Creates and returns a group of these ranks of this group.

        Every rank of this group must call it with the same list; with local_sync only the listed ranks must.  On a
        rank that is not listed, the new group's rank is -1, and each call on it raises Error.  timeout is the limit
        of each call in seconds; None is this group's limit.  Raises MismatchError if the lists differ.  The group
        ends with its root group, or earlier with destroy().
        """
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
        """Creates a group of the ranks that pass the same color, and returns it (MPI_Comm_split).

        Ranks are ordered by key, then by their rank in this group.  Every rank of this group must call it.  A rank
        with color < 0 gets a group of which it is not a member.
        """
        handle = ctypes.c_void_p()
        check(
            lib.ct_split_group(self._at(), integer(color, "color"), integer(key, "key"), ctypes.byref(handle))
        )
        return self._make(handle)

    def shrink(self, timeout=None):
        """Creates a group of the ranks that are left after a member died, and returns it.

        Each rank that is left must call it.  A rank that does not call within timeout seconds (None: this group's
        limit) is left out and gets TimedOut.  This group is broken from then on.  The caller must destroy() the new
        group.
        """
        handle = ctypes.c_void_p()
        check(lib.ct_shrink_group(self._at(), milliseconds(timeout), ctypes.byref(handle)))
        return Group(handle)

    def abort(self):
        """Breaks the group.

        Calls of this rank raise AbortedError, and calls of the other ranks raise PeerError.  The group must still be
        destroyed with destroy().
        """
        check(lib.ct_abort(self._at()))

    def destroy(self):
        """Leaves the group and frees it.

        Groups that were created from a root group (world, create_group(), shrink()) end with it.  Raises
        MismatchError if the ranks called different operations and no call has reported it; the group is destroyed in
        this case, too.
        """
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
        """Returns True on all ranks at the same step when the job shall stop, otherwise False.

        A program calls it once per step, on all ranks.
        """
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
        """Sets out[i] to op over every rank's array[i], with the same bits on all ranks.

        array and out have the same number of elements on all ranks.  Without out, the result replaces array.
        """
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
        """Copies array of root to array of all other ranks.  It has the same number of elements on all ranks."""
        root = integer(root, "root")
        buffer = Buffer(array, self.rank != root)
        return self._run(
            lib.ct_broadcast, async_op, buffer.address, buffer.count, buffer.dtype, root, keep=(buffer,)
        )

    def reduce(self, array, root=0, op="sum", out=None, async_op=False):
        """Sets out[i] at root to op over every rank's array[i].

        array and out have the same number of elements on all ranks.  Without out, the result replaces array at root.
        The arrays of the other ranks are not changed.
        """
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
        """Collects every rank's array in out, ordered by rank.

        Each array has n elements and out has size * n.  counts is a list with the number of elements of each rank,
        the same on all ranks; with it array has counts[rank] elements, and out has sum(counts).
        """
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
        """Collects every rank's array in root's out, ordered by rank.

        Each array has n elements and out has size * n.  counts is a list with the number of elements of each rank;
        with it out has sum(counts).  The other ranks may pass None as out.
        """
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
        """Copies part r of root's array to out of rank r.

        out has n elements and array has size * n.  counts is a list with the number of elements of each part; with
        it array has sum(counts).  The other ranks may pass None as array.
        """
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
        """Reduces every rank's array with op, and sets out of rank r to part r of the result.

        out has n elements and array has size * n.  counts is a list with the number of elements of each part, the
        same on all ranks; with it array has sum(counts), and out has counts[rank].
        """
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
        """Copies part j of rank i's array to part i of rank j's out.

        array and out have the same number of elements, a multiple of size.  send_counts and recv_counts are lists
        with the number of elements of each part; with them array has sum(send_counts), and out has sum(recv_counts).
        """
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
        """Waits until all ranks have called it."""
        return self._run(lib.ct_barrier, async_op)

    def monitored_barrier(self, timeout=None, wait_all=False):
        """Waits until all ranks have called it, and names the rank that does not come.

        After timeout seconds (None: the group's limit) rank 0 raises TimedOut, and the other ranks raise PeerError.
        With wait_all the message names all missing ranks.
        """
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
        """Sends array to rank dst.

        A large message blocks until rank dst receives it.  tag is a number from 0 to 2**31 - 1.
        """
        buffer = Buffer(array)
        dst, tag = integer(dst, "dst"), integer(tag, "tag")
        check(lib.ct_send(self._at(), buffer.address, buffer.count, buffer.dtype, dst, tag))

    def recv(self, array, src=ANY_SOURCE, tag=0):
        """Receives a message in array, and returns the rank of its sender.

        The array must have the count and dtype that were sent; otherwise it raises MismatchError.  tag must not be
        ANY_TAG.
        """
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
        """Waits for a message for which no receive was posted, and returns it as a Message.

        The message is not received: recv() gets it.
        """
        message = MessageFields()
        check(lib.ct_probe(self._at(), integer(src, "src"), integer(tag, "tag"), ctypes.byref(message)))
        return _described(message)

    def iprobe(self, src=ANY_SOURCE, tag=ANY_TAG):
        """Returns a Message as probe() does, or None if there is no such message now."""
        message, found = MessageFields(), ctypes.c_int(0)
        check(
            lib.ct_iprobe(
                self._at(), integer(src, "src"), integer(tag, "tag"), ctypes.byref(found), ctypes.byref(message)
            )
        )
        return _described(message) if found.value else None

    def isend(self, array, dst, tag=0):
        """Starts to send array to rank dst, and returns a Work.  array must not change until the work is done."""
        return self._message(lib.ct_isend, Buffer(array), dst, tag)

    def irecv(self, array, src=ANY_SOURCE, tag=0):
        """Posts a receive in array, and returns a Work, whose source is the sender's rank after wait().

        The array must not be used until the work is done.
        """
        return self._message(lib.ct_irecv, Buffer(array, True), src, tag)

    def _message(self, function, buffer, peer, tag):
        peer, tag = integer(peer, "the peer's rank"), integer(tag, "tag")
        work = Work(self, buffer)
        return work._begin(function, self._at(), buffer.address, buffer.count, buffer.dtype, peer, tag)

    # ---- Memory that peers reach ----------------------------------------------

    def alloc(self, count, dtype="u8"):
        """Allocates memory that the other ranks of this host read and write directly, so that calls need no copies.

        This is a collective: count and dtype must be the same on all ranks.  Returns a ctypes array of count * (size
        of dtype) bytes, filled with zeros; numpy.frombuffer(m, dtype) makes an array of it.  The memory is valid
        until free() or until the root group ends.  Raises Error on all ranks if one rank can't get the memory.
        """
        if dtype not in DTYPE:
            raise ValueError(f"dtype {dtype!r}: one of {', '.join(DTYPE)}")
        address = ctypes.c_void_p()
        size = integer(count * DTYPES[DTYPE[dtype]][1], "the bytes to allocate", 0, 2**63 - 1)
        check(lib.ct_mem_alloc(self._at(), size, ctypes.byref(address)))
        return (ctypes.c_ubyte * size).from_address(address.value)

    def free(self, memory):
        """Frees memory of alloc().  This is a collective.  Arrays of the memory must not be used any more."""
        check(lib.ct_mem_free(self._at(), ctypes.addressof(memory)))


def init(init_method=None, rank=-1, world_size=-1, store=None, timeout=None):
    """Joins the default group, and returns it when every rank has joined.

    Without arguments all settings come from the environment of ctrun, torchrun, mpirun or srun.  Without such an
    environment this process is alone.  init_method is "env://", "tcp://host:port" or "file:///path"; store is a
    Store to meet at instead, which stays the caller's.  timeout is the limit of init and of each call, in seconds;
    None is CT_TIMEOUT_MS or 30 minutes.  Raises TimedOut if ranks are missing, InvalidError if a setting is wrong,
    and MismatchError if ranks disagree.
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
    _observer.start()
    return world


def create_group(store, rank, size, timeout=None, name=None):
    """Creates and returns a group that is not part of the default group; init() is not needed.

    `size` callers, each with a different rank, meet at store.  Each group needs its own keys: pass
    store.prefix(...).  The store stays the caller's.  timeout is in seconds.  The caller must destroy() the group.
    """
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
    """Leaves the default group and all groups that were created from it."""
    world.destroy()


def is_initialized():
    """Returns True between init() and finalize()."""
    return bool(lib.ct_is_initialized())


def rank():
    """Returns this process's rank in the default group, or -1 before init()."""
    return lib.ct_rank(None)


def size():
    """Returns the number of ranks in the default group, or -1 before init()."""
    return lib.ct_size(None)


def local_rank():
    """Returns this process's number among the ranks of its host (LOCAL_RANK); 0 if it is alone."""
    return lib.ct_local_rank()


def restart_count():
    """Returns the number of restarts after a failure; 0 at the first start."""
    return lib.ct_restart_count()


def version():
    """Returns the version of libct, "major.minor.patch"."""
    return lib.ct_version().decode()


# The interpreter frees arrays while libct's threads still use those of works that are under way: these live for ever.
@atexit.register
def _keep_buffers():
    for group in list(_groups):
        with contextlib.suppress(Error):
            group._reap()
        for work in list(group._pending):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(work._buffers))
