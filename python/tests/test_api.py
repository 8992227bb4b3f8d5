# SPDX-License-Identifier: Apache-2.0
"""What `import ctrun as ct` does, between processes that ctrun started."""

import array
import os
import re
import textwrap
import unittest

import ctrun as ct
from ctrun._buffers import Buffer
from ctrun._libct import DTYPE
from ranks import Ranks

START = """
import os
from array import array
import ctrun as ct


def say(line):  # in one write
    os.write(1, line.encode() + bytes([10]))


world = ct.init()
r, n = world.rank, world.size
"""


def program(text):
    return START + textwrap.dedent(text) + "\nct.finalize()\n"


class Module(unittest.TestCase):
    def test_it_says_its_version_as_modules_do(self):
        with open(os.environ["CT_HEADER"]) as header:
            self.assertEqual(ct.__version__, re.search('#define CT_VERSION "(.*)"', header.read())[1])

    def test_each_public_name_has_a_docstring(self):
        named = [(name, getattr(ct, name)) for name in ct.__all__ if callable(getattr(ct, name))]
        for kind in (ct.Group, ct.Work, ct.Store):
            named += [(f"{kind.__name__}.{name}", value) for name, value in vars(kind).items() if name[0] != "_"]
        self.assertGreater(len(named), 80)
        without = [n for n, value in named if not (value.__doc__ or "").strip() and n != "Work.source"]
        self.assertEqual(without, [])


class Collectives(Ranks):
    def test_all_reduce_is_in_place_or_into_out(self):
        self.succeeds(
            3,
            program("""
            x = array("i", [r, 10])
            ct.all_reduce(x)
            assert x == array("i", [3, 30]), x
            y = array("i", [0, 0])
            ct.all_reduce(x, op="max", out=y)
            assert y == x
            z = array("d", [1.5])
            ct.all_reduce(z, op="avg")
            assert z[0] == 1.5
        """),
        )

    def test_each_collective_gives_what_mpi_s_gives(self):
        self.succeeds(
            3,
            program("""
            x = array("q", [7 if r == 1 else 0])
            ct.broadcast(x, root=1)
            assert x[0] == 7
            y = array("q", [r + 1])
            ct.reduce(y, root=2, op="product")
            assert r != 2 or y[0] == 6
            all = array("q", [0] * 3)
            ct.all_gather(array("q", [r]), all)
            assert list(all) == [0, 1, 2]
            some = array("q", [0] * 3) if r == 0 else None
            ct.gather(array("q", [r * r]), some, root=0)
            assert r or list(some) == [0, 1, 4]
            part = array("q", [0])
            ct.scatter(array("q", [5, 6, 7]) if r == 0 else None, part, root=0)
            assert part[0] == 5 + r
            ct.reduce_scatter(array("q", [1, 2, 3]), part)
            assert part[0] == 3 * (r + 1)
            out = array("q", [0] * 3)
            ct.all_to_all(array("q", [10 * r, 10 * r + 1, 10 * r + 2]), out)
            assert list(out) == [r, 10 + r, 20 + r]
            ct.barrier()
            ct.monitored_barrier(timeout=10)
        """),
        )

    def test_ranks_may_have_different_counts(self):
        self.succeeds(
            3,
            program("""
            counts = [1, 2, 3]
            mine, all = array("h", [r] * counts[r]), array("h", [-1] * 6)
            ct.all_gather(mine, all, counts=counts)
            assert list(all) == [0, 1, 1, 2, 2, 2]
            back = array("h", [-1] * counts[r])
            ct.scatter(all if r == 0 else None, back, root=0, counts=counts)
            assert back == mine
            ct.gather(mine, all if r == 2 else None, root=2, counts=counts)
            ct.reduce_scatter(all if r == 2 else array("h", [0] * 6), back, counts=counts)
            assert back == mine
            out = array("h", [-1] * (3 * (r + 1)))
            ct.all_to_all(array("h", [r] * 6), out, send_counts=counts, recv_counts=[r + 1] * 3)
            assert list(out) == [0] * (r + 1) + [1] * (r + 1) + [2] * (r + 1)
        """),
        )

    def test_a_work_is_done_when_its_wait_returns(self):
        self.succeeds(
            2,
            program("""
            x = array("f", [1.0] * 100000)
            work = ct.all_reduce(x, async_op=True)
            work.wait()
            assert work.done() and x[99999] == 2.0
            work.wait()
        """),
        )

    def test_memory_of_alloc_is_used_where_it_lies(self):
        self.succeeds(
            2,
            program("""
            memory = world.alloc(1000, "f64")
            x = memoryview(memory).cast("B").cast("d")
            x[999] = r + 1.0
            ct.all_reduce(x)
            assert x[999] == 3.0 and x[0] == 0.0
            x.release()
            world.free(memory)
        """),
        )


