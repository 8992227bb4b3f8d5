# SPDX-License-Identifier: Apache-2.0
"""Where the elements of an array are: by Python's buffer protocol, else by DLPack."""

import ctypes
import struct

from ctrun._libct import DTYPE, DTYPES

_FORMATS = {
    "e": "f16",
    "f": "f32",
    "d": "f64",
    "?": "bool",
    "Zf": "c64",
    "Zd": "c128",
    "F": "c64",
    "D": "c128",
}
_INTEGERS = set("bhilqnBHILQNc")
_WRITABLE, _FORMAT, _C_CONTIGUOUS = 0x1, 0x4, 0x38


class _PyBuffer(ctypes.Structure):
    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_DL_CPU, _DL_CUDA_HOST = 1, 3
_DL_DTYPES = {
    (0, 8): "i8",
    (0, 16): "i16",
    (0, 32): "i32",
    (0, 64): "i64",
    (1, 8): "u8",
    (1, 16): "u16",
    (1, 32): "u32",
    (1, 64): "u64",
    (2, 16): "f16",
    (2, 32): "f32",
    (2, 64): "f64",
    (4, 16): "bf16",
    (5, 64): "c64",
    (5, 128): "c128",
    (6, 8): "bool",
    (10, 8): "f8e4m3",
    (12, 8): "f8e5m2",
}

_get = ctypes.pythonapi.PyObject_GetBuffer
_get.restype, _get.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.POINTER(_PyBuffer), ctypes.c_int]
_release = ctypes.pythonapi.PyBuffer_Release
_release.restype, _release.argtypes = None, [ctypes.POINTER(_PyBuffer)]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class Buffer:
    """The memory of an array, as long as this object lives: its address, its count of elements and its ct_dtype.

    Raises TypeError if libct has no such dtype, and BufferError if the array is not contiguous or, with writable, is
    read-only.
    """

    __slots__ = ("address", "count", "dtype", "_keep", "_view")

    def __init__(self, array, writable=False):
        self._keep, self._view = array, None
        if hasattr(array, "__dlpack__") and not _has_buffer(array):
            self._from_dlpack(array)
        else:
            self._from_buffer(array, writable)

    def _from_buffer(self, array, writable):
        view = _PyBuffer()
        _get(array, ctypes.byref(view), _C_CONTIGUOUS | _FORMAT | (_WRITABLE if writable else 0))
        self._view = view
        self.dtype = _of_format((view.format or b"B").decode(), view.itemsize)
        self.address, self.count = view.buf, view.len // view.itemsize if view.itemsize else 0

    def _from_dlpack(self, array):
        capsule = array.__dlpack__()
        tensor = _DLTensor.from_address(_pointer(capsule, b"dltensor"))
        self._keep = (array, capsule, tensor)
        if tensor.device_type not in (_DL_CPU, _DL_CUDA_HOST):
            raise TypeError(
                f"{type(array).__name__}: memory of a device (DLPack's type {tensor.device_type}); "
                "this module takes host memory"
            )
        name = _DL_DTYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
        if name is None:
            raise TypeError(
                f"{type(array).__name__}: libct has no dtype for DLPack's ({tensor.code}, {tensor.bits} bits)"
            )
        shape = tensor.shape[: tensor.ndim]
        if tensor.strides and not _is_contiguous(shape, tensor.strides[: tensor.ndim]):
            raise BufferError(f"{type(array).__name__} of shape {tuple(shape)} is not contiguous")
        self.dtype, self.count = DTYPE[name], 1
        for length in shape:
            self.count *= length
        self.address = (tensor.data or 0) + tensor.byte_offset

    def __del__(self):
        if getattr(self, "_view", None) is not None:
            _release(ctypes.byref(self._view))

    @property
    def dtype_name(self):
        return DTYPES[self.dtype][0]


def _has_buffer(array):
    try:
        memoryview(array)
    except (TypeError, ValueError, BufferError):
        return False
    return True


def _is_contiguous(shape, strides):
    expected = 1
    for length, stride in zip(reversed(shape), reversed(strides)):
        if length == 0:
            return True
        if length > 1 and stride != expected:
            return False
        expected *= length
    return True


def _of_format(text, size):
    order, kind = (text[0], text[1:]) if text[:1] in "@=<>!" else ("@", text)
    name = _FORMATS.get(kind)
    if name is None and kind in _INTEGERS and struct.calcsize(("" if order == "@" else order) + kind) == size:
        name = f"{'i' if kind.islower() and kind != 'c' else 'u'}{8 * size}"
    if name not in DTYPE or (order in ">!" and size > 1):
        raise TypeError(f"libct has no dtype for elements of the format {text!r}")
    return DTYPE[name]
