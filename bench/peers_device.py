# SPDX-License-Identifier: Apache-2.0
"""peers_device - PyTorch's all_reduce on CUDA tensors of ranks that share GPU 0, by size.

    ctrun --nproc-per-node=4 python3 peers_device.py gloo|nccl

A line of JSON for each size, at once, so that who is stopped has shown how far it came.  Measured as
ct_bench measures: a barrier, the clock, one call, until its result is there; of each sample the
slowest rank.
"""
import json
import os
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

SIZES = [1 << 10, 1 << 20, 16 << 20, 64 << 20, 256 << 20]
BUDGET_S, MOST, TOO_LONG_S = 0.4, 200, 3


def now():
    return time.perf_counter()


def seconds(tensor):
    dist.barrier()
    torch.cuda.synchronize()
    began = now()
    dist.all_reduce(tensor)
    torch.cuda.synchronize()
    return now() - began


def slowest(times):
    tensor = torch.tensor(times, device="cuda", dtype=torch.float64)
    dist.all_reduce(tensor, op=dist.ReduceOp.MAX)
    return tensor.tolist()


def main():
    ranks, rank = int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"])
    torch.set_num_threads(1)
    torch.cuda.set_device(0)
    dist.init_process_group(sys.argv[1], timeout=timedelta(seconds=100))
    for size in SIZES:
        tensor = torch.full((size // 4,), float(rank + 1), device="cuda")
        dist.all_reduce(tensor)
        right = bool((tensor == ranks * (ranks + 1) / 2).all())
        tensor.fill_(0.5)
        one = slowest([seconds(tensor)])[0]
        count = max(3, min(MOST, int(BUDGET_S / one)))
        times = sorted(slowest([seconds(tensor) for _ in range(count)]))
        if rank == 0:
            print(json.dumps({"operation": "all_reduce", "place": "in", "bytes": size, "right": right, "samples": count,
                              "p50_us": round(times[count // 2] * 1e6, 1), "p99_us": round(times[int(0.99 * (count - 1))] * 1e6, 1)}), flush=True)
        if one > TOO_LONG_S:
            break
    sys.stdout.flush()
    os._exit(0)  # to take a half-broken group apart may hang


main()