class Messages(Ranks):
    def test_a_message_goes_to_the_receive_of_its_tag(self):
        self.succeeds(
            2,
            program("""
            if r == 0:
                ct.send(array("i", [1]), 1, tag=1)
                ct.isend(array("i", [2]), 1, tag=2).wait()
            else:
                x, y = array("i", [0]), array("i", [0])
                assert world.probe(tag=2) == ct.Message(0, 2, 1, "i32") == world.iprobe(0, 2)
                assert ct.recv(y, tag=2) == 0
                work = ct.irecv(x, src=ct.ANY_SOURCE, tag=1)
                work.wait()
                assert (x[0], y[0], work.source) == (1, 2, 0)
        """),
        )

    def test_a_wait_with_a_timeout_leaves_the_work_as_it_is(self):
        self.succeeds(
            2,
            program("""
            x = array("i", [r])
            if r == 0:
                work = ct.irecv(x, src=1)
                try:
                    work.wait(timeout=0.05)
                    assert False
                except TimeoutError:
                    pass
            ct.barrier()
            if r == 0:
                work.wait()
                assert x[0] == 1
            else:
                ct.send(x, 0)
        """),
        )


class Groups(Ranks):
    def test_a_group_is_left_at_the_end_of_its_block(self):
        self.succeeds(
            4,
            program("""
            with world.split(r % 2) as half:
                assert half.ranks == ([0, 2] if r % 2 == 0 else [1, 3])
                x = array("i", [r])
                half.all_reduce(x)
                assert x[0] == (2 if r % 2 == 0 else 4)
            with world.new_group([0, 3], name="ends") as ends:
                assert ends.rank == {0: 0, 3: 1}.get(r, -1)
            try:
                half.barrier()
                assert False
            except ct.InvalidError:
                pass
        """),
        )

    def test_groups_of_the_world_end_with_it(self):
        self.succeeds(
            2,
            """
            import ctrun as ct
            for _ in range(2):
                with ct.init() as world:
                    group = world.new_group([0, 1])
                    group.barrier()
                try:
                    group.barrier()
                    raise SystemExit("it has ended")
                except ct.InvalidError:
                    pass
        """,
        )

    def test_processes_meet_at_a_store(self):
        self.succeeds(
            2,
            """
            import os
            from array import array
            import ctrun as ct
            rank = int(os.environ["RANK"])
            with ct.Store.tcp(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])) as store:
                with ct.create_group(store.prefix("mine"), rank, 2) as group:
                    x = array("i", [rank])
                    group.all_reduce(x)
                    assert x[0] == 1
        """,
        )


