# SPDX-License-Identifier: Apache-2.0
"""Shows ctrun and ctctl what a PyTorch rank does, whatever its backend.

A thread sleeps in libct, without the GIL, until ctrun or ctctl asks.  Then it reads torch's flight recorder and the
Python stacks, and writes the answer to the control page.  Until then it costs the program nothing but the recorder's
entry for each call.  CT_OBSERVE=0 turns the observer off.
"""

import atexit
import contextlib
import ctypes
import hashlib
import math
import mmap
import os
import pickle
import sys
import threading
import time

from ctrun import _places
from ctrun._places import as_bytes

_C10D = os.path.join("torch", "distributed", "distributed_c10d.py")
_RANK_VARIABLES = ("CT_CONTROL", "RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")
_RECORDERS = {"": "_dump_fr_trace", "nccl": "_dump_nccl_trace"}
_LAST = 32  # calls of a group that are shown, besides those in progress
_STACKS_BYTES = 1 << 18
_RUNS, _DONE, _FAILED = range(3)
_NO_GROUP, _INIT, _READY, _LEFT = range(4)
_UNSIZED = ("scatter", "gather", "all_to_all")  # what their callers pass differs by rank
_NAMES = {  # torch's names of calls that libct names otherwise
    "allgather_base": "all_gather",
    "all_gather_base": "all_gather",
    "allgather_into_tensor_coalesced": "all_gather",
    "allgather_coalesced": "all_gather",
    "allreduce": "all_reduce",
    "allreduce_coalesced": "all_reduce",
    "all_reduce_barrier": "barrier",
    "reduce_scatter_base": "reduce_scatter",
    "reduce_scatter_tensor": "reduce_scatter",
    "reduce_scatter_tensor_coalesced": "reduce_scatter",
    "alltoall": "all_to_all",
    "alltoall_base": "all_to_all",
    "all_to_allv": "all_to_all",
    "broadcast_oop": "broadcast",
    "reduce_oop": "reduce",
}
_DTYPES = {  # of the recorder and of tensors
    "Char": "i8",
    "int8": "i8",
    "Byte": "u8",
    "uint8": "u8",
    "Short": "i16",
    "int16": "i16",
    "Int": "i32",
    "int32": "i32",
    "Long": "i64",
    "int64": "i64",
    "Half": "f16",
    "float16": "f16",
    "BFloat16": "bf16",
    "bfloat16": "bf16",
    "Float": "f32",
    "float32": "f32",
    "Double": "f64",
    "float64": "f64",
    "Bool": "bool",
    "bool": "bool",
    "ComplexFloat": "c64",
    "complex64": "c64",
    "ComplexDouble": "c128",
    "complex128": "c128",
}

# ---- torch's groups and calls --------------------------------------------------------------------


def _recorded():
    """The entries of torch's flight recorders by the names of their group and recorder, and what does not work.
    The recorder "" is that of all other backends than NCCL."""
    c10d = sys.modules.get("torch._C._distributed_c10d")
    entries, faults = {}, []
    for recorder, function in _RECORDERS.items():
        dump = getattr(c10d, function, None)
        if dump is None:
            continue
        try:
            for entry in pickle.loads(dump(includeStackTraces=False)).get("entries", ()):
                entries.setdefault((entry["process_group"][0], recorder), []).append(entry)
        except Exception as error:
            faults.append(f"{function}() failed: {error}")
    if not hasattr(c10d, _RECORDERS[""]):
        faults.append(f"this torch has no {_RECORDERS['']}(), so only the calls of NCCL are shown")
    return entries, faults


def _is_done(entry):
    return bool(entry.get("retired") or entry.get("state") == "completed")


def _of_group(entries, group):
    """The entries of a group that count: those in progress and the last ones.  A group can have the name of one that
    was destroyed, whose entries stay."""
    with contextlib.suppress(Exception):  # of a backend that does not count its calls
        if group._get_sequence_number_for_group() == 0:
            return []
    newest = max((entry.get("pg_id", 0) for entry in entries), default=0)
    entries = [entry for entry in entries if entry.get("pg_id", 0) == newest]
    return [entry for entry in entries[:-_LAST] if not _is_done(entry)] + entries[-_LAST:]


def _is_c10d(frame):
    return frame.f_code.co_filename.endswith(_C10D)


def _is_cts(group):
    """libct shows the calls of its own backend itself."""
    for device in ("cpu", "cuda"):
        with contextlib.suppress(Exception):
            if type(group._get_backend(sys.modules["torch"].device(device))).__name__ == "ProcessGroupCt":
                return True
    return False


