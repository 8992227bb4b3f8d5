# SPDX-License-Identifier: Apache-2.0
"""values.py - what client.c and the Python programs beside it give each other."""

MANY = 1000
BIG = (bytes(range(251)) * (8 * 1024 * 1024 // 251 + 1))[: 8 * 1024 * 1024]
VALUES = {"empty": b"", "zeros": b"a\0b\0\0", "text": "café\n".encode(), "big": BIG}


def same(what, got, want):
    if got != want:
        raise SystemExit(f"{what}: got {got!r:.200}, want {want!r:.200}")


def set_many(store, who):
    """As client.c's: MANY keys in one call, the first of them empty."""
    store.multi_set([f"{who}{i}" for i in range(MANY)], [str(i) if i else "" for i in range(MANY)])


def get_many(store, who):
    got = store.multi_get([f"{who}{i}" for i in range(MANY)])
    same(f"multi_get of {who}", got, [str(i).encode() if i else b"" for i in range(MANY)])


def fails(kind, call, *words):
    """call() raises kind, with each of words in the message."""
    try:
        got = call()
    except kind as e:
        for word in words:
            if word not in str(e):
                raise SystemExit(f"{kind.__name__} does not say {word!r}: {e}")
    else:
        raise SystemExit(f"no {kind.__name__} but {got!r}")