class HardUse(Ranks):
    """What a program may do that C would not forgive."""

    def test_a_group_is_destroyed_with_works_under_way(self):
        code, out, err = self.run_ranks(
            2,
            program("""
            g = world.split(0)
            x = array("f", [1.0]) * (4 << 20)
            look = g._reap

            def look_and_tell():
                look()
                world.send(array("f", [1.0]), 1)

            if r == 0:
                g._reap = look_and_tell
            else:
                world.recv(array("f", [1.0]), 0)
            k = g.all_reduce(x, async_op=True)
            m = g.irecv(array("f", [1.0]), 1 - r)  # which never comes
            del x
            g.destroy()
            for ask in (k.wait, m.wait, m.wait):
                try:
                    ask()
                    assert r == 1 and ask == k.wait  # it may have been done in time
                except ct.InvalidError as error:
                    assert "destroyed before the call was waited for" in str(error)
            assert repr(g) == "<ctrun.Group: destroyed>"
            for _ in range(300):
                world.split(0).destroy()
            assert len(world._made) == 0
        """),
        )
        two = "rank {}: the program ended with 2 asynchronous calls that were never waited for"
        one = "rank 1: the program ended with 1 asynchronous call (irecv) that was never waited for"
        self.assertEqual(code, 0, err)
        self.assertIn(sorted(err.splitlines()), [[two.format(0), two.format(1)], [two.format(0), one]])

    def test_a_program_ends_with_works_under_way(self):
        for _ in range(3):
            code, out, err = self.run_ranks(
                2,
                START + textwrap.dedent("""
                import time
                time.sleep(0.3 * r)
                x = [array("f", [1.0]) * (8 << 20) for _ in range(2)]
                k = [world.all_reduce(a, async_op=True) for a in x]
                time.sleep(0.3 * (1 - r))
            """),
                "--on-failure=continue",
            )
            self.assertNotIn("SIGSEGV", err)

    def test_an_interrupt_and_other_threads_don_t_wait_for_one_work_twice(self):
        self.succeeds(
            2,
            program("""
            import signal, threading, time
            x = array("f", [1.0])
            if r == 1:
                time.sleep(1)
                ct.all_reduce(x)
                ct.all_reduce(x)
            else:
                signal.setitimer(signal.ITIMER_REAL, 0.3)
                signal.signal(signal.SIGALRM, lambda *_: signal.default_int_handler(2, None))
                k = ct.all_reduce(x, async_op=True)
                try:
                    k.wait()
                    assert False
                except KeyboardInterrupt:
                    pass
                try:
                    k.wait()
                except ct.InvalidError as error:
                    assert "interrupted" in str(error)
                k = ct.all_reduce(x, async_op=True)
                threads = [threading.Thread(target=k.wait) for _ in range(3)]
                [t.start() for t in threads], [t.join() for t in threads]
                assert k.done()
        """),
        )

    def test_works_that_are_dropped_don_t_pile_up(self):
        self.succeeds(
            2,
            program("""
            for i in range(300):
                ct.all_reduce(array("f", [1.0]) * 100, async_op=True)
            ct.barrier()
            ct.barrier(async_op=True).wait()
            assert len(world._pending) <= 65, len(world._pending)
        """),
        )

    def test_an_exception_in_a_block_does_not_wait_for_the_others(self):
        code, out, err = self.run_ranks(
            2,
            """
            import os, time
            import ctrun as ct
            from array import array
            began = time.monotonic()
            try:
                with ct.init(timeout=60) as world:
                    if world.rank == 1:
                        time.sleep(1)
                    else:
                        k = world.all_reduce(array("f", [1.0]), async_op=True)
                        raise KeyError("mine")
            except KeyError as error:
                assert time.monotonic() - began < 30
                os.write(1, f"{error!r}".encode())
                os._exit(0)
            """,
            "--on-failure=continue",
        )
        self.assertEqual((code, out), (0, "KeyError('mine')"), err)

    def test_a_store_is_closed_while_a_thread_waits_at_it(self):
        self.succeeds(
            1,
            """
            import threading, time
            import ctrun as ct
            store = ct.Store.memory()
            def get():
                try:
                    store.get("k", timeout=0.5)
                except ct.TimedOut:
                    pass
            thread = threading.Thread(target=get)
            thread.start()
            time.sleep(0.1)
            store.close()
            thread.join()
            for call in (lambda: store.get("k"), lambda: ct.init(store=store, rank=0, world_size=1)):
                try:
                    call()
                    assert False
                except ct.InvalidError as error:
                    assert "the store was closed" in str(error)
            """,
        )

    def test_what_c_would_cut_off_is_refused(self):
        self.succeeds(
            1,
            program("""
            import ctypes
            x = array("f", [1.0])

            class Pair(ctypes.Structure):
                _fields_ = [("a", ctypes.c_float), ("b", ctypes.c_float)]

            def refused(call, kind=ValueError):
                try:
                    call()
                except kind:
                    return
                assert False, call

            store = ct.Store.memory()
            refused(lambda: world.irecv(x, 0, tag=2**32))
            refused(lambda: world.broadcast(x, root=2**32))
            refused(lambda: world.split(2**31))
            refused(lambda: world.new_group([2**32]))
            refused(lambda: store.add("k", 2**63))
            refused(lambda: store.set("a\\0b", b"v"))
            refused(lambda: store.set("n", 5), TypeError)
            refused(lambda: world.all_reduce((Pair * 2)()), TypeError)
            refused(lambda: world.alloc(1, "float32"))
            refused(lambda: world.alloc(2**62, "f64"))
            world.set_timeout(float("inf"))
        """),
        )

    def test_without_a_default_group_that_is_said(self):
        self.succeeds(
            1,
            """
            from array import array
            import ctrun as ct
            x = array("f", [1.0])
            for call in (lambda: ct.all_gather(x, x), lambda: ct.reduce_scatter(x, x, counts=[1])):
                try:
                    call()
                    assert False
                except ct.InvalidError as error:
                    assert "init()" in str(error), error
            """,
        )


