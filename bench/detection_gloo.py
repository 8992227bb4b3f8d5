# SPDX-License-Identifier: Apache-2.0
"""detection_gloo - the ranks of PyTorch's gloo, for detection_bench.

    detection_gloo.py PAGE        an order is a line on stdin:
    PLACE SIZE FIRST COUNT ADDRESS PORT

Importing PyTorch takes a second, so a process that has done it forks the ranks FIRST to
FIRST + COUNT - 1 for each order, and says "done" when they have ended.  A rank does what
bench/detection_worker does.  It leaves as soon as it has its exception, as a program that does
not catch it would: where gloo only tells the neighbours of a dead rank, the others learn of it
by their going.
"""
import mmap
import os
import signal
import struct
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

MOST_RANKS = 16
VICTIM, DELAY, DEATH = 0, 8, 16  # bench/detection_bench/page.h
PID, CALLED, RETURNED, STATUS = (32 + i * 8 * MOST_RANKS for i in (0, 1, 2, 4))
SENTENCE, SENTENCE_BYTES = 672, 400
LONG = timedelta(seconds=100)  # the driver's limit is shorter


class Page:
    def __init__(self, path):
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 0)

    def get(self, offset, rank=0):
        return struct.unpack_from("q", self.memory, offset + 8 * rank)[0]

    def put(self, value, offset, rank=0):
        struct.pack_into("q", self.memory, offset + 8 * rank, value)


def die(page):
    page.put(time.monotonic_ns(), DEATH)
    os.kill(os.getpid(), signal.SIGKILL)


def die_when_they_wait(page, size, victim):
    while not all(page.get(CALLED, r) for r in range(size) if r != victim):
        time.sleep(0.0002)
    time.sleep(page.get(DELAY) / 1e9)
    die(page)


def in_wait(one, victim, rank, size):
    dist.all_reduce(one, async_op=True).wait()


def in_store(one, victim, rank, size):
    dist.distributed_c10d._get_default_store().get("never set")


PLACES = {
    "all_reduce": lambda one, victim, rank, size: dist.all_reduce(one),
    "broadcast": lambda one, victim, rank, size: dist.broadcast(one, victim),
    "reduce": lambda one, victim, rank, size: dist.reduce(one, (victim + 1) % size),
    "barrier": lambda one, victim, rank, size: dist.barrier(),
    "wait": in_wait,
    "recv": lambda one, victim, rank, size: dist.recv(one, victim),
    "send": lambda one, victim, rank, size: dist.send(torch.zeros(1 << 22), victim),
    "store": in_store,
    "store-host": in_store,
}


def call_noted(page, rank, call):
    page.put(time.monotonic_ns(), CALLED, rank)
    status, sentence = 0, b""
    try:
        call()
        when = time.monotonic_ns()
    except Exception as error:
        when = time.monotonic_ns()
        status, sentence = 1, " ".join(str(error).split()).encode()[: SENTENCE_BYTES - 1]
    at = SENTENCE + rank * SENTENCE_BYTES
    page.memory[at : at + len(sentence)] = sentence
    page.put(status, STATUS, rank)
    page.put(when, RETURNED, rank)


def init(rank, size):
    dist.init_process_group("gloo", rank=rank, world_size=size, timeout=LONG)


def rank_main(page, place, rank, size):
    victim = page.get(VICTIM)
    page.put(os.getpid(), PID, rank)
    if place.startswith("init-"):
        last = size - 2 if victim == size - 1 else size - 1
        if rank == victim and place == "init-before":
            die_when_they_wait(page, size, victim)
        elif rank == victim:
            kill_later(page)  # a handler would not run before init returns
        elif rank == last and place == "init-within":
            while not page.get(DEATH):
                time.sleep(0.0002)
        call_noted(page, rank, lambda: init(rank, size))
        return
    init(rank, size)
    one = torch.ones(1, dtype=torch.float64)
    dist.all_reduce(one)
    dist.barrier()
    if rank == victim:
        die_when_they_wait(page, size, victim)
    call_noted(page, rank, lambda: PLACES[place](one, victim, rank, size))


def kill_later(page):
    rank = os.getpid()
    if os.fork() == 0:
        time.sleep(page.get(DELAY) / 1e9)
        page.put(time.monotonic_ns(), DEATH)
        os.kill(rank, signal.SIGKILL)
        os._exit(0)


def main():
    page = Page(sys.argv[1])
    torch.set_num_threads(1)
    for order in sys.stdin:
        place, size, first, count, address, port = order.split()
        os.environ.update(MASTER_ADDR=address, MASTER_PORT=port)
        children = []
        for rank in range(int(first), int(first) + int(count)):
            pid = os.fork()
            if pid == 0:
                signal.alarm(120)  # nobody may be left behind when the benchmark is killed
                try:
                    rank_main(page, place, rank, int(size))
                finally:
                    os._exit(0)
            children.append(pid)
        for pid in children:
            os.waitpid(pid, 0)
        print("done", flush=True)


main()
