# SPDX-License-Identifier: Apache-2.0
"""Store, where processes find each other."""

import ctypes
import os
import threading

from ctrun._libct import InvalidError, check, integer, lib, libc_free, milliseconds, text


class Store:
    """Keys and values with which processes find each other, in the formats of torch.distributed's stores.

    Keys are str; values are bytes, or str when they are set.  Timeouts are in seconds; None is the store's own
    timeout.  Several threads may use a store.  Each method raises TimedOut if a time limit passed, PeerError if the
    server is gone, and InvalidError if the store is closed.  A `with` block closes the store at its end.
    """

    def __init__(self, handle, keep=None):
        self._handle, self._keep, self._pid = handle, keep, os.getpid()
        self._lock, self._calls, self._closed = threading.Lock(), 0, False

    @classmethod
    def tcp(cls, host, port, is_master=False, timeout=300):
        """Connects to the server at host:port, and returns a Store.

        With is_master this process also serves the store there.  timeout is the limit of connecting and of each
        call.
        """
        handle = ctypes.c_void_p()
        check(
            lib.ct_store_tcp(
                text(host, "host"),
                integer(port, "port"),
                int(is_master),
                milliseconds(timeout),
                ctypes.byref(handle),
            )
        )
        return cls(handle)

    @classmethod
    def file(cls, path, timeout=300):
        """Returns a Store in a file, which the processes of one host share (torch's FileStore)."""
        handle = ctypes.c_void_p()
        check(lib.ct_store_file(text(path, "path"), milliseconds(timeout), ctypes.byref(handle)))
        return cls(handle)

    @classmethod
    def memory(cls):
        """Returns a Store in the memory of this process, for its threads."""
        handle = ctypes.c_void_p()
        check(lib.ct_store_hash(ctypes.byref(handle)))
        return cls(handle)

    def prefix(self, name):
        """Returns a Store that adds "name/" in front of every key of this one.  Either may be closed first."""
        handle = ctypes.c_void_p()
        self._call(lib.ct_store_prefix, text(name, "name"), ctypes.byref(handle))
        return type(self)(handle, self)

    def close(self):
        """Closes the store, after calls of other threads have ended.  May be called repeatedly."""
        with self._lock:
            self._closed = True
            handle = self._taken_if_unused()
        if handle is not None:
            check(lib.ct_store_close(handle))

    def _taken_if_unused(self):
        if self._calls or not self._closed:
            return None
        handle, self._handle = self._handle, None
        return handle

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        handle = getattr(self, "_handle", None)
        if handle is not None and self._pid == os.getpid():
            lib.ct_store_close(handle)

    def at(self):
        """Returns the ct_store *, for a call of libct."""
        if self._closed:
            raise InvalidError("the store was closed")
        return self._handle

    def _call(self, function, *arguments):
        with self._lock:
            handle = self.at()
            self._calls += 1
        try:
            check(function(handle, *arguments))
        finally:
            with self._lock:
                self._calls -= 1
                handle = self._taken_if_unused()
            if handle is not None:
                lib.ct_store_close(handle)

    def _value(self, function, *arguments):
        value, size = ctypes.c_void_p(), ctypes.c_size_t()
        self._call(function, *arguments, ctypes.byref(value), ctypes.byref(size))
        try:
            return ctypes.string_at(value, size.value)
        finally:
            libc_free(value)

    def set(self, key, value):
        """Sets the key to the value."""
        value = _bytes(value)
        self._call(lib.ct_store_set, text(key, "key"), value, len(value))

    def get(self, key, timeout=None):
        """Waits until the key exists, and returns its value as bytes."""
        return self._value(lib.ct_store_get, text(key, "key"), milliseconds(timeout))

    def add(self, key, delta=1):
        """Adds delta to the key's value, a decimal number (0 if the key is missing), and returns the sum."""
        total = ctypes.c_int64()
        delta = integer(delta, "delta", -(2**63), 2**63 - 1)
        self._call(lib.ct_store_add, text(key, "key"), delta, ctypes.byref(total))
        return total.value

    def wait(self, keys, timeout=None):
        """Waits until all keys exist."""
        self._call(lib.ct_store_wait, *_array(keys), milliseconds(timeout))

    def check(self, keys):
        """Returns True if all keys exist now."""
        present = ctypes.c_int()
        self._call(lib.ct_store_check, *_array(keys), ctypes.byref(present))
        return bool(present.value)

    def compare_set(self, key, expected, desired):
        """Sets the value to `desired` if it equals `expected`, and returns the value that the key has then.

        An empty `expected` equals a key that is missing.
        """
        expected, desired = _bytes(expected), _bytes(desired)
        return self._value(
            lib.ct_store_compare_set, text(key, "key"), expected, len(expected), desired, len(desired)
        )

    def append(self, key, value):
        """Appends value to the key's value.  Sets the value if the key is missing."""
        value = _bytes(value)
        self._call(lib.ct_store_append, text(key, "key"), value, len(value))

    def delete(self, key):
        """Deletes the key.  Returns True if it existed."""
        deleted = ctypes.c_int()
        self._call(lib.ct_store_delete, text(key, "key"), ctypes.byref(deleted))
        return bool(deleted.value)

    def num_keys(self):
        """Returns the number of all keys in the store, with any prefix."""
        count = ctypes.c_int64()
        self._call(lib.ct_store_num_keys, ctypes.byref(count))
        return count.value


def _bytes(value):
    """Of a str or of anything with bytes in it; not bytes(5), which are five zeros."""
    return value.encode() if isinstance(value, str) else bytes(memoryview(value))


def _array(keys):
    keys = [text(key, "key") for key in keys]
    return (ctypes.c_char_p * len(keys))(*keys), len(keys)
