# SPDX-License-Identifier: Apache-2.0
"""A rank of a job that hangs: hangs.py BACKEND FAULT.  Rank 1 has the fault after two calls that all ranks make.

test_observer.py says for each fault what ctrun must report.
"""

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

import torch
import torch.distributed as dist

from ctrun import _autoload

FOREVER = 1000
x = torch.ones(4)
rank = int(os.environ["RANK"])


def step():
    dist.all_reduce(x)


def sleeps():
    time.sleep(FOREVER)


def spins():
    while True:
        pass


def holds_the_gil():
    ctypes.PyDLL(None).sleep(FOREVER)


def raises_in_a_thread():
    ready = threading.Event()

    def load():
        raise OSError("no data")

    threading.Thread(target=load).start()
    ready.wait()


class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        time.sleep(FOREVER if index == 2 else 0)
        return index


def waits_for_its_data_loader():
    for _ in torch.utils.data.DataLoader(Slow(), num_workers=1):
        pass


def is_stopped():
    os.kill(os.getpid(), signal.SIGSTOP)


def ends():
    os._exit(0)


def hangs_while_it_fails():
    try:
        raise RuntimeError("loss is not finite")
    finally:
        time.sleep(FOREVER)


def broadcasts():
    dist.broadcast(x, 0)


def has_more_elements():
    dist.all_reduce(torch.ones(5))


def uses_another_group():
    dist.all_reduce(x, group=pair)


def waits_for_its_own_lock():
    lock = threading.Lock()
    with lock:
        lock.acquire()


def waits_for_a_program():
    subprocess.run(["sleep", str(FOREVER)], check=True)


def reads_a_pipe_that_nobody_writes():
    name = os.path.join(tempfile.mkdtemp(), "pipe")
    os.mkfifo(name)
    with open(name, encoding="utf-8") as pipe:
        pipe.read()


def retries_a_checkpoint_on_a_full_disk():
    while True:
        try:
            with open("/dev/full", "wb") as file:
                torch.save(x, file)
        except (OSError, RuntimeError):
            time.sleep(0.2)


def leaves():
    dist.destroy_process_group()
    time.sleep(FOREVER)


def receives_what_nobody_sends():
    dist.recv(x, 0)


def gathers_alone():
    dist.all_gather_object([None] * dist.get_world_size(), "metrics")


def makes_a_group_alone():
    dist.new_group([0, 1])


def is_short_of_data():
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
    for _ in range(2 if rank == 1 else 3):
        model(torch.ones(2, 4)).sum().backward()
    if rank == 1:
        time.sleep(FOREVER)


def takes_two_groups_in_the_other_order():
    groups = [pair, other_pair] if rank == 0 else [other_pair, pair]
    if rank < 2:
        for group in groups:
            dist.all_reduce(x, group=group)


def waits_for_an_asynchronous_call():
    if rank != 1:
        work = dist.all_reduce(x, async_op=True)
        work.wait()
    time.sleep(FOREVER)


def is_late_each_time():
    while True:
        time.sleep(0.05 if rank == 1 else 0)
        step()


def waits_for_a_message_of_the_next():
    dist.irecv(x, (rank + 1) % 3).wait()


def never_begins():
    time.sleep(FOREVER)


OF_ALL = (
    is_short_of_data,
    takes_two_groups_in_the_other_order,
    waits_for_an_asynchronous_call,
    is_late_each_time,
    waits_for_a_message_of_the_next,
)
_autoload.autoload()  # what the wheel's entry point does
if sys.argv[1] == "ct":
    from ctrun import torch_backend

    torch_backend.register()
fault = globals()[sys.argv[2]]
if fault is never_begins and rank == 1:
    never_begins()
dist.init_process_group(sys.argv[1])
pair, other_pair = dist.new_group([0, 1]), dist.new_group([0, 1])
for _ in range(2):
    step()
if rank == 1 or fault in OF_ALL:
    fault()
step()
time.sleep(FOREVER)
