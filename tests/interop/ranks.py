# SPDX-License-Identifier: Apache-2.0
"""ranks.py - ranks 0 to 2 of four at ctrun's store; rank 3 is `client rank` (client.c).

The two files are one conversation: each step here has its like there."""
import os
import time
from datetime import timedelta

from torch.distributed import DistStoreError, PrefixStore, QueueEmptyError, TCPStore

from values import VALUES, fails, get_many, same, set_many

RANKS = 4
rank = int(os.environ["RANK"])
tcp = TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False,
               timeout=timedelta(seconds=60))
p = PrefixStore("p", tcp)


def meet(name):
    if p.add("arrived/" + name, 1) == RANKS:
        p.set("all/" + name, "")
    p.wait(["all/" + name])


def values():
    if rank == 0:
        p.set("", "the empty key")
        p.set("clé with blanks", "utf-8")
    for name, value in VALUES.items():
        p.set(f"{rank}/{name}", value)
    for r in range(RANKS):
        for name, value in VALUES.items():
            same(f"{r}/{name}", p.get(f"{r}/{name}"), value)


def sums():
    for _ in range(100):
        p.add("sum", 1)
    p.add("sum", 1000000000)
    meet("sums")
    same("sum", p.add("sum", 0), 400)
    same("sum", p.get("sum"), b"400")


def waits():
    time.sleep(0.1 * (rank + 1))
    p.set(f"late/{rank}", "")
    p.wait(["late/0", "late/1", "late/2", "late/3"])
    for _ in range(3):
        fails(DistStoreError, lambda: p.wait(["never"], timedelta(milliseconds=300)), "never")


def compare_set():
    mine = f"rank {rank}".encode()
    answer = p.compare_set("lock", "", mine)
    p.add("winners", answer == mine)
    if rank == 0:
        p.set("baton", "python")
    meet("lock")
    same("winners", p.add("winners", 0), 1)
    same("lock", p.get("lock"), answer)
    same("compare_set of a missing key", p.compare_set("nothing", "x", "y"), b"x")
    meet("baton is C's")
    if rank == 0:
        same("baton", p.compare_set("baton", b"c\0!", "python again"), b"python again")
    meet("baton is Python's")


def append():
    if rank == 0:
        p.append("log", b"p\0")
    meet("C appended")
    if rank == 1:
        p.append("log", "p")
    meet("Python appended")
    same("log", p.get("log"), b"p\0\0cp")


def many():
    if rank == 0:
        set_many(p, "python")
    get_many(p, "c")


def queues():
    if rank == 0:
        p.queue_push("to c", b"\0")
        p.queue_push("to c", "two")
    meet("queues are full")
    if rank == 1:
        same("queue_len", p.queue_len("to python"), 3)
        same("queue", [p.queue_pop("to python") for _ in range(3)], [b"one", b"", b"\0three"])
        fails(QueueEmptyError, lambda: p.queue_pop("to python", block=False))
    meet("queues are empty")
    if rank == 2:
        time.sleep(0.3)
        p.queue_push("late to c", "at last")
        same("queue", p.queue_pop("late to python"), b"at last")


def lists():
    inner = PrefixStore("inner", p)
    if rank == 0:
        inner.set("python", "from python")
        inner.set("python's", "")
    meet("inner keys are set")
    same("inner/c", inner.get("c"), b"from c")
    same("inner/c", tcp.get("p/inner/c"), b"from c")
    if rank == 0:
        same("delete", [inner.delete_key("gone"), inner.delete_key("gone")], [True, False])
    meet("inner keys are deleted")
    same("check", [inner.check(["python's"]), inner.check(["c", "python"])], [False, True])
    same("list_keys", sorted(inner.list_keys()), ["c", "python"])


def counts():
    """C counts first; nobody makes a key until Python counted too."""
    if rank == 0:
        count = int(p.get("c counts"))
        same("num_keys", p.num_keys(), count + 1)
        p.set("python counts", "")
    p.wait(["python counts"])


values()
sums()
waits()
compare_set()
append()
many()
queues()
lists()
meet("before counting")
counts()
meet("the end")
