# SPDX-License-Identifier: Apache-2.0
"""served.py - PyTorch hosts the store, client.c comes.

    served.py all libuv|legacy CLIENT         every call of the C client
    served.py killed libuv|legacy CLIENT      the server is killed while the client waits
    served.py workers libuv|legacy CLIENT     the server waits until the client has come
    served.py host libuv|legacy               (used by killed) prints the port and stays"""
import signal
import socket
import subprocess
import sys
import threading
import time
from datetime import timedelta

from torch.distributed import PrefixStore, TCPStore

from values import VALUES, get_many, same, set_many

HOST = "127.0.0.1"


def host(libuv, port=0, **how):
    how = {"wait_for_workers": False, "timeout": timedelta(seconds=60)} | how
    return TCPStore(HOST, port, is_master=True, use_libuv=libuv, **how)


def every_call(libuv, client):
    store = host(libuv)
    inner = PrefixStore("inner", PrefixStore("outer", store))
    for name, value in VALUES.items():
        inner.set(f"python/{name}", value)
    set_many(inner, "python")
    if libuv:
        inner.queue_push("to c", "from python")
    subprocess.run([client, "served", HOST, str(store.port)] + ["queues"] * libuv, check=True)
    for name, value in VALUES.items():
        same(f"c/{name}", store.get(f"outer/inner/c/{name}"), value)
    same("n", inner.get("n"), b"9223372036854775807")
    same("cas", inner.get("cas"), b"\0second")
    same("log", inner.get("log"), b"a\0b")
    if libuv:
        same("queue", inner.queue_pop("to python"), b"from c")


def killed(libuv, client):
    server = subprocess.Popen([sys.executable, __file__, "host", "libuv" if libuv else "legacy"],
                              stdout=subprocess.PIPE, text=True)
    port = server.stdout.readline().strip()
    c = subprocess.Popen([client, "killed", HOST, port], stdout=subprocess.PIPE, text=True)
    same("the client", c.stdout.readline(), "waiting\n")
    time.sleep(0.5)
    same("the client while the server lives", c.poll(), None)
    begin = time.monotonic()
    server.kill()
    said = c.communicate(timeout=20)[0].strip()
    took = time.monotonic() - begin
    server.wait()
    same("the client's exit", c.returncode, 0)
    if took > 1:
        raise SystemExit(f"the client took {took:.1f} s to say: {said}")
    print(said)


def workers(libuv, client):
    with socket.create_server((HOST, 0)) as s:
        port = s.getsockname()[1]
    c = []
    late = threading.Timer(0.5, lambda: c.append(subprocess.Popen([client, HOST, str(port), "2"])))
    late.start()
    begin = time.monotonic()
    store = host(libuv, port, world_size=2, wait_for_workers=True)
    took = time.monotonic() - begin
    late.join()
    same("the client's exit", c[0].wait(timeout=20), 0)
    if took < 0.5:
        raise SystemExit(f"PyTorch waited for nobody: {took:.2f} s")
    same("c", store.get("c"), b"is here")


def stay(libuv):
    store = host(libuv)
    print(store.port, flush=True)
    signal.pause()


mode, backend, *client = sys.argv[1:]
{"all": every_call, "killed": killed, "workers": workers, "host": stay}[mode](backend == "libuv",
                                                                             *client)
