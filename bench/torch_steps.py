# SPDX-License-Identifier: Apache-2.0
"""A rank of bench/torch: each row is made by a group of libct's and by one of gloo's in turns, and the medians of the
slowest rank are compared.  --rounds=N (5): turns; --json=FILE: the rows; --groups=ct,gloo: these backends;
--device=cuda: on GPUs, which ranks share where there are fewer."""

import json
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from ctrun import torch_backend
from progress import Progress

torch.set_num_threads(1)
options = dict(word[2:].split("=", 1) for word in sys.argv[1:])
rounds = int(options.get("rounds", 5))
device = options.get("device", "cpu")
if device == "cuda":
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
torch.set_default_device(device)
torch_backend.register()
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
names = options.get("groups", "ct,gloo").split(",")
groups = {name: dist.new_group(range(size), backend=name) for name in names}
meshes = {name: DeviceMesh.from_group(group, device) for name, group in groups.items()}


def finish():
    if device == "cuda":
        torch.cuda.synchronize()


def check(group):
    """That its results are right: calls in the current stream, behind and before what is enqueued there."""
    for count in (3, 100_000):
        for async_op in (False, True):
            t = torch.arange(count, dtype=torch.float32) * (rank + 1)
            work = dist.all_reduce(t, group=group, async_op=async_op)
            if async_op:
                work.wait()
            want = torch.arange(count, dtype=torch.float32) * (size * (size + 1) // 2)
            assert torch.equal(t, want), (rank, count, async_op)
        lists = [torch.zeros(count) for _ in range(size)]
        dist.all_gather(lists, torch.full((count,), rank + 1.0), group=group)
        assert all(bool((part == i + 1).all()) for i, part in enumerate(lists)), (rank, count)
        part = torch.zeros(count)
        dist.reduce_scatter_tensor(part, torch.ones(count * size), group=group)
        assert bool((part == size).all()), (rank, count)
        got = torch.zeros(count)
        ops = [
            dist.P2POp(dist.isend, torch.full((count,), float(rank)), (rank + 1) % size, group),
            dist.P2POp(dist.irecv, got, (rank - 1) % size, group),
        ]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        assert bool((got == (rank - 1) % size).all()), (rank, count)


def all_reduce(count, async_op=False):
    def make(name):
        tensor, group = torch.zeros(count), groups[name]
        if async_op:
            return lambda: dist.all_reduce(tensor, group=group, async_op=True).wait()
        return lambda: dist.all_reduce(tensor, group=group)

    return make


def future(name):
    tensor, group = torch.zeros(2), groups[name]
    return lambda: dist.all_reduce(tensor, group=group, async_op=True).get_future().wait()


def exchange(count):
    """A message to the next rank and one from the rank before."""

    def make(name):
        group, out, got = groups[name], torch.zeros(count), torch.zeros(count)

        def step():
            work = dist.isend(out, (rank + 1) % size, group=group)
            dist.recv(got, (rank - 1) % size, group=group)
            work.wait()

        return step

    return make


def objects(name):
    got = [None] * size
    return lambda: dist.all_gather_object(got, {"rank": rank, "steps": [1, 2, 3]}, group=groups[name])


def step_of(model, next_input):
    optimizer = torch.optim.SGD(model.parameters(), 0.01)

    def step():
        optimizer.zero_grad()
        model(next_input()).square().mean().backward()
        optimizer.step()

    return step


def mlp_of_ddp(name):
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)
    )
    return nn.parallel.DistributedDataParallel(model, process_group=groups[name])


def ddp(name):
    model, x = mlp_of_ddp(name), torch.randn(32, 512)
    return step_of(model, lambda: x)


class Samples(torch.utils.data.IterableDataset):
    """Each takes a worker about as long as to decode a small picture."""

    def __iter__(self):
        noise = torch.randn(512, 512, device="cpu")
        while True:
            yield noise @ noise[:, 0]


