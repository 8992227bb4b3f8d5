# SPDX-License-Identifier: Apache-2.0
"""init.py - a gloo group made by an init method of the user's choice.

    init.py URL [ENDING]     how the ranks end:
                             leave   without destroy_process_group
                             child   so too, and leave a child that holds the store
                             kill    rank 1 kills itself, the others stay
                             once    rank 1 fails, the others stay; but if the file `once`
                                     is there, which it leaves, all end well"""
import os
import signal
import sys
from datetime import timedelta

import torch
import torch.distributed as dist

from values import same

url, ending = (sys.argv[1:] + ["destroy"])[:2]
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
again = os.path.exists("once")
dist.init_process_group("gloo", init_method=url, rank=rank, world_size=size,
                        timeout=timedelta(seconds=60))
x = torch.tensor([rank + 1])
dist.all_reduce(x)
same("all_reduce", x.item(), size * (size + 1) // 2)
if ending == "child" and os.fork() == 0:
    os.closerange(0, 3)
    signal.pause()
if ending == "kill":
    os.kill(os.getpid(), signal.SIGKILL) if rank == 1 else signal.pause()
if ending == "once" and not again:
    if rank != 1:
        signal.pause()
    open("once", "w").close()
    os._exit(7)
if ending in ("destroy", "once"):
    dist.destroy_process_group()
else:
    # Not through PyTorch's destructors: those sometimes abort ("terminate called without an
    # active exception") when a peer leaves first, under torchrun too.
    os._exit(0)
