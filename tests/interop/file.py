# SPDX-License-Identifier: Apache-2.0
"""file.py - PyTorch's FileStore and libct's on one file.

    file.py CLIENT PATH first|last      the C client closes first, or last

Closed last by PyTorch, who was told of two processes, the file goes; closed last
by libct, who was told of no number, it stays, as with PyTorch's FileStore(path)."""
import os
import subprocess
import sys
import time
from datetime import timedelta

from torch.distributed import FileStore

from values import VALUES, fails, get_many, same, set_many

client, path, closes = sys.argv[1:]
c = subprocess.Popen([client, "file", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
store = FileStore(path, 2)
store.set_timeout(timedelta(seconds=60))

for name, value in VALUES.items():
    store.set(f"python/{name}", value)
    same(f"c/{name}", store.get(f"c/{name}"), value)
for _ in range(500):
    store.add("sum", 1)
store.set("python added", "")
store.wait(["c added"])
same("sum", store.add("sum", 0), 1000)
same("sum", store.get("sum"), b"1000")
time.sleep(0.3)
store.set("late/python", "")
store.wait(["late/c"])
fails(RuntimeError, lambda: store.wait(["never"], timedelta(milliseconds=300)))
store.wait(["c deleted"])
same("check", store.check(["python/text"]), False)
same("delete", store.delete_key("c/text"), True)
store.set("python deleted", "")
store.wait(["c compared"])
same("compare_set", store.compare_set("cas", "c", "python"), b"python")
same("compare_set", store.compare_set("cas", "c", "late"), b"python")
store.set("python compared", "")
set_many(store, "python")
get_many(store, "c")
store.wait(["c appended"])
store.append("log", "p")
store.set("python appended", "")
same("the client", c.stdout.readline(), "done\n")
same("log", store.get("log"), b"cp")

if closes == "last":
    del store
    same("the file, closed by PyTorch but not by C", os.path.exists(path), True)
c.stdin.close()
same("the client's exit", c.wait(timeout=20), 0)
if closes == "first":
    same("the file, closed by C but not by PyTorch", os.path.exists(path), True)
    del store
same("the file is there", os.path.exists(path), closes == "last")
