# SPDX-License-Identifier: Apache-2.0
"""The c10d backend "ct": torch.distributed on libct, for CPU and CUDA tensors.

    torch.distributed.init_process_group("ct")

torch finds it by the entry point group torch.distributed.backends.  A collective runs in the caller's thread, without
the GIL, unless the caller wants it asynchronous; then it runs on libct's thread of the group.  On CUDA tensors no call
waits on the host for the GPU (_torch_cuda.py).

The default group meets at torch's store.  A group of its ranks is made from it, by its members alone, and shares its
connections; so libct's sentences name ranks by their number in the world.
"""

import atexit
import contextlib
import ctypes
import functools
import os
import re
import threading
import weakref
from datetime import timedelta

import torch
import torch.distributed as dist

from ctrun import _observer, _places
from ctrun._libct import DTYPE, OPS, GroupOptions, Status, lib, milliseconds

try:
    from torch._C._distributed_c10d import Backend as _Base
    from torch._C._autograd import (
        _profiler_enabled,
        _record_function_with_args_enter,
        _record_function_with_args_exit,
    )
    from torch._C._distributed_c10d import ErrorType, ReduceOp

    from ctrun._torch_cuda import StreamWork, Streams
    from ctrun._torch_store import MeetingPlace
    from ctrun._torch_work import (
        ANY_SOURCE,
        Error,
        InvalidError,
        Settler,
        Together,
        Work,
        add_missing_methods,
        error_of,
        finished,
    )

    if "supports_shrinking" not in dir(_Base):
        raise ImportError("its c10d.Backend is no base class for Python")
except ImportError as error:  # torch 2.13 and earlier, or built without distributed
    raise ImportError(
        f'the backend "ct" needs torch 2.14 or later with torch.distributed; this is torch {torch.__version__}'
    ) from error

__all__ = ["Error", "InvalidError", "ProcessGroupCt", "register", "register_as_gloo"]

_DTYPES = {
    torch.int8: DTYPE["i8"],
    torch.uint8: DTYPE["u8"],
    torch.int16: DTYPE["i16"],
    torch.uint16: DTYPE["u16"],
    torch.int32: DTYPE["i32"],
    torch.uint32: DTYPE["u32"],
    torch.int64: DTYPE["i64"],
    torch.uint64: DTYPE["u64"],
    torch.float16: DTYPE["f16"],
    torch.bfloat16: DTYPE["bf16"],
    torch.float32: DTYPE["f32"],
    torch.float64: DTYPE["f64"],
    torch.bool: DTYPE["bool"],
    torch.complex64: DTYPE["c64"],
    torch.complex128: DTYPE["c128"],
    torch.float8_e4m3fn: DTYPE["f8e4m3"],
    torch.float8_e5m2: DTYPE["f8e5m2"],
}
_BYTE = DTYPE["u8"]
_ROW_NAMES = {
    "isend": "send",
    "irecv": "recv",
    "all_gather_list": "all_gather",
    "all_gather_v": "all_gather",
    "gather_list": "gather",
    "scatter_list": "scatter",
    "reduce_scatter_list": "reduce_scatter",
    "reduce_scatter_v": "reduce_scatter",
    "all_to_all_v": "all_to_all",
}
_MADE_OPS = 256  # from here on: ct_op_premul()'s
_OPS = {
    kind.value: OPS[name.lower()]
    for name, kind in ReduceOp.RedOpType.__members__.items()
    if name.lower() in OPS
}
_MANY_WORKS = 64  # under way: those that are done are looked for, since a program may have dropped them
_ERROR_TYPES = {Status.TIMEOUT: ErrorType.TIMEOUT, Status.PEER: ErrorType.REMOTE_ERROR}


def _count(tensor):
    """Elements and ct_dtype for a call that only moves them: what libct has no dtype for travels as bytes."""
    dtype = _DTYPES.get(tensor.dtype)
    if dtype is None:
        return tensor.numel() * tensor.element_size(), _BYTE
    return tensor.numel(), dtype


def _summed(tensor):
    """The ct_dtype for a reduction."""
    try:
        return _DTYPES[tensor.dtype]
    except KeyError:
        raise TypeError(f"ct: no reduction of elements of {tensor.dtype}") from None


def _addresses(tensors):
    return (ctypes.c_void_p * len(tensors))(*[t.data_ptr() for t in tensors])


def _sizes(counts):
    return (ctypes.c_size_t * len(counts))(*counts)


