# SPDX-License-Identifier: Apache-2.0
"""torch.cuda on tests/fake's driver, as much of it as the backend uses: streams, events, and stand-ins for tensors.

torch's own CUDA can't run on that driver.  What is real here is libct and how the backend calls it; the driver begins
everything enqueued late and ends a program that uses memory too early, so a call in a wrong stream shows.
"""

import contextlib
import ctypes
import os
import threading

import torch

cuda = ctypes.CDLL(os.path.join(os.environ["CT_BUILD"], "tests", "libcuda.so.1"), ctypes.RTLD_GLOBAL)
DEVICE = torch.device("cuda", 0)
_here = threading.local()


def call(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    assert code == 0, (name, code)


_context = ctypes.c_void_p()
call("cuInit", 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(_context), 0)
call("cuCtxSetCurrent", _context)


class Event:
    def __init__(self):
        self._handle = ctypes.c_void_p()
        call("cuEventCreate", ctypes.byref(self._handle), 0)

    def record(self, stream):
        call("cuEventRecord", self._handle, ctypes.c_void_p(stream.cuda_stream))

    def wait(self, stream):
        call("cuStreamWaitEvent", ctypes.c_void_p(stream.cuda_stream), self._handle, 0)

    def query(self):
        return cuda.cuEventQuery(self._handle) == 0


class Stream:
    def __init__(self, device=DEVICE, handle=None):
        self.cuda_stream = handle
        if handle is None:
            made = ctypes.c_void_p()
            call("cuStreamCreate", ctypes.byref(made), 1)  # it does not wait for the default stream
            self.cuda_stream = made.value

    def wait_stream(self, other):
        event = Event()
        event.record(other)
        event.wait(self)

    def synchronize(self):
        call("cuStreamSynchronize", ctypes.c_void_p(self.cuda_stream))


_default = Stream(handle=0)


def current_stream(device=DEVICE):
    return getattr(_here, "stream", _default)


@contextlib.contextmanager
def stream(other):
    before, _here.stream = current_stream(), other
    yield
    _here.stream = before


@contextlib.contextmanager
def device(_):
    call("cuCtxSetCurrent", _context)
    yield


class Tensor:
    """Elements in the fake GPU's memory; filling and reading them is enqueued in the current stream."""

    is_cpu, is_cuda, layout, device = False, True, torch.strided, DEVICE

    def __init__(self, values, dtype=torch.float32):
        self.dtype, self._host = dtype, torch.as_tensor(values, dtype=dtype).clone()
        self.recorded = []
        address = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(self._bytes(), 1)))
        self._address = address.value
        self._copy("cuMemcpyHtoDAsync_v2", self._address, self._host.data_ptr())

    def _bytes(self):
        return self._host.numel() * self._host.element_size()

    def _copy(self, how, to, source):
        at = ctypes.c_void_p(current_stream().cuda_stream)
        call(how, ctypes.c_void_p(to), ctypes.c_void_p(source), ctypes.c_size_t(self._bytes()), at)

    def read(self):
        """What the current stream finds there in its turn; then waits for it."""
        self._copy("cuMemcpyDtoHAsync_v2", self._host.data_ptr(), self._address)
        current_stream().synchronize()
        return self._host.tolist()

    def is_contiguous(self):
        return True

    def is_conj(self):
        return False

    def is_neg(self):
        return False

    def is_complex(self):
        return False

    def data_ptr(self):
        return self._address

    shape = property(lambda self: self._host.shape)

    def numel(self):
        return self._host.numel()

    def element_size(self):
        return self._host.element_size()

    def dim(self):
        return self._host.dim()

    @property
    def shape(self):
        return self._host.shape

    def record_stream(self, other):
        self.recorded.append(other.cuda_stream)


class Future:
    """torch's wants a CUDA that works."""

    def __init__(self, *, devices):
        assert devices == [DEVICE]

    def set_result(self, result):
        self.result, self._event = result, Event()
        self._event.record(current_stream())

    def wait(self):
        self._event.wait(current_stream())
        return self.result


torch.cuda.current_stream, torch.cuda.stream, torch.cuda.device = current_stream, stream, device
torch.cuda.Stream, torch.cuda.Event = Stream, Event
