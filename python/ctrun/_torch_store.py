# SPDX-License-Identifier: Apache-2.0
"""A store of torch.distributed as a ct_store, so that ranks meet where torch's ranks meet."""

import ctypes
from datetime import timedelta

import torch.distributed as dist

from ctrun._libct import Status, check, lib, libc_malloc

_FOREVER = timedelta(days=365)
_P, _I, _Z = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
_Pointer, _Size = ctypes.POINTER(_P), ctypes.POINTER(_Z)


class _StoreOps(ctypes.Structure):
    """ct_store_ops."""

    _fields_ = [
        ("size", _Z),
        ("set", ctypes.CFUNCTYPE(_I, _P, ctypes.c_char_p, _P, _Z)),
        ("get", ctypes.CFUNCTYPE(_I, _P, ctypes.c_char_p, _I, _Pointer, _Size)),
        ("add", ctypes.CFUNCTYPE(_I, _P, ctypes.c_char_p, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64))),
        ("wait", ctypes.CFUNCTYPE(_I, _P, ctypes.POINTER(ctypes.c_char_p), _I, _I)),
        (
            "check",
            ctypes.CFUNCTYPE(_I, _P, ctypes.POINTER(ctypes.c_char_p), _I, ctypes.POINTER(_I)),
        ),
        ("compare_set", ctypes.CFUNCTYPE(_I, _P, ctypes.c_char_p, _P, _Z, _P, _Z, _Pointer, _Size)),
        ("delete_key", ctypes.CFUNCTYPE(_I, _P, ctypes.c_char_p, ctypes.POINTER(_I))),
        ("append", ctypes.CFUNCTYPE(_I, _P, ctypes.c_char_p, _P, _Z)),
        ("close", ctypes.CFUNCTYPE(None, _P)),
    ]


def _give(value, place, size):
    """libct frees it, so it is malloc's; it ends with a 0 that is not counted."""
    copy = libc_malloc(len(value) + 1)
    if not copy:
        raise MemoryError
    ctypes.memmove(copy, value + b"\0", len(value) + 1)
    place[0], size[0] = copy, len(value)


class MeetingPlace:
    """The ct_store of a torch Store, as `handle`.

    Its functions stay alive as long as this object, which must live as long as the groups that meet there.
    """

    def __init__(self, store, timeout_ms):
        self.error = None  # the last exception of the torch store: libct only gets a status
        ops = {
            "set": lambda arg, key, value, size: store.set(key.decode(), ctypes.string_at(value, size)),
            "get": lambda arg, key, ms, value, size: _give(self._get(store, key.decode(), ms), value, size),
            "add": lambda arg, key, delta, total: total.__setitem__(0, store.add(key.decode(), delta)),
            "wait": lambda arg, keys, count, ms: self._wait(store, [k.decode() for k in keys[:count]], ms),
            "check": lambda arg, keys, count, present: present.__setitem__(
                0, int(store.check([k.decode() for k in keys[:count]]))
            ),
            "compare_set": lambda arg, key, old, old_size, new, new_size, value, size: _give(
                store.compare_set(
                    key.decode(), ctypes.string_at(old, old_size), ctypes.string_at(new, new_size)
                ),
                value,
                size,
            ),
            "delete_key": lambda arg, key, gone: gone.__setitem__(0, int(store.delete_key(key.decode()))),
            "append": lambda arg, key, value, size: store.append(key.decode(), ctypes.string_at(value, size)),
        }
        types = dict(_StoreOps._fields_)
        self._ops = _StoreOps(
            ctypes.sizeof(_StoreOps), **{name: types[name](self._guarded(f)) for name, f in ops.items()}
        )
        self.handle = ctypes.c_void_p()
        check(lib.ct_store_wrap(ctypes.byref(self._ops), None, timeout_ms, ctypes.byref(self.handle)))

    def close(self):
        handle, self.handle = self.handle, None
        if handle is not None:
            lib.ct_store_close(handle)

    # An exception can't pass through libct: it becomes a status there, and the cause of the error here.
    def _guarded(self, function):
        def call(*arguments):
            try:
                function(*arguments)
                return Status.OK
            except dist.DistNetworkError as error:
                self.error = error
                return Status.PEER
            except Exception as error:
                self.error = error
                text = str(error).lower()
                return Status.TIMEOUT if "timeout" in text or "timed out" in text else Status.SYSTEM

        return call

    @staticmethod
    def _wait(store, keys, ms):
        store.wait(keys, _FOREVER if ms < 0 else timedelta(milliseconds=ms))

    def _get(self, store, key, ms):
        self._wait(store, [key], ms)
        value = store.get(key)
        return value if isinstance(value, bytes) else value.encode()