class _Buffers:
    """The memory of one call's tensors: dense copies of those that are not, and what is copied back afterwards.
    device: None, or the GPU that they are on."""

    __slots__ = ("_group", "inputs", "outputs", "device", "_back")

    def __init__(self, group):
        self._group, self.inputs, self.outputs, self.device, self._back = group, [], [], None, None

    def read(self, tensor):
        dense = tensor if self._is_plain(tensor) else self._copy(tensor)
        self.inputs.append(dense)
        return dense

    def write(self, tensor):
        if self._is_plain(tensor):
            self.outputs.append(tensor)
            return tensor
        self._check(tensor)
        return self._then_back(tensor, torch.empty_like(tensor, memory_format=torch.contiguous_format))

    def change(self, tensor):
        if self._is_plain(tensor):
            self.inputs.append(tensor)
            return tensor
        return self._then_back(tensor, self._copy(tensor))

    def flat(self, tensors):
        """One buffer with the elements of all."""
        return self.read(torch.cat([t.reshape(-1) for t in tensors]))

    def flat_for(self, tensors):
        """One buffer that is then copied to all."""
        for tensor in tensors:
            self._check(tensor)
        sizes = [t.numel() for t in tensors]
        flat = torch.empty(sum(sizes), dtype=tensors[0].dtype, device=tensors[0].device)
        for part, tensor in zip(flat.split(sizes), tensors):
            self._then_back(tensor, part.view(tensor.shape))
        return flat

    def finish(self):
        for tensor, dense in self._back or ():
            tensor.copy_(dense)

    @property
    def finisher(self):
        """What is left to do when the call is done; None: nothing."""
        return self.finish if self._back else None

    def tensors(self):
        """All that the call and finish() read and write."""
        return [*self.inputs, *self.outputs, *(t for pair in self._back or () for t in pair)]

    def _then_back(self, tensor, dense):
        self._back = (self._back or []) + [(tensor, dense)]
        return dense

    def _copy(self, tensor):
        self._check(tensor)
        return tensor.resolve_conj().resolve_neg().contiguous()

    def _check(self, tensor):
        if not (tensor.is_cpu or tensor.is_cuda) or tensor.layout != torch.strided:
            raise ValueError(
                f'the backend "{self._group.name_in_torch}" takes dense CPU and CUDA tensors; this one is on '
                f"{tensor.device}, {tensor.layout}"
            )
        if tensor.is_cuda:
            self.device = tensor.device

    def _is_plain(self, tensor):
        """Its elements lie in memory one behind the other, as they are."""
        if not tensor.is_cpu:
            self._check(tensor)
        return (
            tensor.layout is torch.strided
            and tensor.is_contiguous()
            and not tensor.is_conj()
            and not tensor.is_neg()
        )


