# SPDX-License-Identifier: Apache-2.0
"""ctrun and ctctl say which rank of a PyTorch job hangs, in which call, and where, whatever the backend.

test_observer.py --table [gloo] [ct] [torchrun]: prints for each fault of hangs.py how long the sentence took, and the
sentence.  With torchrun, the jobs on gloo run under torchrun, and ctctl status says it.
"""

import contextlib
import importlib.util
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from ranks import CTRUN

from ctrun import _observer

CTCTL = CTRUN.removesuffix("ctrun") + "ctctl"
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hangs.py")
STALL_S, LIMIT_S = 3, 60
JOB = f"hangs{os.getpid()}"
MISSING = r"rank 1 \(pid \d+, [^()]*{place}\) has not joined all_reduce #3 \(4 f32[^)]*\)"


def differs(hang):
    """With gloo such a job hangs; with ct the calls fail."""
    others = r"(ranks 0 and 2|rank [02] \(pid \d+\)), which (was|were) in all_reduce #3"
    return f"the {hang}|rank 1 .* made a different call than {others}"


HANGS = {  # by fault: a pattern of the sentence; {name} is the line of that function
    "sleeps": MISSING.format(place="{sleeps}"),
    "spins": MISSING.format(place="{spins}"),
    "holds_the_gil": r"rank 1 \(pid \d+[^)]*\) has not joined all_reduce #3 .*holds Python's lock \(the GIL\)",
    "raises_in_a_thread": MISSING.format(place="{raises_in_a_thread}"),
    "waits_for_its_data_loader": MISSING.format(place="{waits_for_its_data_loader}"),
    "is_stopped": r"a signal stopped rank 1[: ]",
    "hangs_while_it_fails": MISSING.format(place="{hangs_while_it_fails}"),
    "broadcasts": differs(r"operations differ: .*rank 1 called broadcast #3 \(4 f32\) at {broadcasts}"),
    "has_more_elements": differs(r"sizes differ: .*rank 1 called all_reduce #3 \(5 f32\) at {has_more_elements}"),
    "uses_another_group": r"rank 1 (in|called) all_reduce #1 \(4 f32[^)]*\) of group 1 at {uses_another_group}",
    "waits_for_its_own_lock": MISSING.format(place="{waits_for_its_own_lock}"),
    "waits_for_a_program": MISSING.format(place="{waits_for_a_program}"),
    "reads_a_pipe_that_nobody_writes": MISSING.format(place="{reads_a_pipe_that_nobody_writes}"),
    "retries_a_checkpoint_on_a_full_disk": MISSING.format(place="{retries_a_checkpoint_on_a_full_disk}"),
    "receives_what_nobody_sends": r"rank 1 (called recv of|in recv).* at {receives_what_nobody_sends}",
    "gathers_alone": differs(r"operations differ: .*rank 1 called all_gather #3 [^;]*at {gathers_alone}"),
    "makes_a_group_alone": r"rank 1 .*{makes_a_group_alone}",
    "is_short_of_data": r"rank 1 \(pid \d+, [^()]*{is_short_of_data}\) has not joined all_reduce #",
    "takes_two_groups_in_the_other_order": r"deadlock for .*: 0 -> 1 -> 0, .*{takes_two_groups_in_the_other_order}",
    "waits_for_an_asynchronous_call": MISSING.format(place="{waits_for_an_asynchronous_call}"),
    "never_begins": r"rank 1 \(pid \d+, [^()]*{never_begins}\) has not called init_process_group\(\)",
}
ENDS = {  # what the report of the failure says, with gloo and under ctrun
    "ends": r"rank 1 \(pid \d+\) left with exit code 0 while .* in all_reduce #3",
    "leaves": r"rank 1 \(pid \d+\) destroyed its group while .* in all_reduce #3",
}
OF_STALL = {  # what --stall reports, and ctctl status does not: it looks once
    "is_late_each_time": r"rank 1 makes the others wait \(a straggler\): in the last (3|24) s it spent",
    "waits_for_a_message_of_the_next": r"(no process has used a processor .*ranks 0-2 |deadlock ).* at {waits_for_a_message_of_the_next}",
}
SOME = ("sleeps", "holds_the_gil", "broadcasts", "receives_what_nobody_sends", "never_begins")  # of the kinds, one each


