# SPDX-License-Identifier: Apache-2.0
"""libct by ctypes: the one place that loads it, knows its functions and turns a status into an exception.

A call releases the GIL while it runs.  python/tests/test_libct.py compares FUNCTIONS with ct.h.
"""

import ctypes
import enum
import operator
import os
import time

# By name: what it gives back, then its arguments.  i int, z size_t, q int64_t, s a string, p any pointer, v nothing.
# A result of i is a ct_status where the name is not in NUMBERS.
FUNCTIONS = {
    "ct_version": "s",
    "ct_strerror": "si",
    "ct_last_error": "s",
    "ct_dtype_size": "zi",
    "ct_convert": "ipipiz",
    "ct_op_premul": "ipip",
    "ct_op_free": "ii",
    "ct_init_process_group": "ip",
    "ct_destroy_process_group": "ip",
    "ct_is_initialized": "i",
    "ct_rank": "ip",
    "ct_size": "ip",
    "ct_local_rank": "i",
    "ct_restart_count": "i",
    "ct_backend": "sp",
    "ct_set_timeout": "ipi",
    "ct_set_next_timeout": "ipi",
    "ct_new_group": "ipip",
    "ct_new_group_with": "ipipp",
    "ct_split_group": "ipiip",
    "ct_new_subgroups": "iip",
    "ct_create_group": "ipiipp",
    "ct_group_rank": "ipi",
    "ct_global_rank": "ipi",
    "ct_group_ranks": "pp",
    "ct_abort": "ip",
    "ct_shrink_group": "ipip",
    "ct_should_stop": "ip",
    "ct_broadcast": "ippziip",
    "ct_reduce": "ipppziiip",
    "ct_all_reduce": "ipppziip",
    "ct_reduce_scatter": "ipppziip",
    "ct_gather": "ipppziip",
    "ct_all_gather": "ipppzip",
    "ct_scatter": "ipppziip",
    "ct_all_to_all": "ipppzip",
    "ct_barrier": "ipp",
    "ct_monitored_barrier": "ipii",
    "ct_gather_v": "ippzpppiip",
    "ct_all_gather_v": "ippzpppip",
    "ct_scatter_v": "ipppppziip",
    "ct_all_to_all_v": "ippppppp" "ip",
    "ct_reduce_scatter_v": "ippppiip",
    "ct_gather_list": "ipppziip",
    "ct_all_gather_list": "ipppzip",
    "ct_scatter_list": "ipppziip",
    "ct_all_to_all_list": "ipppzip",
    "ct_reduce_scatter_list": "ipppziip",
    "ct_coalesce_begin": "ip",
    "ct_coalesce_end": "ipp",
    "ct_send": "ippziii",
    "ct_recv": "ippziiip",
    "ct_isend": "ippziiip",
    "ct_irecv": "ippziiip",
    "ct_probe": "ipiip",
    "ct_iprobe": "ipiipp",
    "ct_batch_isend_irecv": "ippip",
    "ct_wait": "ip",
    "ct_wait_from": "ipp",
    "ct_wait_for": "ipi",
    "ct_test": "ipp",
    "ct_watch": "ippp",
    "ct_watched": "ipp",
    "ct_watch_end": "ip",
    "ct_store_tcp": "isiiip",
    "ct_store_wait_workers": "ipi",
    "ct_store_file": "isip",
    "ct_store_hash": "ip",
    "ct_store_prefix": "ipsp",
    "ct_store_wrap": "ippip",
    "ct_store_default": "p",
    "ct_store_close": "ip",
    "ct_store_set": "ipspz",
    "ct_store_get": "ipsipp",
    "ct_store_add": "ipsqp",
    "ct_store_wait": "ippii",
    "ct_store_check": "ippip",
    "ct_store_compare_set": "ipspzpzpp",
    "ct_store_delete": "ipsp",
    "ct_store_num_keys": "ipp",
    "ct_store_append": "ipspz",
    "ct_store_multi_get": "ippiipp",
    "ct_store_multi_set": "ippipp",
    "ct_store_queue_push": "ipspz",
    "ct_store_queue_pop": "ipsipp",
    "ct_store_queue_len": "ipsp",
    "ct_store_list_keys": "ippp",
    "ct_algorithm": "ssi",
    "ct_last_algorithm": "sp",
    "ct_note_place": "ips",
    "ct_observer_open": "iip",
    "ct_observer_wait": "ipi",
    "ct_observer_answer": "ipp",
    "ct_observer_close": "ip",
    "ct_mem_alloc": "ipzp",
    "ct_mem_free": "ipp",
    "ct_spawn": "iipp",
    "ct_set_stream": "ipp",
    "ct_wait_on_stream": "ipp",
    "ct_nccl_comm": "ipp",
}
NUMBERS = {
    "ct_is_initialized",
    "ct_rank",
    "ct_size",
    "ct_local_rank",
    "ct_restart_count",
    "ct_group_rank",
    "ct_global_rank",
    "ct_should_stop",
    "ct_spawn",
}

