# SPDX-License-Identifier: Apache-2.0
"""Collectives and messages between processes, by libct.

    import ctrun as ct
    import numpy as np

    with ct.init() as world:                 # under ctrun, torchrun, mpirun or srun; alone without
        x = np.full(4, world.rank, np.float32)
        world.all_reduce(x)                  # in place
        print(world.rank, x)

The functions of this module call the methods of the default group: ct.all_reduce(x) is world.all_reduce(x).  A call that
fails raises ct.Error or a subclass, whose message names the call, the group and the rank at fault.
"""

import os

from ctrun._api import (
    ANY_SOURCE,
    ANY_TAG,
    Group,
    Message,
    Work,
    create_group,
    finalize,
    init,
    is_initialized,
    local_rank,
    rank,
    restart_count,
    size,
    version,
    world,
)
from ctrun._libct import AbortedError, Error, InvalidError, MismatchError, PeerError, Status, TimedOut
from ctrun._libct import path as library
from ctrun._store import Store

__all__ = [
    "ANY_SOURCE",
    "ANY_TAG",
    "AbortedError",
    "Error",
    "Group",
    "InvalidError",
    "Message",
    "MismatchError",
    "PeerError",
    "Status",
    "Store",
    "TimedOut",
    "Work",
    "__version__",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "barrier",
    "broadcast",
    "cmake_dir",
    "create_group",
    "finalize",
    "gather",
    "include_dir",
    "init",
    "irecv",
    "is_initialized",
    "isend",
    "library",
    "local_rank",
    "monitored_barrier",
    "new_group",
    "rank",
    "recv",
    "reduce",
    "reduce_scatter",
    "restart_count",
    "scatter",
    "send",
    "should_stop",
    "size",
    "split",
    "version",
    "world",
]


def __getattr__(name):
    if name == "__version__":
        return version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


all_gather, all_reduce, all_to_all, barrier, broadcast = (
    world.all_gather,
    world.all_reduce,
    world.all_to_all,
    world.barrier,
    world.broadcast,
)
gather, reduce, reduce_scatter, scatter = world.gather, world.reduce, world.reduce_scatter, world.scatter
send, recv, isend, irecv = world.send, world.recv, world.isend, world.irecv
monitored_barrier, new_group, should_stop, split = (
    world.monitored_barrier,
    world.new_group,
    world.should_stop,
    world.split,
)


def include_dir():
    """Returns the folder of ct.h."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "include")


def cmake_dir():
    """Returns the folder for -Dctrun_DIR=, with which find_package(ctrun) defines the target ct::ct."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "cmake")
