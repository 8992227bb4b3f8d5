# SPDX-License-Identifier: Apache-2.0
"""A job on three ranks in which nothing is wrong, though ranks evaluate, write checkpoints and compile.

    ctrun --stall=15 --nproc-per-node=3 python3 python/tests/sound.py BACKEND SECONDS

ctrun must write no line.
"""

import random
import sys
import tempfile
import time

import torch
import torch.distributed as dist


def pause(what, rank, model, folder, own, pair):
    """What a training does between its steps."""
    if what == "evaluates" and rank == 0:
        time.sleep(own.uniform(1, 12))
    elif what == "saves":
        if rank == 1:
            torch.save(model.state_dict(), f"{folder}/checkpoint")
            time.sleep(own.uniform(0, 10))
        dist.barrier()
    elif what == "compiles":
        torch.compile(lambda x: torch.relu(x) * 2 + 1)(torch.randn(8, 1 + rank))
    elif what == "gathers":
        dist.all_gather_object([None] * 3, {"rank": rank})
    elif what == "computes during a call":
        work = dist.all_reduce(torch.ones(1000), async_op=True)
        time.sleep(own.uniform(0, 4))
        work.wait()
    elif what == "uses a group" and rank != 1:
        dist.all_reduce(torch.ones(10), group=pair)


def main(backend, seconds):
    dist.init_process_group(backend)
    rank = dist.get_rank()
    pair = dist.new_group([0, 2])
    torch.manual_seed(rank)
    common, own = random.Random(7), random.Random(rank)
    layers = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    model = torch.nn.parallel.DistributedDataParallel(layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    end, is_over = time.monotonic() + seconds, torch.zeros(1)
    with tempfile.TemporaryDirectory() as folder:
        while not is_over:
            for _ in range(common.randrange(20, 500)):  # up to 10 s of steps
                optimizer.zero_grad()
                model(torch.randn(8, 64)).pow(2).mean().backward()
                optimizer.step()
                time.sleep(0.02)
            kinds = ["evaluates", "saves", "compiles", "gathers", "computes during a call", "uses a group"]
            pause(common.choice(kinds), rank, model, folder, own, pair)
            is_over[0] = time.monotonic() > end
            dist.all_reduce(is_over)
    dist.destroy_process_group()
    print("rank", rank, "is done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
