# SPDX-License-Identifier: Apache-2.0
"""peers_wire - what the network gives plain TCP sockets, for bench/peers --net.

    peers_wire.py RANK ADDRESS...

One process on each host, all started at once; ADDRESS... are the hosts', in the order of RANK.
Rank 0 prints, one a line: the round trip of a byte between hosts 0 and 1 (us, the median);
what host 0 sends to host 1 (Mbit/s); what each of the two sends when both do, over one connection;
what each host sends, all at once, each to the next (the mean of the hosts); and the share of the
processors' time that was used meanwhile (%).
If the last throughput is well below the one before, the processors are the limit and not the wire.
"""
import os
import socket
import statistics
import sys
import threading
import time

PORT, TRIPS, BYTES, CHUNK = 29399, 400, 48 << 20, 1 << 18
rank, addresses = int(sys.argv[1]), sys.argv[2:]
hosts = len(addresses)


def receive(wire, count):
    room = memoryview(bytearray(CHUNK))
    while count > 0:
        got = wire.recv_into(room[: min(count, CHUNK)])
        if got == 0:
            sys.exit("peers_wire: the other host has ended")
        count -= got


def send(wire):
    data, count = memoryview(bytearray(CHUNK)), BYTES
    while count > 0:
        count -= wire.send(data[: min(count, CHUNK)])


def send_until_arrived(wire):
    send(wire)
    receive(wire, 1)


def connect(address):
    for _ in range(500):
        try:
            return socket.create_connection((address, PORT), timeout=30)
        except OSError:
            time.sleep(0.02)
    sys.exit(f"peers_wire: no program listens at {address}")


def links():
    """To the next host, and from the one before."""
    listener = socket.create_server((addresses[rank], PORT), backlog=8)
    to_next = connect(addresses[(rank + 1) % hosts])
    from_last, _ = listener.accept()
    for wire in (to_next, from_last):
        wire.settimeout(60)
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return to_next, from_last


def processor_time():
    """Used and in all, ticks."""
    with open("/proc/stat") as file:
        times = [int(word) for word in file.readline().split()[1:9]]
    return sum(times) - times[3] - times[4] - times[7], sum(times)


def round_trip(to_next, from_last):
    times = []
    for _ in range(TRIPS):
        began = time.perf_counter()
        if rank == 0:
            to_next.send(b".")
            receive(to_next, 1)
        elif rank == 1:
            receive(from_last, 1)
            from_last.send(b".")
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1e6


def rate(run):
    began = time.perf_counter()
    run()
    return BYTES * 8 / (time.perf_counter() - began) / 1e6


def receive_all(wire):
    receive(wire, BYTES)


def arrive(wire):
    receive_all(wire)
    wire.send(b".")


def one_way(to_next, from_last):
    if rank == 0:
        return rate(lambda: send_until_arrived(to_next))
    if rank == 1:
        arrive(from_last)
    return 0


def at_once(function, wire, other_function, other_wire):
    other = threading.Thread(target=other_function, args=(other_wire,))
    other.start()
    function(wire)
    other.join()


def both_ways(to_next, from_last):
    wire = to_next if rank == 0 else from_last
    return rate(lambda: at_once(send, wire, receive_all, wire)) if rank < 2 else 0


def ring(to_next, from_last):
    return rate(lambda: at_once(send_until_arrived, to_next, arrive, from_last))


def token(to_next, from_last, value):
    """Twice around: a barrier that adds."""
    total = 0.0
    for trip in range(2):
        if rank == 0:
            to_next.send(f"{value if trip == 0 else total:20.6f}".encode())
        total = float(from_last.recv(20, socket.MSG_WAITALL))
        if rank > 0:
            to_next.send(f"{total + value if trip == 0 else total:20.6f}".encode())
    return total


def main():
    to_next, from_last = links()
    trip = round_trip(to_next, from_last)
    token(to_next, from_last, 0)
    alone = one_way(to_next, from_last)
    token(to_next, from_last, 0)
    duplex = both_ways(to_next, from_last)
    token(to_next, from_last, 0)
    used, ticks = processor_time()
    together = ring(to_next, from_last)
    mean = token(to_next, from_last, together) / hosts
    after, ticks_after = processor_time()
    if rank == 0:
        print(f"{trip:.0f}\n{alone:.0f}\n{duplex:.0f}\n{mean:.0f}\n{100 * (after - used) / max(ticks_after - ticks, 1):.0f}")


main()