class Places(Ranks):
    def test_ctctl_shows_the_line_of_python_in_which_a_rank_waits(self):
        out = self.succeeds(
            2,
            """
            import os, subprocess, time
            from array import array
            import ctrun as ct

            def step(world):
                world.all_reduce(array("f", [1.0]))

            with ct.init() as world:
                if world.rank == 1:
                    ctctl = os.path.join(os.environ["CT_BUILD"], "bin", "ctctl")
                    for _ in range(60):
                        job = os.environ["TORCHELASTIC_RUN_ID"]
                        said = subprocess.run([ctctl, "status", job], capture_output=True, text=True).stdout
                        if "(step)" in said:
                            break
                        time.sleep(0.5)
                    os.write(1, said.encode())
                step(world)
            """,
        )
        self.assertRegex(out, r"not joined all_reduce #1 \(1 f32, sum\).*\. Rank 0 has waited [0-9.]+ s at <string>:7 \(step\)")


class Failures(Ranks):
    def test_a_rank_that_dies_is_named_to_the_others(self):
        code, out, err = self.run_ranks(
            2,
            program("""
            import os, signal
            if r == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                ct.barrier()
            except ConnectionError as e:
                say(f"{e} {e.status}")
        """),
            "--on-failure=continue",
        )
        self.assertEqual(code, 0, err)
        self.assertRegex(
            out, r"(barrier #1 on group world.*: |group world is broken: )rank 1 .*SIGKILL.* -5"
        )

    def test_different_calls_are_a_mismatch_on_both_ranks(self):
        code, out, err = self.run_ranks(
            2,
            program("""
            try:
                ct.all_reduce(array("i", [1] * (r + 1)))
            except ct.MismatchError as e:
                say(f"mismatch {r}")
        """),
        )
        self.assertEqual(sorted(out.split("\n")[:-1]), ["mismatch 0", "mismatch 1"], err)
        self.assertEqual(code, 0, err)

    def test_a_rank_that_does_not_come_is_named_after_the_timeout(self):
        code, out, err = self.run_ranks(
            2,
            program("""
            import time
            if r == 0:
                world.set_timeout(0.2)
                try:
                    ct.barrier()
                except TimeoutError as e:
                    say(str(e))
            else:
                time.sleep(1)
        """),
        )
        self.assertIn("rank 1", out, err)

    def test_what_is_no_array_of_a_dtype_is_refused(self):
        self.succeeds(
            1,
            program("""
            def refuses(kind, *arguments, **more):
                try:
                    ct.all_reduce(*arguments, **more)
                except kind as e:
                    return str(e)
                raise SystemExit(f"{arguments} was taken")
            assert "object" in refuses(TypeError, object())
            refuses(BufferError, b"read only")
            assert "contiguous" in refuses((ValueError, BufferError), memoryview(bytearray(8))[::2])
            assert "elements" in refuses(ValueError, array("i", [1]), out=array("i", [1, 2]))
            assert "f32" in refuses(TypeError, array("i", [1]), out=array("f", [1]))
            assert "sum" in refuses(ValueError, array("i", [1]), op="plus")
        """),
        )


