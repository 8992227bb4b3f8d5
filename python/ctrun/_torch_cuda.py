# SPDX-License-Identifier: Apache-2.0
"""CUDA tensors of the backend "ct": the streams that its calls are in, as programs know them from NCCL's.

A call is in torch's current stream.  An asynchronous one is in a stream of the group's own, which first waits for the
current one; wait() lets the stream that is current then wait for it.  So the host does not wait for the GPU.  Where ranks
share a host and hand calls over by their streams, a call returns when all ranks have made it (ct_set_stream() in
ct_cuda.h, also for when the host waits for the GPU: a group's first calls).  A call that fails breaks the group and lets
its stream go on; the next call raises the error.
"""

import contextlib

import torch

from ctrun._torch_work import Held, wait_for

_LEGACY = 1  # CU_STREAM_LEGACY, which torch calls 0; for libct 0 is no stream, and it blocks


class Streams:
    """Of one group's calls."""

    def __init__(self):
        self._own = {}  # by device
        self._device = None  # of its last call

    def current(self, device):
        """For ct_set_stream()."""
        self._device = device
        return torch.cuda.current_stream(device).cuda_stream or _LEGACY

    @contextlib.contextmanager
    def enter(self, device, is_async, tensors):
        """Gives the stream of a call, for ct_set_stream(); it is torch's current one meanwhile."""
        if not is_async:
            yield self.current(device)
            return
        stream = self._own.get(device)
        if stream is None:
            stream = self._own[device] = torch.cuda.Stream(device)
        stream.wait_stream(torch.cuda.current_stream(device))
        for tensor in tensors:  # whoever frees it doesn't know this stream
            tensor.record_stream(stream)
        with torch.cuda.stream(stream):
            yield self.current(device)

    def synchronize(self):
        """A barrier is also one for what the GPU has to do."""
        if self._device is not None:
            torch.cuda.current_stream(self._device).synchronize()


class StreamWork(Held):
    """A call in the stream that is current when this is made."""

    def __init__(self, device, result):
        super().__init__()
        self._device, self._result = device, result
        self._stream, self._event = torch.cuda.current_stream(device), torch.cuda.Event()
        self._event.record(self._stream)

    def wait(self, timeout=None):
        """timeout: the host waits as long at most."""
        wait_for(self, timeout)
        self._event.wait(torch.cuda.current_stream(self._device))
        return True

    def future(self):
        """Done at once, for who goes on in a stream: torch lets the streams of its callbacks wait."""
        future = torch.futures.Future(devices=[self._device])
        with torch.cuda.stream(self._stream):
            self._event.wait(self._stream)
            future.set_result(self._result)
        return future

    def is_completed(self):
        return self._event.query()

    def result(self):
        return self._result