class ProcessGroupCt(_Base):
    """A group of ranks for torch, with its ct_group.

    Calls of several threads are made one after the other.
    """

    def __init__(self, rank, size, options, name, make, store, parent=None, meeting=None):
        """make: gives the status of making the group whose handle it gets by reference.  store: torch's."""
        super().__init__(rank, size)
        self._options, self.name_in_torch, self._store = options, name, store
        self._parent, self._meeting = parent, meeting
        self._lock = threading.RLock()
        self.settler, self._streams = Settler(self), Streams()
        self._collector = None  # the thread that collects
        self._collected = None  # between start_coalescing() and end_coalescing(): works and calls
        self._sequence = 0
        self._last_error = ErrorType.SUCCESS
        self.pending = set()
        self.is_leaving = False
        self._pid = os.getpid()
        self._handle = ctypes.c_void_p()
        status = make(ctypes.byref(self._handle))
        if status:
            raise error_of(status) from (meeting.error if meeting is not None else None)
        self._limit = milliseconds(options._timeout)
        _living.add(self)
        _observer.start()
        _keep_alive[id(self)] = self  # torch keeps the C++ half only

    # ---- What torch asks ----------------------------------------------------------

    @property
    def options(self):
        return self._options

    # PyBackend (torch 2.15) calls itself for ever where these are inherited: docs/upstream/py-backend-recursion.md
    supports_splitting = property(lambda self: True)
    supports_coalescing = property(lambda self: True)
    supports_shrinking = property(lambda self: True)
    supports_reconfigure = property(lambda self: False)
    supports_window = property(lambda self: False)
    _supports_time_estimate = property(lambda self: False)
    supports_abort_hooks = property(lambda self: False)

    def supports_tensor_alloc(self, device):
        return False

    def getBackendName(self):
        return self.name_in_torch

    def _get_sequence_number_for_group(self):
        return self._sequence

    def _set_sequence_number_for_group(self):
        pass  # each rank counts its calls from 0

    def get_error(self):
        return self._last_error

    def set_timeout(self, timeout):
        with self._lock:
            self._limit = milliseconds(timeout)
            self._check(lib.ct_set_timeout(self._at(), self._limit))
        self._options._timeout = timeout

    _set_default_timeout = set_timeout

    def eager_connect_single_device(self, device):
        pass

    def _enable_collectives_timing(self):
        pass

    def _wait_for_pending_works(self):
        for work in list(self.pending):
            work.complete()

    # ---- Calls -----------------------------------------------------------------------

    def _at(self):
        """The handle: without one libct would take its own default group."""
        if self._handle is None:
            raise Error(Status.INVALID, "the process group was destroyed")
        return self._handle

    def _check(self, status):
        if status:
            raise self.failed(status)

    def failed(self, status):
        """The exception for what this thread's last call returned."""
        if status not in (Status.INVALID, Status.UNSUPPORTED):
            self._last_error = _ERROR_TYPES.get(status, ErrorType.COMM_ERROR)
        return error_of(status)

    def _collective(self, opts, result, buffers, calls, op=0):
        """calls: functions of libct and their arguments, but for the group and the work; op: theirs."""
        if self._collected is not None and self._collector == threading.get_ident():
            self._collected.append((calls, buffers, op))
            return None
        work, limit = None, opts.timeout
        with self._lock:
            handle = self._handle or self._at()
            self._sequence += 1
            if limit.days >= 0:  # else it is unset: -1 ms
                self._check(lib.ct_set_next_timeout(handle, milliseconds(limit)))
            if buffers.device is not None:
                work = self._in_stream(handle, calls, result, [buffers], opts.asyncOp)
            elif opts.asyncOp or _profiler_enabled():
                row = self._row(calls[0][0], buffers.inputs)
                work = ctypes.c_void_p()
                self._make(handle, calls, ctypes.byref(work))
                work = self._work([work], result, buffers.finisher, buffers, row=row)
            else:
                self._make(handle, calls, None)
        if op >= _MADE_OPS:
            lib.ct_op_free(op)  # calls that have begun keep it
        if buffers.device is not None:
            pass  # its stream has all there is to do
        elif work is None and buffers.finisher is not None:
            buffers.finish()
        elif work is not None and not opts.asyncOp:
            work.wait()
        return _DONE if work is None else work

    def _in_stream(self, handle, calls, result, parts, is_async):
        """Makes calls on CUDA tensors, in torch's current stream or in one of the group's behind it."""
        tensors = [t for buffers in parts for t in buffers.tensors()]
        device = next(buffers.device for buffers in parts if buffers.device is not None)
        row = self._row(calls[0][0], [t for buffers in parts for t in buffers.inputs])
        try:
            with self._streams.enter(device, is_async, tensors) as stream:
                self._check(lib.ct_set_stream(handle, stream))
                self._make(handle, calls, None)
                for buffers in parts:
                    buffers.finish()
                return StreamWork(device, result) if is_async else None
        finally:
            if row is not None:
                _record_function_with_args_exit(row)

    def _row(self, function, tensors, any_source=False):
        """Begins the profiler's row of a call, if there is one: "gloo:all_reduce".  The work ends it."""
        if not _profiler_enabled():
            return None
        name = function.__name__[3:]
        name = _ROW_NAMES.get(name, name)
        tensors = [torch.view_as_real(t) if t.is_complex() else t for t in tensors]
        name = f"{self.name_in_torch}:{'recvAnySource' if any_source else name}"
        return _record_function_with_args_enter(name, *tensors)

    def _make(self, handle, calls, work):
        if len(calls) == 1:
            call = calls[0]
            return self._check(call[0](handle, *call[1:], work))
        self._check(lib.ct_coalesce_begin(handle))
        refused = 0
        for function, *arguments in calls:
            refused = function(handle, *arguments, None)
            if refused:
                error = self.failed(refused)
                break
        status = lib.ct_coalesce_end(handle, work)
        if refused:
            raise error
        return self._check(status)

    def _work(self, handles, result, finish=None, keep=(), is_message=False, row=None, device=None):
        if (
            len(self.pending) >= _MANY_WORKS or device is not None
        ):  # streams wait for those: who else would end them?
            self.reap()
        work = Work(self, [h for h in handles if h], result, finish, keep, is_message, row, device)
        if row is not None:
            work.get_future()
        return work

    def reap(self):
        """Ends works that are done and that nobody waits for."""
        for work in list(self.pending):
            if work.is_completed():
                work.complete()

    def end_in_streams(self):
        """Waits for the works that streams wait for: their program has waited."""
        for work in list(self.pending):
            if work.is_in_stream:
                work.complete()

    def _op(self, reduce_op, tensor):
        kind = reduce_op.op.value
        return _OPS[kind] if kind in _OPS else self._premul(reduce_op.factor, tensor)

    @staticmethod
    def _premul(factor, tensor):
        scalar = torch.as_tensor(factor).detach().to("cpu", tensor.dtype).reshape(1)
        op = ctypes.c_int()
        status = lib.ct_op_premul(scalar.data_ptr(), _summed(tensor), ctypes.byref(op))
        if status:
            raise error_of(status)
        return op.value

    # ---- Collectives -----------------------------------------------------------------

    def broadcast(self, tensors, opts):
        buffers = _Buffers(self)
        change = buffers.change if opts.rootRank != self.rank() else buffers.read
        dense = [change(t) for t in tensors]
        calls = [(lib.ct_broadcast, t.data_ptr(), *_count(t), opts.rootRank) for t in dense]
        return self._collective(opts, tensors, buffers, calls)

    def allreduce(self, tensors, opts):
        if tensors[0].layout != torch.strided:
            return self.allreduce_sparse(tensors, opts)
        buffers, op, calls = _Buffers(self), self._op(opts.reduceOp, tensors[0]), []
        for tensor in tensors:
            t = buffers.change(tensor)
            address = t.data_ptr()
            calls.append((lib.ct_all_reduce, address, address, t.numel(), _summed(t), op))
        return self._collective(opts, tensors, buffers, calls, op)

    allreduce_coalesced = allreduce

    def reduce(self, tensors, opts):
        buffers, root, op = _Buffers(self), opts.rootRank, self._op(opts.reduceOp, tensors[0])
        dense = [(buffers.change if root == self.rank() else buffers.read)(t) for t in tensors]
        calls = [(lib.ct_reduce, t.data_ptr(), t.data_ptr(), t.numel(), _summed(t), op, root) for t in dense]
        return self._collective(opts, tensors, buffers, calls, op)

    def allgather(self, outputs, inputs, opts):
        buffers = _Buffers(self)
        calls = [self._all_gather(buffers, out, source) for out, source in zip(outputs, inputs)]
        return self._collective(opts, [t for out in outputs for t in out], buffers, calls)

    def _all_gather(self, buffers, outputs, source):
        self._check_list(outputs, source, "all_gather's output list", may_be_uneven=True)
        counts = [t.numel() for t in outputs]
        if counts[self.rank()] != source.numel():
            raise ValueError(
                f"all_gather: the input has {source.numel()} elements, the place for it in the output "
                f"list {counts[self.rank()]}"
            )
        source = buffers.read(source)
        count, dtype = _count(source)
        if len(set(counts)) == 1:
            places = _addresses([buffers.write(t) for t in outputs])
            return lib.ct_all_gather_list, source.data_ptr(), places, count, dtype
        flat = buffers.flat_for(outputs)
        return (
            lib.ct_all_gather_v,
            source.data_ptr(),
            count,
            flat.data_ptr(),
            self._counts(outputs),
            None,
            dtype,
        )

    def allgather_coalesced(self, output_lists, inputs, opts):
        """output_lists[i][k] gets rank i's inputs[k]."""
        buffers = _Buffers(self)
        calls = [
            self._all_gather(buffers, [outputs[k] for outputs in output_lists], source)
            for k, source in enumerate(inputs)
        ]
        return self._collective(opts, [t for outputs in output_lists for t in outputs], buffers, calls)

    def all_gather_single(self, output, source, opts):
        return self.all_gather_single_coalesced([output], [source], opts)

    def all_gather_single_coalesced(self, outputs, inputs, opts):
        buffers, calls = _Buffers(self), []
        for output, source in zip(outputs, inputs):
            self._check_times("all_gather_single", output, source)
            send, recv = buffers.read(source), buffers.write(output)
            calls.append((lib.ct_all_gather, send.data_ptr(), recv.data_ptr(), *_count(send)))
        return self._collective(opts, outputs, buffers, calls)

    def gather(self, outputs, inputs, opts):
        buffers, calls = _Buffers(self), []
        for i, source in enumerate(inputs):
            places = None
            if self.rank() == opts.rootRank:
                self._check_list(outputs[i], source, "gather's output list")
                places = _addresses([buffers.write(t) for t in outputs[i]])
            send = buffers.read(source)
            calls.append((lib.ct_gather_list, send.data_ptr(), places, *_count(send), opts.rootRank))
        return self._collective(opts, outputs[0] if outputs else [], buffers, calls)

    def scatter(self, outputs, inputs, opts):
        buffers, calls = _Buffers(self), []
        for i, output in enumerate(outputs):
            parts = None
            if self.rank() == opts.rootRank:
                self._check_list(inputs[i], output, "scatter's input list")
                parts = _addresses([buffers.read(t) for t in inputs[i]])
            recv = buffers.write(output)
            calls.append((lib.ct_scatter_list, parts, recv.data_ptr(), *_count(recv), opts.rootRank))
        return self._collective(opts, outputs, buffers, calls)

    def reduce_scatter(self, outputs, inputs, opts):
        buffers, op, calls = _Buffers(self), self._op(opts.reduceOp, outputs[0]), []
        for output, parts in zip(outputs, inputs):
            self._check_list(parts, output, "reduce_scatter's input list", may_be_uneven=True)
            counts = [t.numel() for t in parts]
            if counts[self.rank()] != output.numel():
                raise ValueError(
                    f"reduce_scatter: this rank's part has {counts[self.rank()]} elements, the output {output.numel()}"
                )
            recv, dtype = buffers.write(output), _summed(output)
            if len(set(counts)) == 1:
                send = _addresses([buffers.read(t) for t in parts])
                calls.append((lib.ct_reduce_scatter_list, send, recv.data_ptr(), recv.numel(), dtype, op))
            else:
                send = buffers.flat(parts).data_ptr()
                calls.append((lib.ct_reduce_scatter_v, send, recv.data_ptr(), _sizes(counts), dtype, op))
        return self._collective(opts, outputs, buffers, calls, op)

    def reduce_scatter_single(self, output, source, opts):
        return self.reduce_scatter_single_coalesced([output], [source], opts)

    def reduce_scatter_single_coalesced(self, outputs, inputs, opts):
        buffers, op, calls = _Buffers(self), self._op(opts.reduceOp, outputs[0]), []
        for output, source in zip(outputs, inputs):
            self._check_times("reduce_scatter_single", source, output)
            send, recv = buffers.read(source), buffers.write(output)
            calls.append(
                (lib.ct_reduce_scatter, send.data_ptr(), recv.data_ptr(), recv.numel(), _summed(recv), op)
            )
        return self._collective(opts, outputs, buffers, calls, op)

    def all_to_all_single(self, output, source, output_splits, input_splits, opts):
        buffers = _Buffers(self)
        self._check_dtype([output], source.dtype, "all_to_all_single's output")
        send, recv = buffers.read(source), buffers.write(output)
        counts = [self._splits(t, s) for t, s in ((send, input_splits), (recv, output_splits))]
        call = (
            lib.ct_all_to_all_v,
            send.data_ptr(),
            counts[0],
            None,
            recv.data_ptr(),
            counts[1],
            None,
            _count(send)[1],
        )
        if not input_splits and not output_splits:
            count, dtype = _count(send)
            call = (lib.ct_all_to_all, send.data_ptr(), recv.data_ptr(), count // self.size(), dtype)
        return self._collective(opts, [output], buffers, [call])

    def alltoall(self, outputs, inputs, opts):
        buffers = _Buffers(self)
        for tensors, what in ((outputs, "all_to_all's output list"), (inputs, "all_to_all's input list")):
            self._check_length(tensors, what)
            self._check_dtype(tensors, inputs[0].dtype, what)
        send, recv = buffers.flat(inputs), buffers.flat_for(outputs)
        call = (
            lib.ct_all_to_all_v,
            send.data_ptr(),
            self._counts(inputs),
            None,
            recv.data_ptr(),
            self._counts(outputs),
            None,
            _count(send)[1],
        )
        return self._collective(opts, outputs, buffers, [call])

    def allreduce_sparse(self, tensors, opts):
        """The sum of sparse tensors: every rank gets the others' indices and values, and adds them in rank order."""
        if self._op(opts.reduceOp, tensors[0]) != OPS["sum"]:
            raise ValueError("all_reduce of sparse tensors: only the sum")
        wants_work, opts.asyncOp = opts.asyncOp, False  # the sizes are needed before the values can be sent
        for tensor in tensors:
            tensor.copy_(self._sum_of_sparse(tensor.coalesce(), opts))
        return finished(tensors) if wants_work else _DONE

    def _sum_of_sparse(self, own, opts):
        counts = torch.zeros(self.size(), dtype=torch.int64)
        self.all_gather_single(counts, torch.tensor([own._nnz()]), opts)
        indices = [own.indices().new_empty(own.indices().shape[0], n) for n in counts.tolist()]
        values = [own.values().new_empty(n, *own.values().shape[1:]) for n in counts.tolist()]
        self.allgather([indices], [own.indices()], opts)
        self.allgather([values], [own.values()], opts)
        return torch.sparse_coo_tensor(torch.cat(indices, 1), torch.cat(values), own.shape).coalesce()

    def barrier(self, opts):
        self._streams.synchronize()
        return self._collective(opts, [], _Buffers(self), [(lib.ct_barrier,)])

    def monitored_barrier(self, opts, wait_all=False):
        limit = milliseconds(opts.timeout) if opts.timeout.days >= 0 else self._limit
        if (
            opts.timeout == timedelta(0) and self.rank() == 0
        ):  # nobody can have come; libct takes 0 for a mistake
            raise Error(Status.TIMEOUT, "Rank 0 timed out in monitoredBarrier after 0 ms")
        with self._lock:
            self._sequence += 1
            status = lib.ct_monitored_barrier(self._at(), limit, int(wait_all))
        if status:
            error = self.failed(status)
            raise Error(error.status, self._of_monitored_barrier(str(error), limit)) from error

    def _of_monitored_barrier(self, sentence, limit):
        """In the words that torch's users and tests know."""
        missing = re.findall(r"rank (\d+)", sentence.partition("): ")[2].partition(";")[0])
        if self.rank() != 0:
            return (
                f"Rank {self.rank()} successfully reached monitoredBarrier, but received errors while waiting for "
                f"send/recv from rank 0. Please check rank 0 logs for faulty rank. {sentence}"
            )
        several = "s" if len(missing) > 1 else ""
        return f"Rank{several} {', '.join(missing)} failed to pass monitoredBarrier in {limit} ms: {sentence}"

    def _counts(self, tensors):
        return _sizes([_count(t)[0] for t in tensors])

    def _splits(self, tensor, splits):
        """The elements of each rank's part: splits are rows of the first dimension."""
        rows = tensor.shape[0] if tensor.dim() else 1
        if not splits:
            if rows % self.size():
                raise ValueError(f"all_to_all_single: {rows} rows are no {self.size()} equal parts")
            splits = [rows // self.size()] * self.size()
        if len(splits) != self.size() or sum(splits) != rows:
            raise ValueError(f"all_to_all_single: the splits {splits} of {rows} rows for {self.size()} ranks")
        row = _count(tensor)[0] // rows if rows else 0
        return _sizes([n * row for n in splits])

    def _check_list(self, tensors, like, what, may_be_uneven=False):
        """Each tensor must have the shape of `like`, as with gloo.  In a list that may be uneven this holds for tensors
        with as many elements as `like`."""
        self._check_length(tensors, what)
        self._check_dtype(tensors, like.dtype, what)
        for i, tensor in enumerate(tensors):
            if tensor.shape != like.shape and not (may_be_uneven and tensor.numel() != like.numel()):
                raise ValueError(f"{what}: tensor {i} has the shape {tuple(tensor.shape)}, not {tuple(like.shape)}")

    def _check_length(self, tensors, what):
        if len(tensors) != self.size():
            raise ValueError(f"{what}: {len(tensors)} tensors for {self.size()} ranks")

    @staticmethod
    def _check_dtype(tensors, dtype, what):
        for i, tensor in enumerate(tensors):
            if tensor.dtype != dtype:
                raise TypeError(f"{what}: tensor {i} is of {tensor.dtype}, not {dtype}")

    def _check_times(self, call, large, small):
        if large.dtype != small.dtype:
            raise TypeError(f"{call}: tensors of {large.dtype} and of {small.dtype}")
        if large.numel() != small.numel() * self.size():
            raise ValueError(
                f"{call}: {small.numel()} elements for each of {self.size()} ranks don't make {large.numel()}"
            )

    # ---- Coalescing: batch_isend_irecv() and torch's _coalescing_manager --------------

    def start_coalescing(self):
        self._collected, self._collector = [], threading.get_ident()

    def end_coalescing(self):
        parts, self._collected = self._collected, None
        works = [part for part in parts if isinstance(part, Work)]
        collectives = [part for part in parts if not isinstance(part, Work)]
        if collectives:
            handle = ctypes.c_void_p()
            all_calls = [c for calls, _, _ in collectives for c in calls]
            all_buffers = [buffers for _, buffers, _ in collectives]
            with self._lock:
                self._sequence += 1
                if any(buffers.device is not None for buffers in all_buffers):
                    works.append(self._in_stream(self._at(), all_calls, [], all_buffers, True))
                else:
                    self._make(self._at(), all_calls, ctypes.byref(handle))
                    works.append(
                        self._work([handle], [], lambda: [b.finish() for b in all_buffers], all_buffers)
                    )
            for op in {op for _, _, op in collectives if op >= _MADE_OPS}:
                lib.ct_op_free(op)
        return Together(works) if len(works) != 1 else works[0]

    # ---- Messages -------------------------------------------------------------------------

    def send(self, tensors, dst, tag=0):
        return self._message(lib.ct_isend, tensors, dst, tag)

    def recv(self, tensors, src, tag=0):
        return self._message(lib.ct_irecv, tensors, src, tag)

    def recv_anysource(self, tensors, tag=0):
        return self._message(lib.ct_irecv, tensors, ANY_SOURCE, tag)

    def _message(self, function, tensors, peer, tag):
        buffers, handle = _Buffers(self), ctypes.c_void_p()
        if len(tensors) != 1:
            raise ValueError(f"a message is one tensor, not {len(tensors)}")
        tensor = (buffers.read if function is lib.ct_isend else buffers.write)(tensors[0])
        with self._lock:
            self._sequence += 1
            row = self._row(function, [tensor], peer == ANY_SOURCE)
            if buffers.device is not None:
                self._check(lib.ct_set_stream(self._at(), self._streams.current(buffers.device)))
            self._check(
                function(self._at(), tensor.data_ptr(), *_count(tensor), peer, tag, ctypes.byref(handle))
            )
            work = self._work([handle], tensors, buffers.finisher, buffers, True, row, buffers.device)
        if self._collected is not None and self._collector == threading.get_ident():
            self._collected.append(work)
            return None
        return work

    # ---- Groups of this one's ranks ---------------------------------------------------

    def split(self, store, ranks, opts):
        """Creates a group of `ranks` of this group, and returns it; None on the other ranks.  Only `ranks` must call
        it.
        """
        if self.rank() not in ranks:
            return None
        return self._child(list(ranks), opts or _options(self.name_in_torch, self._options._timeout))

    def perform_nocolor_split(self, device):
        pass  # only the members of a group make it

    def _child(self, ranks, options):
        text = str(options.group_name).encode() or None
        wanted = GroupOptions(
            ctypes.sizeof(GroupOptions), text, None, milliseconds(options._timeout), self._at(), 1, None
        )
        members = (ctypes.c_int * len(ranks))(*ranks)

        def make(handle):
            with self._lock:
                return lib.ct_new_group_with(members, len(ranks), ctypes.byref(wanted), handle)

        return ProcessGroupCt(
            ranks.index(self.rank()), len(ranks), options, self.name_in_torch, make, self._store, parent=self
        )

    def shrink(self, ranks_to_exclude, shrink_flags=0, opts_override=None):
        """Creates a group without ranks_to_exclude, and returns it.  The ranks that are left must call it.

        The new group lives on when this one is destroyed.  With SHRINK_ABORT, or after a failure, ranks that died
        are left out, too, and this group is broken.
        """
        options = opts_override or _options(self.name_in_torch, self._options._timeout)
        left = [r for r in range(self.size()) if r not in set(ranks_to_exclude)]
        if not shrink_flags and self._last_error == ErrorType.SUCCESS:
            store = dist.PrefixStore(f"without/{','.join(map(str, ranks_to_exclude))}", self._store)
            return _at_store(store, left.index(self.rank()), len(left), options, self.name_in_torch)
        survivors = ctypes.c_void_p()
        with self._lock:
            self._check(
                lib.ct_shrink_group(self._at(), milliseconds(options._timeout), ctypes.byref(survivors))
            )

        def make(handle):
            handle._obj.value = survivors.value
            return Status.OK

        rank, size = lib.ct_rank(survivors), lib.ct_size(survivors)
        return ProcessGroupCt(
            rank, size, options, self.name_in_torch, make, self._store, meeting=self._meeting
        )

    # ---- The end -------------------------------------------------------------------------

    def abort(self):
        if self._handle is not None:
            lib.ct_abort(self._handle)  # of any thread: it wakes those that hold the lock
        self._last_error = ErrorType.COMM_ERROR

    def shutdown(self):
        with contextlib.ExitStack() as ends:  # ends all groups, then raises what one of them raised
            ends.callback(self._end)
            for child in [g for g in _living if g._parent is self]:
                ends.callback(child.shutdown)

    def _end(self):
        late = self.settler.end(self._limit / 1000)
        _places.leave(self)
        with self._lock:
            handle, self._handle = self._handle, None
            if handle is None:
                return
            self.end_in_streams()
            for work in list(self.pending):
                work.give_up()
            status = lib.ct_destroy_process_group(handle)
            error = error_of(status) if status else None
        _living.discard(self)
        _keep_alive.pop(id(self), None)
        if late:
            places = [place for place in map(_places.of_thread, late) if place]
            raise Error(
                Status.TIMEOUT,
                f"destroy_process_group of group {self._options.group_name or 'world'}: Timed out after "
                f"{self._limit} ms: a callback of a Future has not returned, at {', '.join(places)}",
            )
        if error is not None:  # the ranks made different calls, and this rank had finished its part
            raise error


# ---- Registration --------------------------------------------------------------------------------

_DONE = finished([])  # of calls that were done when they returned: their caller asks it for nothing
_DEVICES = ["cpu", "cuda"]
_living = weakref.WeakSet()
_keep_alive = {}


def _options(name, timeout, group_name="", ranks=()):
    options = _Base.Options(name, timeout=timeout)
    options.group_name = group_name
    options.global_ranks_in_group = list(ranks)
    return options


def _within(backend):
    """The backend in the wrapper that torch puts around it with TORCH_DISTRIBUTED_DEBUG=DETAIL."""
    return getattr(backend, "wrapped_pg", backend)


def _world():
    """The backend of torch's default group, if it is one of ours."""
    if not dist.is_initialized():
        return None
    world = dist.distributed_c10d._get_default_group()
    for device in _DEVICES:
        with contextlib.suppress(RuntimeError):  # it has none for this device
            backend = _within(world._get_backend(torch.device(device)))
            if backend in _living:
                return backend
    return None


def _creator(name):
    def create(opts, _backend_options):
        timeout = opts.timeout if isinstance(opts.timeout, timedelta) else timedelta(seconds=opts.timeout)
        ranks = list(opts.global_ranks_in_group)
        options = _options(name, timeout, opts.group_id, ranks)
        parent = (
            opts.split_from if isinstance(opts.split_from, ProcessGroupCt) else _world() if ranks else None
        )
        if parent is not None:
            return parent._child(ranks, options)
        return _at_store(opts.store, opts.group_rank, opts.group_size, options, name)

    return create


def _at_store(store, rank, size, options, name):
    """A group whose ranks meet at a torch store.  The store may have met a group of this name before: each rank counts
    its groups there, and so they agree on keys of their own."""
    limit = milliseconds(options._timeout)
    number = store.add(f"ct/groups/{rank}", 1)
    meeting = MeetingPlace(dist.PrefixStore(f"ct/{number}", store), limit)
    title = "world" if not options.global_ranks_in_group else str(options.group_name)
    wanted = GroupOptions(ctypes.sizeof(GroupOptions), title.encode(), None, limit, None, 0, None)

    def make(handle):
        return lib.ct_create_group(meeting.handle, rank, size, ctypes.byref(wanted), handle)

    return ProcessGroupCt(rank, size, options, name, make, store, meeting=meeting)


# Its type is CUSTOM, for "gloo" too: of a group of BackendType.GLOO torch's C++ code reads fields that only a
# ProcessGroupGloo has (c10d::Logger).
def _register(name):
    dist.Backend.register_backend(name, _creator(name), extended_api=True, devices=_DEVICES)


def register():
    """Registers the backend "ct" with torch.distributed.  torch calls this entry point."""
    _mend_torch()
    _register("ct")


def register_as_gloo():
    """Registers libct under the name "gloo", for CT_AS_GLOO=1."""
    _mend_torch()
    _register("gloo")


def _mend_torch():
    add_missing_methods()
    DDP = torch.nn.parallel.DistributedDataParallel
    of_torch = DDP._register_builtin_comm_hook

    def _register_builtin_comm_hook(self, comm_hook_type):
        """torch's built-in hooks are C++ code.  The FP16 hook accepts only a Future with a C++ list of tensors, but a
        Future that Python completes has a Python object.  So ct's groups get torch's Python hooks, which compute the
        same numbers."""
        if not isinstance(_within(self.process_group._get_backend(self.device)), ProcessGroupCt):
            return of_torch(self, comm_hook_type)
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

        hooks = {
            dist.BuiltinCommHookType.ALLREDUCE: default_hooks.allreduce_hook,
            dist.BuiltinCommHookType.FP16_COMPRESS: default_hooks.fp16_compress_hook,
        }
        self.logger._set_comm_hook_name(str(comm_hook_type))
        dist._register_comm_hook(self.reducer, self.process_group, hooks[comm_hook_type])

    DDP._register_builtin_comm_hook = functools.wraps(of_torch)(_register_builtin_comm_hook)


# A thread of libct must not meet an interpreter that is going, and the other ranks learn that this one has left.
@atexit.register
def _leave():
    own = [g for g in _living if g._pid == os.getpid()]  # not a parent's
    for group in own:
        group.end_in_streams()
        group.reap()
        if group.pending:  # of calls that may never end
            group.abort()
    with contextlib.ExitStack() as ends:
        for group in own:
            if group._parent is None:
                ends.callback(group.shutdown)