def ddp_with_loader(name):
    batches = iter(torch.utils.data.DataLoader(Samples(), batch_size=32, num_workers=2))
    return step_of(mlp_of_ddp(name), lambda: next(batches).to(device))


def fsdp(name):
    torch.manual_seed(1)
    layers = [nn.TransformerEncoderLayer(128, 4, 512, batch_first=True) for _ in range(2)]
    model = nn.Sequential(*[fully_shard(layer, mesh=meshes[name]) for layer in layers])
    x = torch.randn(4, 16, 128)
    return step_of(fully_shard(model, mesh=meshes[name]), lambda: x)


def decode(name):
    torch.manual_seed(1)
    blocks = []
    for _ in range(8):
        block = nn.Sequential(nn.Linear(512, 1024, bias=False), nn.ReLU(), nn.Linear(1024, 512, bias=False))
        blocks.append(
            parallelize_module(block, meshes[name], {"0": ColwiseParallel(), "2": RowwiseParallel()})
        )
    model, x = nn.Sequential(*blocks), torch.randn(1, 512)

    def step():
        with torch.no_grad():
            model(x).sum().item()  # its last all_reduce is waited for

    return step


# name: what makes its step for a group, steps in a round
ROWS = {
    "all_reduce 8 B": (all_reduce(2), 400),
    "all_reduce 8 B, async": (all_reduce(2, True), 400),
    "all_reduce 8 B, its Future": (future, 400),
    "all_reduce 64 KiB": (all_reduce(16 << 10), 300),
    "all_reduce 64 KiB, async": (all_reduce(16 << 10, True), 300),
    "all_reduce 1 MiB": (all_reduce(256 << 10), 100),
    "all_reduce 32 MiB": (all_reduce(8 << 20), 8),
    "send and recv 8 B": (exchange(2), 300),
    "send and recv 1 MiB": (exchange(256 << 10), 100),
    "all_gather_object": (objects, 100),
    "DDP step, MLP of 3 layers": (ddp, 15),
    "DDP step, 2 DataLoader workers": (ddp_with_loader, 15),
    "FSDP2 step, 2 transformer layers": (fsdp, 15),
    "TP decode, 8 MLP blocks": (decode, 30),
}


def times(step, count):
    step()
    finish()
    taken = []
    for _ in range(count):
        begin = time.perf_counter()
        step()
        finish()
        taken.append((time.perf_counter() - begin) * 1e6)
    return taken


def median(values):
    return sorted(values)[len(values) // 2]


def row(make, count):
    steps, taken = {name: make(name) for name in groups}, {name: [] for name in groups}
    for turn in range(rounds):
        for name in sorted(groups, reverse=turn % 2):
            dist.barrier()
            taken[name] += times(steps[name], count)
    medians = torch.tensor([median(taken[name]) for name in groups], device="cpu")
    dist.all_reduce(medians, dist.ReduceOp.MAX)
    return dict(zip(groups, medians.tolist()))


for name, group in groups.items():
    if device == "cpu" or name != "gloo":  # which lacks some of these on CUDA tensors
        check(group)
if rank == 0:
    columns = "".join(f"{name:>12}" for name in names) + "   the last by the first"
    print(
        f"{size} ranks, torch {torch.__version__}, {device}: us, medians of {rounds} rounds\n{'':34}{columns}"
    )
progress = Progress("torch_steps", len(ROWS))
for title, (make, count) in ROWS.items():
    if rank == 0:
        progress.case(title)
    got = row(make, count)
    progress.wipe()
    if rank == 0:
        columns = "".join(f"{got[name]:12.1f}" for name in names)
        print(f"{title:34}{columns}{got[names[-1]] / got[names[0]]:9.2f}", flush=True)
    if rank == 0 and "json" in options:
        with open(options["json"], "a") as file:
            file.write(json.dumps({"ranks": size, "device": device, "row": title, **got}) + "\n")
dist.destroy_process_group()