def _mark_failure(groups):
    """Marks the last call as the failed one if the program ends by an error of gloo's transport or of NCCL."""
    error = getattr(sys, "last_value", None)
    is_of_call = "gloo/transport/" in str(error) or type(error).__name__ == "DistBackendError"
    calls = [group["calls"][-1] for group in groups if group["calls"]]
    if calls and isinstance(error, RuntimeError) and is_of_call:
        min(calls, key=lambda call: call["age_ns"])["state"] = _FAILED


def _gevent_has_patched():
    """Then each thread is a greenlet, and the observer would block all of them."""
    gevent = sys.modules.get("gevent.monkey")
    return gevent is not None and gevent.is_module_patched("threading")


def _run_ns(thread):
    """For how long a thread has had a processor.  It does not grow while the thread waits."""
    with contextlib.suppress(OSError, StopIteration):
        native = next(t.native_id for t in threading.enumerate() if t.ident == thread)
        with open(f"/proc/self/task/{native}/schedstat", encoding="ascii") as file:
            return file.read().split()[0]
    return None


class _Observer:
    def __init__(self):
        self._pid, self._lock = os.getpid(), threading.Lock()
        self._lib = self._handle = None
        self._seen = {}  # when a message was first seen, by its frame and the processor time of its thread
        self._was_initialized = False
        self._stacks_fd, self._stacks = -1, None  # a memfd and its mapping, as the program may close what it has open

    def start(self):
        threading.Thread(target=self._run, name="ctrun observer", daemon=True).start()
        atexit.register(self._say_last)

    def _run(self):
        from ctrun import _libct

        handle = ctypes.c_void_p()
        rank = next((os.environ[name] for name in _RANK_VARIABLES[1:] if name in os.environ), "")
        try:
            if _libct.lib.ct_observer_open(int(rank) if rank.isdecimal() else 0, ctypes.byref(handle)):
                return
        except OSError:  # libct can't be loaded.  A program that calls it gets the error
            return
        self._lib, self._handle = _libct, handle
        while self._lib.lib.ct_observer_wait(handle, -1) == 0:
            self._answer()

    def _say_last(self):
        if self._handle is not None and os.getpid() == self._pid:
            self._answer(is_last=True)

    def _answer(self, is_last=False):
        """Never raises: the program must not suffer from what torch changed."""
        with self._lock:
            try:
                seen = self._look(sys._current_frames())
                if is_last:
                    _mark_failure(seen["groups"])
                self._write(seen, is_last)
            except Exception as error:
                self._write({"place": as_bytes(f"the observer failed: {error}")}, is_last)

    def _look(self, frames):
        main_frame = frames.get(threading.main_thread().ident)
        main = _places.of(main_frame)
        c10d = sys.modules.get("torch.distributed.distributed_c10d")
        groups, faults = [], []
        phase = _NO_GROUP
        if c10d is not None and c10d.is_initialized():
            phase = _READY
            groups, faults = self._groups(c10d._world, frames, main)
            if not groups and faults:
                phase = _NO_GROUP  # this torch does not show them
        elif any(f.f_code.co_name == "init_process_group" and _is_c10d(f) for f in _places.outward(main_frame)):
            phase = _INIT
        elif self._was_initialized or _recorded()[0]:
            phase = _LEFT
        _places.note_calls(self._lib.lib, frames, main)
        self._was_initialized = phase in (_READY, _LEFT)
        text = _places.stacks(frames) + "".join(f"{fault}\n" for fault in faults)
        return {"phase": phase, "place": as_bytes(main), "groups": groups, "text": text}

    def _groups(self, world, frames, main):
        entries, faults = _recorded()
        now_ns, shown = time.time_ns(), []
        messages = self._messages(world, frames, main)
        for group, ranks in world.pg_group_ranks.items():
            name = getattr(group, "group_name", None)  # None: this rank is not a member, and torch has a number here
            if name is None or _is_cts(group):
                continue
            recorders = [recorder for of, recorder in entries if of == name]
            if not recorders and not faults:
                recorders = [""]  # the group has made no call yet
            for recorder in recorders:
                rows = _of_group(entries.get((name, recorder), []), group)
                calls = [self._call(entry, now_ns, frames, main) for entry in rows]
                members = sorted(ranks, key=ranks.get)
                key = f"{recorder}/{name}/{members}".encode()
                title = "world" if group is world.default_pg else group.group_desc
                if title in ("", "undefined"):
                    title = name
                shown.append(
                    {
                        "name": as_bytes(title),
                        "id": int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "little") | 1,
                        "rank": group.rank(),
                        "size": len(members),
                        "calls": calls + (messages.get(name, []) if recorder == recorders[0] else []),
                    }
                )
        return shown, faults

    def _dtype(self, name):
        return self._lib.DTYPE.get(_DTYPES.get(name), -1)

    def _call(self, entry, now_ns, frames, main):
        """An entry of the recorder as the fields of ct_observed_call."""
        name = entry["profiling_name"].partition(":")[2] or entry["profiling_name"]
        name = name.split(" ")[0].lower().strip("_")
        name = _NAMES.get(name, name)
        sizes = entry["input_sizes"] or entry["output_sizes"]
        types = set(entry["input_dtypes"] or entry["output_dtypes"])
        dtype = self._dtype(types.pop()) if len(types) == 1 and name not in _UNSIZED else -1
        thread = frames.get(int(entry.get("thread_id") or 0))
        return {
            "operation": as_bytes(name),
            "number": 0 if entry.get("is_p2p") else entry["collective_seq_id"],
            "count": 0 if dtype < 0 else sum(math.prod(size) for size in sizes),
            "dtype": dtype,
            "peer": -1,
            "state": _DONE if _is_done(entry) else _RUNS,
            "age_ns": max(0, now_ns - entry["time_created_ns"]),
            "place": as_bytes(_places.of(thread) or main),
        }

    def _messages(self, world, frames, main):
        """What threads wait for in torch's send() and recv(), which gloo does not record, by the name of their group."""
        found, now, seen = {}, time.monotonic_ns(), {}
        for thread, frame in frames.items():
            for inner in _places.outward(frame):
                if inner.f_code.co_name not in ("send", "recv") or not _is_c10d(inner):
                    continue
                local = inner.f_locals
                group = local.get("group") or world.default_pg
                ranks = world.pg_group_ranks.get(group, {})
                peer = local.get("group_dst", local.get("group_src"))
                if peer is None:
                    peer = ranks.get(local.get("dst", local.get("src")), -1)
                key = (id(inner), _run_ns(thread))
                seen[key] = self._seen.get(key, now)
                found.setdefault(group.group_name, []).append(
                    {
                        "operation": as_bytes(inner.f_code.co_name),
                        "count": local["tensor"].numel(),
                        "dtype": self._dtype(str(local["tensor"].dtype).partition(".")[2]),
                        "peer": peer,
                        "tag": local.get("tag") or 0,
                        "age_ns": now - seen[key],
                        "place": as_bytes(_places.of(frame) or main),
                    }
                )
        self._seen = seen
        return found

    def _write(self, seen, is_last):
        libct, groups = self._lib, seen.get("groups", [])
        rows = (libct.ObservedGroup * len(groups))()
        for row, group in zip(rows, groups):
            calls = (libct.ObservedCall * len(group["calls"]))(
                *[libct.ObservedCall(**call) for call in group["calls"]]
            )
            row.name, row.id, row.rank, row.size = group["name"], group["id"], group["rank"], group["size"]
            row.call_count, row.calls = len(calls), calls
        answer = libct.Observation(
            size=ctypes.sizeof(libct.Observation),
            phase=seen.get("phase", _NO_GROUP),
            is_last=is_last,
            place=seen["place"],
            stacks_fd=self._write_stacks(seen.get("text", "")),
            group_count=len(groups),
            groups=rows,
        )
        libct.lib.ct_observer_answer(self._handle, ctypes.byref(answer))

    def _write_stacks(self, text):
        if self._stacks is None:
            try:
                self._stacks_fd = os.memfd_create("ct-stacks", os.MFD_CLOEXEC)
            except (AttributeError, OSError):  # Python or the kernel has no memfd_create(): ctctl stack has no stacks
                return -1
            os.ftruncate(self._stacks_fd, _STACKS_BYTES)
            self._stacks = mmap.mmap(self._stacks_fd, _STACKS_BYTES)
        data = as_bytes(text)[: _STACKS_BYTES - 1] + bytes(1)
        self._stacks[: len(data)] = data
        return self._stacks_fd


_observer = None


def start():
    """Starts the observer, once in a process."""
    global _observer
    if _observer is None and not _gevent_has_patched() and os.environ.get("CT_OBSERVE", "1") != "0":
        _observer = _Observer()
        _observer.start()


def _forget():
    """In a child of fork(), which has none of the threads."""
    global _observer
    _observer = None


os.register_at_fork(after_in_child=_forget)


def start_in_rank():
    """Starts the observer if a launcher started this process as a rank."""
    if any(name in os.environ for name in _RANK_VARIABLES) and os.environ.get("CT_OBSERVE", "1") != "0":
        start()
