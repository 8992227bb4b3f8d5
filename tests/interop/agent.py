# SPDX-License-Identifier: Apache-2.0
"""agent.py - a node of a c10d rendezvous with nothing but Python's own library.

    agent.py HOST:PORT ID ADDRESS NODES SECONDS [--role=R] [--nproc=N] [--behind=S] [--spare]

It joins as PyTorch's agent does, says what it got, one thing a line ("rank 1 of 2",
"ranks 2 to 4 of 5", "master 127.0.0.2 4711"), has no workers but keeps its
heartbeat for SECONDS, meets the others at the exit barrier and closes the job.
The states are pickles as CPython writes them, of classes with PyTorch's names.

    --behind=S   its clock is S seconds slow
    --spare      ends with 0 when the job is closed while it waits for a place

Exit status: 0; 3 when the job is closed; 1 and a traceback for all else."""
import argparse
import base64
import json
import os
import pickle
import socket
import struct
import sys
import time
import types
from datetime import datetime, timedelta, timezone

HEARTBEAT = 1
NOTHING_YET = b"Y2FuaW1hZGFt"


# ---- What is pickled ----------------------------------------------------------

class _NodeDesc:
    def __init__(self, addr, pid, local_id):
        self.addr, self.pid, self.local_id = addr, pid, local_id

    def key(self):
        return self.addr, self.pid, self.local_id

    def __eq__(self, other):
        return self.key() == other.key()

    def __hash__(self):
        return hash(self.key())


class _RendezvousState:
    def __init__(self):
        self.round, self.complete, self.deadline, self.closed = 0, False, None, False
        self.participants, self.wait_list, self.redundancy_list = {}, set(), set()
        self.last_heartbeats = {}


theirs = types.ModuleType("torch.distributed.elastic.rendezvous.dynamic_rendezvous")
sys.modules[theirs.__name__] = theirs
for dots in range(1, 5): # the packages around it
    sys.modules[theirs.__name__.rsplit(".", dots)[0]] = types.ModuleType("package")
for kind in _NodeDesc, _RendezvousState:
    kind.__module__ = theirs.__name__
    setattr(theirs, kind.__name__, kind)


# ---- The store ----------------------------------------------------------------

def blob(b):
    return struct.pack("<Q", len(b)) + b


class Store:
    """One request, one answer; every key is written with a slash in front."""

    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        end = time.monotonic() + 60
        while True:
            try:
                self.socket = socket.create_connection((host, int(port)), timeout=60)
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.send(b"\x00" + struct.pack("<I", 0x3C85F7CE) + b"\x0d" + struct.pack("<I", os.getpid()))
        assert self.receive(4) == struct.pack("<I", os.getpid())

    def send(self, message):
        self.socket.sendall(message)

    def receive(self, n):
        got = b""
        while len(got) < n:
            more = self.socket.recv(n - len(got))
            if not more:
                raise EOFError("the store is gone")
            got += more
        return got

    def value(self):
        return self.receive(struct.unpack("<Q", self.receive(8))[0])

    def keyed(self, request, key):
        return bytes([request]) + blob(b"/" + key.encode())

    def set(self, key, value):
        self.send(self.keyed(1, key) + blob(value.encode()))

    def compare_set(self, key, expected, desired):
        self.send(self.keyed(2, key) + blob(expected) + blob(desired))
        return self.value()

    def add(self, key, n):
        self.send(self.keyed(4, key) + struct.pack("<q", n))
        return struct.unpack("<q", self.receive(8))[0]

    def wait(self, key):
        self.send(b"\x06" + struct.pack("<Q", 1) + blob(b"/" + key.encode()))
        assert self.receive(1) == b"\x00"

    def get(self, key):
        self.wait(key)
        self.send(self.keyed(3, key))
        return self.value()


# ---- The rendezvous -----------------------------------------------------------

