#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torch_tensors.py - libct's calls on tensors that PyTorch allocates on a GPU which all ranks share.

Runs under ctrun, with the package ctrun in PYTHONPATH; any torch with CUDA will do, since libct is called as a C program
calls it.  Rank 0 prints a JSON line for each part, with the elements that are wrong.  gloo brings what is compared to all
ranks.  Exits with 1 if something is wrong.
"""

import json
import os
import random
import sys
import threading
import time

import torch
import torch.distributed as dist

from ctrun._libct import DTYPE, OPS, lib

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
TYPES = {torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16", torch.int64: "i64", torch.uint8: "u8"}
total_wrong = 0


def check(status):
    if status != 0:
        sys.exit(lib.ct_last_error().decode())


def all_reduce(tensor, out=None):
    out = tensor if out is None else out
    check(lib.ct_all_reduce(None, tensor.data_ptr(), out.data_ptr(), tensor.numel(), DTYPE[TYPES[tensor.dtype]], OPS["sum"], None))


def say(part, wrong, **more):
    """The elements that are wrong on any rank."""
    global total_wrong
    wrong = torch.tensor([wrong])
    dist.all_reduce(wrong)
    total_wrong += int(wrong)
    if RANK == 0:
        print(json.dumps({"part": part, "wrong": int(wrong), **more}), flush=True)


def of_all_ranks(here):
    """Of each rank a tensor of host memory."""
    of_all = [torch.empty_like(here.view(torch.uint8)) for _ in range(SIZE)]
    dist.all_gather(of_all, here.view(torch.uint8))
    return [one.view(here.dtype) for one in of_all]


def wrong_elements(sent, got):
    """libct folds from rank 0 on; 16-bit floats in f32, and rounds once."""
    is_narrow = sent.dtype in (torch.bfloat16, torch.float16)
    first, *others = [one.float() if is_narrow else one for one in of_all_ranks(sent.cpu())]
    for one in others:
        first = first + one
    return int((first.to(sent.dtype) != got.cpu()).sum())


def drawn(n, dtype):
    if dtype in (torch.int64, torch.uint8):
        return torch.randint(0, 100, (n,), dtype=dtype, device="cuda")
    return torch.randn(n, device="cuda").to(dtype)


def in_no_stream():
    wrong = 0
    for dtype in TYPES:
        for n in (1, 777, 65536, 1000003):
            tensor = drawn(n, dtype)
            sent = tensor.clone()
            all_reduce(tensor)
            wrong += wrong_elements(sent, tensor)
    say("in no stream", wrong)


def in_a_stream():
    """Tensors come and go, and now and then the allocator gives its memory back: cudaFree() waits for the stream."""
    wrong, calls = 0, 150
    for i in range(calls):
        tensor = drawn(random.choice((1, 1000, 50000, 3000000)), random.choice(list(TYPES)))
        sent = tensor.clone()
        all_reduce(tensor)
        got = tensor * 1
        del tensor
        if i % 10 == 3:
            torch.cuda.empty_cache()
        if i % 5 == 0:
            wrong += wrong_elements(sent, got)
    say("in a stream", wrong, calls=calls)


def beside_a_thread_that_frees():
    over, frees = threading.Event(), [0]

    def free():
        while not over.is_set():
            memory = torch.empty(5000000, device="cuda")
            del memory
            torch.cuda.empty_cache()
            frees[0] += 1

    thread = threading.Thread(target=free)
    thread.start()
    ones, sums = torch.ones(100000, device="cuda"), torch.empty(100000, device="cuda")
    began, calls = time.monotonic(), 300
    for _ in range(calls):
        all_reduce(ones, sums)
    torch.cuda.current_stream().synchronize()
    us = (time.monotonic() - began) / calls * 1e6
    over.set()
    thread.join()
    say("beside a thread that frees", int((sums != SIZE).sum()), us=round(us), frees=frees[0])


def in_a_graph(stream):
    """Memory of expandable segments can't be in one."""
    numbers, sums = torch.ones(4096, device="cuda"), torch.zeros(4096, device="cuda")
    all_reduce(numbers, sums)
    stream.synchronize()
    graph, launches = torch.cuda.CUDAGraph(), 20
    with torch.cuda.graph(graph, stream=stream):
        all_reduce(numbers, sums)
        numbers.add_(1)
    for _ in range(launches):
        graph.replay()
    stream.synchronize()
    check(lib.ct_barrier(None, None))
    say("in a graph", int((sums != SIZE * launches).sum()), launches=launches)


def train(reduce, steps):
    """Returns ms of a step, and the weights in host memory."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(6)]).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    torch.manual_seed(100 + RANK)
    for step in range(-5, steps):
        if step == 0:
            torch.cuda.synchronize()
            dist.barrier()
            began = time.monotonic()
        optimizer.zero_grad(set_to_none=True)
        model(torch.randn(64, 1024, device="cuda")).square().mean().backward()
        flat, at = torch.cat([p.grad.view(-1) for p in model.parameters()]), 0
        reduce(flat)
        for p in model.parameters():
            p.grad = flat[at : at + p.numel()].view_as(p).div(SIZE)
            at += p.numel()
        optimizer.step()
    torch.cuda.synchronize()
    ms = (time.monotonic() - began) / steps * 1e3
    return ms, torch.cat([p.data.view(-1) for p in model.parameters()]).cpu()


def training():
    ms, weights = train(all_reduce, 60)
    wrong = sum(int((one != weights).sum()) for one in of_all_ranks(weights))
    ms_of_gloo = train(dist.all_reduce, 20)[0]
    say("training", wrong, gradient_bytes=weights.numel() * 4, ms_a_step=round(ms, 2), ms_by_gloo=round(ms_of_gloo, 2))


def main():
    random.seed(7)
    torch.manual_seed(RANK)
    torch.cuda.set_device(0)
    dist.init_process_group("gloo")
    check(lib.ct_init_process_group(None))
    in_no_stream()
    stream = torch.cuda.Stream()
    check(lib.ct_set_stream(None, stream.cuda_stream))
    with torch.cuda.stream(stream):
        in_a_stream()
        beside_a_thread_that_frees()
        if "expandable_segments:True" not in os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""):
            in_a_graph(stream)
        training()
    check(lib.ct_destroy_process_group(None))
    dist.destroy_process_group()
    return total_wrong != 0


sys.exit(main())