class Buffers(unittest.TestCase):
    def test_every_format_has_its_dtype(self):
        for code, name in (
            ("b", "i8"),
            ("B", "u8"),
            ("h", "i16"),
            ("H", "u16"),
            ("i", "i32"),
            ("I", "u32"),
            ("q", "i64"),
            ("Q", "u64"),
            ("l", "i64"),
            ("f", "f32"),
            ("d", "f64"),
        ):
            buffer = Buffer(array.array(code, [1, 2, 3]), True)
            self.assertEqual((buffer.dtype, buffer.count), (DTYPE[name], 3), code)

    def test_an_array_of_numpy_is_taken_where_it_lies(self):
        try:
            import numpy as np
        except ImportError:
            self.skipTest("numpy is not there")
        for kind, name in (
            ("?", "bool"),
            ("e", "f16"),
            ("F", "c64"),
            ("D", "c128"),
            ("u8", "u64"),
            ("i1", "i8"),
        ):
            x = np.zeros((2, 3), kind)
            buffer = Buffer(x, True)
            self.assertEqual(
                (buffer.dtype, buffer.count, buffer.address), (DTYPE[name], 6, x.ctypes.data), kind
            )
        with self.assertRaises(TypeError):
            Buffer(np.zeros(2, ">i4"))
        with self.assertRaises((ValueError, BufferError)):
            Buffer(np.zeros((4, 4))[:, 1])

    def test_a_tensor_of_torch_comes_by_dlpack(self):
        try:
            import torch
        except ImportError:
            self.skipTest("torch is not there")
        for dtype, name in (
            (torch.bfloat16, "bf16"),
            (torch.float32, "f32"),
            (torch.bool, "bool"),
            (torch.int64, "i64"),
        ):
            x = torch.zeros(5, dtype=dtype)
            buffer = Buffer(x, True)
            self.assertEqual(
                (buffer.dtype, buffer.count, buffer.address), (DTYPE[name], 5, x.data_ptr()), name
            )
        with self.assertRaises(BufferError):
            Buffer(torch.zeros(4, 4).t())


class Documentation(Ranks):
    def test_the_programs_of_docs_python_md_run(self):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "python.md")
        with open(path, encoding="utf-8") as file:
            programs = re.findall(r"```python\n(.*?)```", file.read(), flags=re.S)
        self.assertEqual(len(programs), 2)
        for text in programs:
            self.succeeds(4, text)


class Stores(unittest.TestCase):
    def test_values_are_bytes_and_keys_strings(self):
        with ct.Store.memory() as store:
            store.set("k", b"a\\0b")
            self.assertEqual(store.get("k"), b"a\\0b")
            self.assertEqual((store.add("n", 5), store.add("n", -7)), (5, -2))
            store.append("k", "c")
            self.assertEqual(store.prefix("p").compare_set("c", "", "first"), b"first")
            self.assertEqual(store.get("p/c"), b"first")
            self.assertTrue(store.check(["k", "n"]))
            self.assertTrue(store.delete("k"))
            self.assertFalse(store.check(["k"]))
            self.assertEqual(store.num_keys(), 2)
            store.wait(["n"])
            with self.assertRaisesRegex(TimeoutError, "never"):
                store.get("never", timeout=0.01)


if __name__ == "__main__":
    unittest.main()
