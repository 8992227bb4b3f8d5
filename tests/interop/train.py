# SPDX-License-Identifier: Apache-2.0
"""train.py - what a training program does with torch.distributed, on the CPU, twice.

Every number is a small multiple of a power of two, so that sums and means are
exact and the ranks' parameters can be compared with == to those of one process
that has all the data."""
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from values import same

STEPS = 2


def collectives(rank, size):
    ranks = torch.full((1000,), rank + 1.0)
    dist.all_reduce(ranks)
    same("all_reduce", ranks.unique().tolist(), [size * (size + 1) / 2])

    even = list(range(0, size, 2))
    group = dist.new_group(even)
    if rank in even:
        x = torch.tensor([rank])
        dist.all_reduce(x, group=group)
        same("all_reduce of the even ranks", x.item(), sum(even))
        same("group rank", dist.get_rank(group), rank // 2)

    dist.barrier()
    dist.monitored_barrier()
    objects = [{"from": rank, "list": [1, "two", None]}] if rank == 1 else [None]
    dist.broadcast_object_list(objects, src=1)
    same("broadcast_object_list", objects, [{"from": 1, "list": [1, "two", None]}])


def model():
    m = torch.nn.Linear(3, 2, dtype=torch.float64)
    with torch.no_grad():
        m.weight.copy_(torch.arange(6.0).reshape(2, 3) / 4)
        m.bias.fill_(0.5)
    return m, torch.optim.SGD(m.parameters(), lr=0.125)


def loss(m, rank, step):
    x = torch.arange(6, dtype=torch.float64).reshape(2, 3) + rank - step
    return ((m(x) - rank) ** 2).mean()


def ddp(rank, size):
    m, optimizer = model()
    parallel = DistributedDataParallel(m)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss(parallel, rank, step).backward()
        optimizer.step()

    alone, optimizer = model()
    for step in range(STEPS):
        optimizer.zero_grad()
        (sum(loss(alone, r, step) for r in range(size)) / size).backward()
        optimizer.step()
    for mine, want in zip(m.parameters(), alone.parameters()):
        everybodys = [torch.empty_like(mine) for _ in range(size)]
        dist.all_gather(everybodys, mine.detach())
        for r, theirs in enumerate(everybodys):
            same(f"parameters of rank {r}", theirs.tolist(), want.tolist())


def join(again):
    """env://; the second time too, but under a prefix of its own: PyTorch leaves its keys
    in the store of the launcher, ctrun's as torchrun's, and ranks of a later init under
    the same names would find the gloo addresses of the earlier one."""
    timeout = timedelta(seconds=60)
    if not again:
        dist.init_process_group("gloo", timeout=timeout)
        return
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]),
                          is_master=False, timeout=timeout)
    dist.init_process_group("gloo", timeout=timeout, store=dist.PrefixStore("again", store),
                            rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))


for again in False, True:
    join(again)
    rank, size = dist.get_rank(), dist.get_world_size()
    same("rank and size", [rank, size], [int(os.environ[v]) for v in ("RANK", "WORLD_SIZE")])
    collectives(rank, size)
    ddp(rank, size)
    dist.destroy_process_group()