# By ct_dtype's value: name, bytes of one element.
DTYPES = [
    ("i8", 1),
    ("u8", 1),
    ("i16", 2),
    ("u16", 2),
    ("i32", 4),
    ("u32", 4),
    ("i64", 8),
    ("u64", 8),
    ("f16", 2),
    ("bf16", 2),
    ("f32", 4),
    ("f64", 8),
    ("bool", 1),
    ("c64", 8),
    ("c128", 16),
    ("f8e4m3", 1),
    ("f8e5m2", 1),
]
DTYPE = {name: value for value, (name, _) in enumerate(DTYPES)}
OPS = {
    name: value for value, name in enumerate(("sum", "avg", "product", "min", "max", "band", "bor", "bxor"))
}


class Status(enum.IntEnum):
    """The values of ct_status in ct.h."""

    OK = 0
    INVALID = -1
    NOMEM = -2
    SYSTEM = -3
    TIMEOUT = -4
    PEER = -5
    ABORTED = -6
    MISMATCH = -7
    NOT_MEMBER = -8
    UNSUPPORTED = -9
    CUDA = -10
    NCCL = -11


class Error(RuntimeError):
    """A call of libct failed.

    The text is libct's message, which names the call, the group and the rank at fault.  `status` is the Status.
    """

    status = Status.SYSTEM

    def __init__(self, sentence, status=None):
        super().__init__(sentence)
        if status is not None:
            self.status = status


class InvalidError(Error, ValueError):
    """CT_ERR_INVALID: an argument or a variable is wrong.  The call was refused and changed nothing."""

    status = Status.INVALID


class TimedOut(Error, TimeoutError):
    """CT_ERR_TIMEOUT: the time limit passed.  The message names the ranks that are missing."""

    status = Status.TIMEOUT


class PeerError(Error, ConnectionError):
    """CT_ERR_PEER: another rank died, left or failed.  The message is that of the rank that failed first."""

    status = Status.PEER


class AbortedError(Error):
    """CT_ERR_ABORTED: this rank called abort()."""

    status = Status.ABORTED


class MismatchError(Error):
    """CT_ERR_MISMATCH: the ranks made different calls."""

    status = Status.MISMATCH


ERRORS = {e.status: e for e in (InvalidError, TimedOut, PeerError, AbortedError, MismatchError)}


class InitOptions(ctypes.Structure):
    """The struct ct_init_options."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("init_method", ctypes.c_char_p),
        ("rank", ctypes.c_int),
        ("world_size", ctypes.c_int),
        ("backend", ctypes.c_char_p),
        ("timeout_ms", ctypes.c_int),
        ("store", ctypes.c_void_p),
    ]


class GroupOptions(ctypes.Structure):
    """The struct ct_group_options."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("backend", ctypes.c_char_p),
        ("timeout_ms", ctypes.c_int),
        ("parent", ctypes.c_void_p),
        ("local_sync", ctypes.c_int),
        ("algorithms", ctypes.c_char_p),
    ]


class MessageFields(ctypes.Structure):
    """The struct ct_message."""

    _fields_ = [
        ("source", ctypes.c_int),
        ("tag", ctypes.c_int),
        ("count", ctypes.c_size_t),
        ("dtype", ctypes.c_int),
    ]