class Agent:
    def __init__(self, words):
        self.words = words
        self.store = Store(words.endpoint)
        self.key = "torch.rendezvous." + words.id
        self.me = _NodeDesc(words.address, os.getpid(), 0)
        self.store.compare_set(self.key, b"", NOTHING_YET)

    def now(self):
        return datetime.now(timezone.utc) - timedelta(seconds=self.words.behind)

    def read(self):
        self.token = self.store.get(self.key)
        fresh = self.token == NOTHING_YET
        self.state = _RendezvousState() if fresh else pickle.loads(base64.b64decode(self.token))
        return self.state

    def write(self):
        """Whether nobody wrote since we read."""
        mine = base64.b64encode(pickle.dumps(self.state))
        return self.store.compare_set(self.key, self.token, mine) == mine

    def change(self):
        """One step towards a place in a round: whether the state is another now."""
        s, me = self.state, self.me
        if s.complete:
            room = s.redundancy_list if len(s.participants) >= self.words.nodes else s.wait_list
            if me in room:
                return self.beat()
            room.add(me)
        elif me in s.participants:
            return self.beat()
        else:
            s.wait_list.discard(me)
            s.redundancy_list.discard(me)
            s.participants[me] = 0
            if len(s.participants) == self.words.nodes:
                s.complete, s.deadline = True, None
                for rank, node in enumerate(sorted(s.participants, key=_NodeDesc.key)):
                    s.participants[node] = rank
        s.last_heartbeats[me] = self.now()
        return True

    def beat(self):
        if self.now() - self.state.last_heartbeats[self.me] < timedelta(seconds=HEARTBEAT):
            return False
        self.state.last_heartbeats[self.me] = self.now()
        return True

    def join(self):
        while True:
            s = self.read()
            if s.closed:
                print("closed", flush=True)
                sys.exit(0 if self.words.spare else 3)
            if s.complete and self.me in s.participants:
                break
            if not self.change():
                time.sleep(0.1)
            elif self.write():
                print("waits" if self.state.complete and self.me not in self.state.participants
                      else "joined", flush=True)
        self.rank, self.size = s.participants[self.me], len(s.participants)
        self.prefix = f"{self.key}.{s.round}/"
        print(f"round {s.round}\nrank {self.rank} of {self.size}", flush=True)

    def exchange(self):
        """Who has how many workers; rank 0 counts for all."""
        keys, store, w = self.prefix + "torchelastic/", self.store, self.words
        if self.rank == 0:
            store.set(self.prefix + "MASTER_ADDR", w.address)
            store.set(self.prefix + "MASTER_PORT", w.endpoint.rsplit(":", 1)[1])
        master = [store.get(self.prefix + "MASTER_" + what).decode() for what in ("ADDR", "PORT")]
        store.set(f"{keys}role_info/{self.rank}",
                  json.dumps({"role": w.role, "rank": self.rank, "local_world_size": w.nproc}))
        if self.rank == 0:
            self.count(keys)
        first, world, of_role, role_world = json.loads(store.get(f"{keys}assigned_ranks/{self.rank}"))
        print(f"ranks {first} to {first + w.nproc - 1} of {world}\n"
              f"role {of_role} of {role_world}\nmaster {' '.join(master)}", flush=True)

    def count(self, keys):
        nodes = [json.loads(self.store.get(f"{keys}role_info/{g}")) for g in range(self.size)]
        for g, node in enumerate(nodes):
            alike = [m for m in nodes if m["role"] == node["role"]]
            before = nodes[:g]
            sizes = [[m["local_world_size"] for m in some]
                     for some in (before, nodes, [m for m in before if m in alike], alike)]
            self.store.set(f"{keys}assigned_ranks/{g}", json.dumps([sum(some) for some in sizes]))

    def live(self):
        end = time.monotonic() + self.words.seconds
        while time.monotonic() < end:
            self.read()
            if self.me in self.state.participants and self.beat():
                self.write()
            time.sleep(0.1)

    def leave(self):
        barrier = self.prefix + "torchelastic/agent/terminal_state/"
        if self.store.add(barrier + "num_members", 1) == self.size:
            self.store.set(barrier + "last_member", "<val_ignored>")
        self.store.wait(barrier + "last_member")
        print("barrier", flush=True)
        try:
            while not self.read().closed:
                self.state.closed = True
                self.write()
        except (EOFError, OSError):
            pass  # who had the store closed the job and left


parser = argparse.ArgumentParser()
parser.add_argument("endpoint")
parser.add_argument("id")
parser.add_argument("address")
parser.add_argument("nodes", type=int)
parser.add_argument("seconds", type=float)
parser.add_argument("--role", default="default")
parser.add_argument("--nproc", type=int, default=1)
parser.add_argument("--behind", type=float, default=0)
parser.add_argument("--spare", action="store_true")
agent = Agent(parser.parse_args())
agent.join()
agent.exchange()
agent.live()
agent.leave()
