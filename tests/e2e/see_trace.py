# SPDX-License-Identifier: Apache-2.0
# see_trace.py FILE EXPRESSION - does it hold of a trace?  These are its words.
import json
import re
import sys

t = json.load(open(sys.argv[1]))["traceEvents"]
slices = [e for e in t if e["ph"] in "XB"]
calls = [e for e in slices if e["cat"] == "call"]
arrows = [e for e in t if e["ph"] in "sf"]
begun = sorted(e["id"] for e in t if e["ph"] == "s")
ended = sorted(e["id"] for e in t if e["ph"] == "f")
tracks = {e["args"]["name"].split(" (")[0] for e in t if e["name"] == "thread_name"}
nodes = [e["args"]["name"] for e in t if e["name"] == "process_name"]
part = [e["args"] for e in t if e["name"] == "ctrun_part"]
errors = {e["pid"]: (e["args"]["clock_error_ns"] or 0) / 1000 for e in t if e["name"] == "ctrun_part"}
error = max([0, *errors.values()])


def named(name):
    return [e for e in slices if e["name"] == name]


def rank(e):
    return e["tid"] // 100 - 1


def args(name, key):
    return {e["args"].get(key) for e in named(name)}


def inside(e):  # a slice of its thread is around it
    return any(s["pid"] == e["pid"] and s["tid"] == e["tid"] and s["ts"] <= e["ts"]
               and e["ts"] <= s["ts"] + s.get("dur", 1e18) for s in slices)


def nested(a, b):  # apart, or one within the other
    a, b = sorted([a, b], key=lambda e: (e["ts"], -e["dur"]))
    end = a["ts"] + a["dur"]
    return b["ts"] + 0.002 > end or b["ts"] + b["dur"] < end + 0.002


def together(name):  # nobody left before everybody came, as far as the clocks tell
    ends = {}
    for e in named(name):
        ends.setdefault((e["args"]["group"], e["args"]["seq"]), []).append((e["ts"], e["ts"] + e["dur"]))
    return all(max(b for b, _ in both) <= min(a for _, a in both) + 2 * error for both in ends.values())


def apart(a, b):  # by how much the clocks of two events may differ
    return 0 if a["pid"] == b["pid"] else errors[a["pid"]] + errors[b["pid"]]


def forward():  # what is sent is received after that, as far as the clocks tell
    sent = {e["id"]: e for e in t if e["ph"] == "s"}
    both = [(sent[e["id"]], e) for e in t if e["ph"] == "f"]
    return all(a["ts"] <= b["ts"] + apart(a, b) for a, b in both)


sys.exit(not eval("(" + sys.argv[2] + ")"))
