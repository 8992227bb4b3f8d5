# SPDX-License-Identifier: Apache-2.0
"""peers_gloo - PyTorch's collectives over gloo by size, measured as bench/peers_mpi.c measures an MPI's.

    peers_gloo.py OPERATIONS SIZES MS

The rows, the way of measuring and what is printed are those of peers_mpi.c.
"""
import os
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

WARM_UP, LEAST_SAMPLES, MOST_SAMPLES, TOO_LONG_US = 5, 5, 10240, 1e6
COMPARED = 16384

rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def at_root(tensor):
    return list(tensor.chunk(ranks)) if rank == 0 else None


def gather(send, recv):
    to = at_root(recv)
    return lambda: dist.gather(send, to, 0)


def scatter(send, recv):
    parts = at_root(send)
    return lambda: dist.scatter(recv, parts, 0)


def ping_pong(send, recv):
    def call():
        if rank == 0:
            dist.send(send, 1)
        if rank < 2:
            dist.recv(recv, 1 - rank)
        if rank == 1:
            dist.send(send, 0)

    return call


# name: what makes the call (lists of views before the clock runs), in place, blocks of send and of
# recv, only the root gets, what recv must hold, trips
OPERATIONS = {
    "all_reduce": (lambda send, recv: lambda: dist.all_reduce(recv), True, 1, 1, False, "sum", 1),
    "reduce": (lambda send, recv: lambda: dist.reduce(recv, 0), True, 1, 1, True, "sum", 1),
    "broadcast": (lambda send, recv: lambda: dist.broadcast(recv, 0), True, 1, 1, False, "root", 1),
    "all_gather": (lambda send, recv: lambda: dist.all_gather_into_tensor(recv, send), False, 1, ranks, False, "each", 1),
    "gather": (gather, False, 1, ranks, True, "each", 1),
    "scatter": (scatter, False, ranks, 1, False, "own of root", 1),
    "reduce_scatter": (lambda send, recv: lambda: dist.reduce_scatter_tensor(recv, send), False, ranks, 1, False, "own of sum", 1),
    "all_to_all": (lambda send, recv: lambda: dist.all_to_all_single(recv, send), False, ranks, ranks, False, "own of each", 1),
    "barrier": (lambda send, recv: dist.barrier, False, 1, 1, False, None, 1),
    "ping_pong": (ping_pong, False, 1, 1, False, "other", 2),
}


def now():
    return time.perf_counter_ns() / 1e3


def longest(us):
    tensor = torch.tensor([us], dtype=torch.float64)
    dist.all_reduce(tensor, op=dist.ReduceOp.MAX)
    return tensor.item()


# ---- Right or wrong ----


def values_of(of_rank, start, count):
    at = torch.arange(start, start + count)
    return ((at * 7 + at // 61 + of_rank * 5) % 31).float()


def expected(what, count):
    own = rank * count
    if what == "sum":
        return sum(values_of(r, 0, count) for r in range(ranks))
    if what == "own of sum":
        return sum(values_of(r, own, count) for r in range(ranks))
    if what == "root":
        return values_of(0, 0, count)
    if what == "own of root":
        return values_of(0, own, count)
    if what == "each":
        return torch.cat([values_of(r, 0, count) for r in range(ranks)])
    if what == "own of each":
        return torch.cat([values_of(r, own, count) for r in range(ranks)])
    return values_of(1 - rank, 0, count)


def wrong(recv, count, what, only_root):
    """Over all ranks; large buffers are compared evenly, not whole."""
    differ = 0
    if what and not (only_root and rank != 0) and not (what == "other" and rank > 1):
        step = count // COMPARED + 1
        differ = (recv[::step] != expected(what, count)[::step]).sum().item()
    total = torch.tensor([differ])
    dist.all_reduce(total)
    return total.item()


# ---- Times, in us ----


def take_samples(call, budget):
    start, times, chunk = now(), [], LEAST_SAMPLES
    while len(times) + chunk <= MOST_SAMPLES:
        for _ in range(chunk):
            dist.barrier()
            began = now()
            call()
            times.append(now() - began)
        if longest(now() - start) >= budget:
            break
        chunk = len(times)
    return times


def measure(call, budget, trips):
    times = take_samples(call, budget)
    samples = len(times)
    times.sort()
    p50 = longest(times[(samples - 1) // 2]) / trips
    p99 = longest(times[(samples - 1) * 99 // 100]) / trips
    dist.barrier()
    began = now()
    for _ in range(samples):
        call()
    return p50, p99, longest((now() - began) / samples) / trips, samples


def row(name, size, budget):
    """True: on with the next size."""
    make, in_place, send_blocks, recv_blocks, only_root, what, trips = OPERATIONS[name]
    blocks = max(send_blocks, recv_blocks)
    count = max(size // 4 // blocks, 1)
    send, recv = torch.zeros(count * send_blocks), torch.full((count * recv_blocks,), float("nan"))
    (recv if in_place else send).copy_(values_of(rank, 0, count * send_blocks))
    call = make(send, recv)
    dist.barrier()
    began = now()
    call()
    if longest(now() - began) > TOO_LONG_US:
        return False
    if wrong(recv, count, what, only_root):
        sys.exit(f"peers_gloo: wrong: {name} of {size} bytes")
    for _ in range(WARM_UP - 1):
        call()
    p50, p99, mean, samples = measure(call, budget, trips)
    if rank == 0:
        print(f"{name},{count * blocks * 4 if what else 0},{p50:.4f},{p99:.4f},{mean:.4f},{samples}", flush=True)
    return what is not None


def main():
    wanted, sizes, budget = sys.argv[1].split(","), [int(s) for s in sys.argv[2].split(",")], float(sys.argv[3]) * 1e3
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=100))
    for name in OPERATIONS:
        if name in wanted:
            all(row(name, size, budget) for size in sizes)
    dist.destroy_process_group()


main()