class ObservedCall(ctypes.Structure):
    """The struct ct_observed_call."""

    _fields_ = [
        ("operation", ctypes.c_char_p),
        ("number", ctypes.c_ulonglong),
        ("count", ctypes.c_size_t),
        ("dtype", ctypes.c_int),
        ("peer", ctypes.c_int),
        ("tag", ctypes.c_int),
        ("state", ctypes.c_int),
        ("age_ns", ctypes.c_ulonglong),
        ("place", ctypes.c_char_p),
    ]


class ObservedGroup(ctypes.Structure):
    """The struct ct_observed_group."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("id", ctypes.c_ulonglong),
        ("rank", ctypes.c_int),
        ("size", ctypes.c_int),
        ("call_count", ctypes.c_int),
        ("calls", ctypes.POINTER(ObservedCall)),
    ]


class Observation(ctypes.Structure):
    """The struct ct_observation."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("phase", ctypes.c_int),
        ("is_last", ctypes.c_int),
        ("place", ctypes.c_char_p),
        ("stacks_fd", ctypes.c_int),
        ("group_count", ctypes.c_int),
        ("groups", ctypes.POINTER(ObservedGroup)),
    ]


def path():
    """Returns the path of libct: $CT_LIBRARY, or the file in this package."""
    return os.environ.get("CT_LIBRARY") or os.path.join(
        os.path.dirname(os.path.abspath(__file__)), "lib", "libct.so.0"
    )


_TYPES = {
    "i": ctypes.c_int,
    "z": ctypes.c_size_t,
    "q": ctypes.c_int64,
    "s": ctypes.c_char_p,
    "p": ctypes.c_void_p,
}


class _Library:
    """libct, which is loaded at its first use: `import torch` imports this package, and must not fail because of it."""

    def __getattr__(self, name):
        library = ctypes.CDLL(path())
        for function_name, types in FUNCTIONS.items():
            function = getattr(library, function_name)
            function.restype = _TYPES[types[0]]
            function.argtypes = [_TYPES[t] for t in types[1:]]
            setattr(self, function_name, function)
        return self.__dict__[name]


lib = _Library()
libc_free, libc_malloc = ctypes.CDLL(None).free, ctypes.CDLL(None).malloc
libc_free.restype, libc_free.argtypes = None, [ctypes.c_void_p]
libc_malloc.restype, libc_malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]


def failure(status):
    """Returns the exception for a status, with the message of this thread's ct_last_error()."""
    sentence = lib.ct_last_error().decode(errors="replace") or lib.ct_strerror(status).decode()
    kind = ERRORS.get(status, Error)
    return kind(sentence, Status(status) if status in Status._value2member_map_ else Status.SYSTEM)


def check(status):
    """Raises the exception for a status that is not CT_OK."""
    if status:
        raise failure(status)


def milliseconds(seconds, forever=-1):
    """Returns the milliseconds of a number of seconds or a timedelta, at least 1; `forever` for None."""
    if seconds is None:
        return forever
    seconds = seconds.total_seconds() if hasattr(seconds, "total_seconds") else float(seconds)
    if not seconds >= 0:
        raise ValueError(f"a timeout of {seconds} s")
    return max(int(min(seconds * 1000 + 0.999, 2**31 - 1)), 1)


def integer(value, what, least=-(2**31), most=2**31 - 1):
    """Returns value as an int.  Raises ValueError if it does not fit, since ctypes would cut off its upper bits."""
    value = operator.index(value)
    if not least <= value <= most:
        raise ValueError(f"{what}: {value} is not from {least} to {most}")
    return value


def text(value, what):
    """Returns value as bytes for C.  Raises ValueError if it has a 0 byte, which would end the string."""
    value = os.fsencode(value)
    if 0 in value:
        raise ValueError(f"{what} {value!r} has a 0 byte")
    return value


def done_within(is_done, seconds):
    """Calls is_done() repeatedly, and returns True once it does, or False after `seconds`.

    ct_wait_for() can't be used: it has one status for a call that is not done and for a call that timed out.
    """
    deadline, nap = time.monotonic() + seconds, 20e-6
    while not is_done():
        if time.monotonic() >= deadline:
            return False
        time.sleep(nap)
        nap = min(2 * nap, 1e-3)
    return True