def pattern_of(fault):
    pattern = {**HANGS, **ENDS, **OF_STALL}[fault]
    return re.compile(re.sub(r"\{(\w+)\}", r"hangs\\.py:\\d+ \\(\1\\)", pattern))


def lines_of(process, deadline):
    """The lines of ctrun, until the process ends."""
    os.set_blocking(process.stderr.fileno(), False)
    rest = ""
    while time.monotonic() < deadline:
        ended = process.poll() is not None
        rest += (process.stderr.read() or b"").decode(errors="replace")
        *lines, rest = rest.split("\n")
        yield from lines
        if ended:
            return
        time.sleep(0.05)


def statuses_of(process, deadline):
    """The sentences of ctctl status, until the process ends."""
    command = [CTCTL, "status", f"--after={STALL_S}", JOB]
    while time.monotonic() < deadline and process.poll() is None:
        out = subprocess.run(command, capture_output=True, text=True, check=False)
        yield from ("ctrun: " + line.strip() for line in out.stdout.split("\n")[1:] if line.strip())
        time.sleep(0.5)


def below(pid):
    """The descendants of a process."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        children = [int(child) for child in file.read().split()]
        return children + [pid for child in children for pid in below(child)]
    return []


def report(backend, fault, by_torchrun=False):
    """The seconds from the start until a sentence matches, and that sentence; else the sentences that came."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0"]
    torchrun += [f"--rdzv-id={JOB}", "--nproc-per-node=3"]  # a name only counts with an endpoint
    ctrun = [CTRUN, f"--rdzv-id={JOB}", f"--stall={STALL_S}", "--nproc-per-node=3", sys.executable]
    folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # of programs that do not remove what they wrote
    process = subprocess.Popen(
        [*(torchrun if by_torchrun else ctrun), PROGRAM, backend, fault],
        env={**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": folder.name},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE if not by_torchrun else subprocess.DEVNULL,
        start_new_session=True,
    )
    pattern, others, began = pattern_of(fault), [], time.monotonic()
    try:
        for line in (statuses_of if by_torchrun else lines_of)(process, began + LIMIT_S):
            if line.startswith("ctrun: ") and pattern.search(line):
                return time.monotonic() - began, line[7:]
            if line not in others:
                others.append(line)
        return None, " | ".join(line[7:] for line in others if line.startswith("ctrun: ")) or "nothing"
    finally:
        workers = below(process.pid)
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            for pid in [process.pid, *workers]:  # torchrun leaves a stopped worker behind
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()
        if process.stderr:
            process.stderr.close()
        folder.cleanup()


@unittest.skipUnless(importlib.util.find_spec("torch"), "no torch here")
class Observer(unittest.TestCase):
    def says(self, backend, fault):
        seconds, sentence = report(backend, fault)
        self.assertIsNotNone(seconds, f"{backend} {fault}: {sentence}")

    def test_a_hang_of_gloo_is_explained(self):
        for fault in SOME:
            self.says("gloo", fault)

    def test_a_hang_of_ct_is_explained(self):
        self.says("ct", "sleeps")

    def test_a_failed_call_of_gloo_blames_the_rank_that_is_gone(self):
        for fault in ENDS:
            self.says("gloo", fault)

    def test_stragglers_and_calls_that_are_not_recorded_are_reported(self):
        for fault in OF_STALL:
            self.says("gloo", fault)


class Forks(unittest.TestCase):
    def test_a_child_of_fork_can_start_its_own_observer(self):
        _observer._observer = object()  # as in a process that has one
        child = os.fork()
        if child == 0:
            os._exit(_observer._observer is not None)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        _observer._observer = None


def table(ways):
    """Returns how many sentences were wrong, and prints these once more."""
    wrong = []
    for way in ways:
        for fault in [*HANGS, *(OF_STALL if way != "torchrun" else ()), *(ENDS if way == "gloo" else ())]:
            seconds, sentence = report("gloo" if way == "torchrun" else way, fault, way == "torchrun")
            row = f"{way:9}{fault:38}{f'{seconds:.1f} s' if seconds else 'WRONG':8}{sentence}"
            print(row, flush=True)
            if seconds is None:
                wrong.append(row)
    print("", *wrong, sep="\n")
    return len(wrong)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--table"]:
        sys.exit(table(sys.argv[2:] or ["gloo", "ct", "torchrun"]) > 0)
    else:
        unittest.main()
