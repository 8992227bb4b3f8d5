# SPDX-License-Identifier: Apache-2.0
"""What the backend "ct" does for programs of torch.distributed.  Needs torch 2.14; some tests need 2.15, or numpy."""

import importlib.util
import os
import re
import subprocess
import sys
import textwrap
import unittest
import unittest.mock

from ranks import Ranks

START = """
import os
from datetime import timedelta
import torch
import torch.distributed as dist
from ctrun import torch_backend

torch.set_num_threads(1)
torch_backend.{register}()
r, n = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def same(a, b):
    assert a.dtype == b.dtype and torch.equal(a, b), (r, a, b)


def fails(kind, *words):
    class Fails:
        def __enter__(self):
            return self

        def __exit__(self, got, error, _):
            assert got is not None and issubclass(got, kind), (r, got, error)
            for word in words:
                assert word in str(error), (r, word, str(error))
            return True

    return Fails()


def say(line):  # in one write
    os.write(1, line.encode() + bytes([10]))
"""


def program(text, init='dist.init_process_group("ct")', register="register"):
    end = "\nif dist.is_initialized():\n    dist.destroy_process_group()\n"
    return START.format(register=register) + init + "\n" + textwrap.dedent(text) + end


@unittest.skipUnless(importlib.util.find_spec("torch"), "no torch here")
class TorchRanks(Ranks):
    def succeeds(self, count, program, *options):
        """torch warns on stderr about this and that."""
        code, out, err = self.run_ranks(count, program, *options)
        self.assertEqual(code, 0, out + err)
        return out


class Collectives(TorchRanks):
    def test_all_reduce_of_every_dtype_gives_the_sum(self):
        self.succeeds(
            3,
            program("""
            for dtype in (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
                          torch.float32, torch.float64, torch.complex64, torch.complex128):
                t = torch.full((5,), r + 1).to(dtype)
                dist.all_reduce(t)
                same(t, torch.full((5,), 6).to(dtype))
            for dtype in (torch.float8_e4m3fn, torch.float8_e5m2, torch.uint16, torch.uint32):
                t = torch.full((5,), r + 1.0).to(dtype)
                dist.all_reduce(t)
                assert t.to(torch.float32).tolist() == [6] * 5
            t = torch.tensor([r == 1, False])
            dist.all_reduce(t)
            same(t, torch.tensor([True, False]))
        """),
        )

    def test_every_op_is_torch_s(self):
        self.succeeds(
            2,
            program("""
            R = dist.ReduceOp
            for op, want in ((R.PRODUCT, 12), (R.MIN, 3), (R.MAX, 4), (R.BAND, 0), (R.BOR, 7), (R.BXOR, 7)):
                t = torch.tensor([3 + r])
                dist.all_reduce(t, op)
                assert t.item() == want, (op, t)
            t = torch.tensor([1.0 + r])
            dist.all_reduce(t, R.AVG)
            assert t.item() == 1.5
            t = torch.ones(2)
            dist.all_reduce(t, dist._make_nccl_premul_sum(0.25))
            assert t.tolist() == [0.5, 0.5]
            t = torch.ones(2)
            work = dist.all_reduce(t, dist._make_nccl_premul_sum(torch.tensor([0.5])), async_op=True)
            work.wait()
            assert t.tolist() == [1, 1]
        """),
        )

    def test_tensors_need_not_be_dense(self):
        self.succeeds(
            2,
            program("""
            whole = torch.arange(6.0).view(2, 3)
            t = whole.t()
            dist.all_reduce(t)
            same(whole, 2 * torch.arange(6.0).view(2, 3))
            t = torch.tensor([1 + 2j, 0, 3 - 1j])[::2]
            dist.all_reduce(t)
            assert t.tolist() == [2 + 4j, 6 - 2j]
            whole = torch.zeros(4, 2, dtype=torch.int64)
            parts = list(whole.t().chunk(2))
            dist.all_gather(parts, torch.arange(4).view(1, 4) + 10 * r)
            same(whole, torch.tensor([[0, 10], [1, 11], [2, 12], [3, 13]]))
            out = torch.zeros(2, 4)[:, ::2]
            work = dist.all_gather_into_tensor(out, torch.full((1, 2), r + 1.0), async_op=True)
            work.wait()
            assert out.tolist() == [[1, 1], [2, 2]]
        """),
        )

    def test_lists_may_be_uneven(self):
        self.succeeds(
            3,
            program("""
            places = [torch.zeros(k + 1) for k in range(n)]
            dist.all_gather(places, torch.full((r + 1,), float(r)))
            assert [p.tolist() for p in places] == [[0], [1, 1], [2, 2, 2]]
            out = torch.zeros(r + 1)
            dist.reduce_scatter(out, [torch.full((k + 1,), float(r)) for k in range(n)])
            assert out.tolist() == [3] * (r + 1)
            got = [torch.zeros(r, dtype=torch.int64) for _ in range(n)]
            dist.all_to_all(got, [torch.full((k,), r) for k in range(n)])
            assert [g.tolist() for g in got] == [[k] * r for k in range(n)]
            rows = torch.zeros(n * r, 2)
            dist.all_to_all_single(rows, torch.full((3, 2), float(r)), [r] * n, list(range(n)))
            assert rows[:, 1].tolist() == [0] * r + [1] * r + [2] * r
        """),
        )

    def test_the_other_collectives(self):
        self.succeeds(
            3,
            program("""
            t = torch.tensor([r])
            dist.broadcast(t, 2)
            assert t.item() == 2
            t = torch.tensor([r + 1])
            dist.reduce(t, 1)
            assert t.item() == (6 if r == 1 else r + 1)
            places = [torch.zeros(2) for _ in range(n)] if r == 0 else None
            dist.gather(torch.full((2,), float(r)), places)
            assert r != 0 or [p[0].item() for p in places] == [0, 1, 2]
            out = torch.zeros(1)
            dist.scatter(out, [torch.tensor([5.0 + k]) for k in range(n)] if r == 0 else None)
            assert out.item() == 5 + r
            out = torch.zeros(2)
            dist.reduce_scatter_tensor(out, torch.arange(6.0))
            assert out.tolist() == [6 * r, 6 * r + 3]
            out = torch.zeros(3)
            dist.all_to_all_single(out, torch.arange(3.0) + 10 * r)
            assert out.tolist() == [r, 10 + r, 20 + r]
            dist.barrier()
            t = torch.sparse_coo_tensor([[r, 3]], [1.0, 2.0], (4,))
            dist.all_reduce(t)
            assert t.to_dense().tolist() == [1, 1, 1, 6]
            objects = [None] * n
            dist.all_gather_object(objects, {"rank": r})
            assert objects == [{"rank": k} for k in range(n)]
            e = torch.empty(0)
            dist.all_reduce(e)
            t = torch.full((2,), float(r)).to(torch.float8_e4m3fnuz)
            dist.broadcast(t, 1)  # libct has no such dtype: bytes
            assert t.float().tolist() == [1, 1]
        """),
        )

    def test_what_does_not_fit_is_refused_and_harms_nothing(self):
        self.succeeds(
            2,
            program("""
            with fails(ValueError, "3 elements for each of 2 ranks don't make 5"):
                dist.all_gather_into_tensor(torch.zeros(5), torch.zeros(3))
            square, flat = torch.zeros(2, 2), [torch.zeros(4) for _ in range(n)]
            for call in (lambda: dist.all_gather(flat, square),
                         lambda: dist.all_gather_coalesced([[t] for t in flat], [square]),
                         lambda: dist.gather(square, flat, r), lambda: dist.scatter(square, flat, r),
                         lambda: dist.reduce_scatter(square, flat)):
                with fails(ValueError, "list: tensor 0 has the shape (4,), not (2, 2)"):
                    call()
            with fails(TypeError, "float8_e4m3fnuz"):
                dist.all_reduce(torch.zeros(1, dtype=torch.float8_e4m3fnuz))
            with fails(ValueError, "no 2 equal parts"):
                dist.all_to_all_single(torch.zeros(3), torch.zeros(3))
            with fails(ValueError, "avg", "bool"):
                dist.all_reduce(torch.tensor([True]), dist.ReduceOp.AVG)
            t = torch.ones(1)
            dist.all_reduce(t)
            assert t.item() == 2
        """),
        )


class Works(TorchRanks):
    def test_a_work_is_waited_for_asked_and_has_a_future(self):
        self.succeeds(
            2,
            program("""
            import time
            t = torch.ones(1 << 20)
            work = dist.all_reduce(t, async_op=True)
            called = []
            future = work.get_future().then(lambda f: called.append(f.value()[0][0].item()) or f.value()[0] / 2)
            assert future.wait()[0].item() == 1 and called == [2]
            while not work.is_completed():
                time.sleep(0.001)
            assert work.wait() and work.is_success()
            for _ in range(300):
                dist.all_reduce(torch.ones(3), async_op=True)  # dropped
            dist.barrier()
            backend = dist.group.WORLD._get_backend(torch.device("cpu"))
            dist.all_reduce(torch.ones(3), async_op=True).wait()
            assert len(backend.pending) <= 65, len(backend.pending)
        """),
        )

    def test_only_futures_take_threads(self):
        self.succeeds(
            2,
            program("""
            import threading

            def threads():
                return sum(thread.name == "ctrun futures" for thread in threading.enumerate())

            t = torch.ones(3)
            for _ in range(50):
                dist.all_reduce(t, op=dist.ReduceOp.AVG, async_op=True).wait()
            assert threads() == 0
            for _ in range(50):
                assert dist.all_reduce(t, op=dist.ReduceOp.AVG, async_op=True).get_future().wait()[0][0].item() == 1
            works = [dist.all_reduce(t, op=dist.ReduceOp.AVG, async_op=True) for _ in range(50)]
            assert all(future.wait() for future in [work.get_future() for work in works])
            assert threads() <= 4, threads()  # one more whenever all of them ran callbacks
            assert all(work.wait() for work in works)
        """),
        )

    def test_a_callback_may_wait_for_other_futures_of_its_group(self):
        """The futures of its own calls, of callbacks within callbacks, and of another thread's calls."""
        self.succeeds(
            2,
            program("""
            import threading

            def sum_of(t):
                return dist.all_reduce(t, async_op=True).get_future()

            def deeper(depth):
                def callback(future):
                    t = future.value()[0]
                    return sum_of(t).then(deeper(depth - 1)).wait() if depth else t.tolist()
                return callback

            for _ in range(5):
                t = torch.ones(1 << 16)
                assert sum_of(t).then(deeper(6)).wait()[:2] == [2**7] * 2

            made, others = threading.Event(), []

            def second():
                others.append(sum_of(torch.ones(2)).then(lambda f: f.value()[0].sum().item()))
                made.set()

            def waits_for_the_second(future):
                threading.Thread(target=second).start()
                made.wait()
                work = dist.all_reduce(torch.ones(3), async_op=True)
                work.wait()
                t = torch.ones(1)
                dist.all_reduce(t)
                return others[0].wait() + t.item()

            assert sum_of(torch.ones(1)).then(waits_for_the_second).wait() == 6
        """),
        )

    def test_a_group_ends_with_callbacks_that_are_not_over(self):
        """destroy_process_group() lets callbacks make their calls, or names a callback that does not return."""
        out = self.succeeds(
            2,
            program(
                """
            import time
            group = dist.new_group([0, 1])

            def again(future):
                time.sleep(0.2)
                return dist.all_reduce(future.value()[0], group=group, async_op=True).get_future().wait()[0].item()

            future = dist.all_reduce(torch.ones(1), group=group, async_op=True).get_future().then(again)
            dist.destroy_process_group(group)
            assert future.wait() == 4

            group = dist.new_group([0, 1], timeout=timedelta(milliseconds=500))
            own = []

            def cycle(future):
                while not own:
                    time.sleep(0.01)
                return own[0].wait()

            if r == 1:
                time.sleep(0.3)  # a callback of a Future that is done would run in the thread that adds it
            future = dist.all_reduce(torch.ones(1), group=group, async_op=True).get_future()
            if r == 0:
                own.append(future.then(cycle))
                with fails(dist.DistBackendError, "Timed out after 500 ms", "callback", "(cycle)"):
                    dist.destroy_process_group(group)
                say("named")
            """,
            ),
        )
        self.assertEqual(out.count("named"), 1)

    def test_a_work_that_lasts_is_not_completed_and_its_wait_has_a_timeout(self):
        self.succeeds(
            2,
            program("""
            import time
            t = torch.ones(2)
            if r == 0:
                work = dist.all_reduce(t, async_op=True)
                assert not work.is_completed()
                with fails(dist.DistBackendError, "Timed out", "continues"):
                    work.wait(timedelta(milliseconds=50))
                dist.send(torch.ones(1), 1)
                work.wait()
            else:
                dist.recv(torch.ones(1), 0)
                dist.all_reduce(t)
            assert t.tolist() == [2, 2]
        """),
        )

    def test_messages(self):
        self.succeeds(
            3,
            program("""
            t = torch.zeros(2, 2)
            if r == 0:
                got = sorted(dist.recv(t, tag=3) for _ in range(2))
                assert got == [1, 2], got
                work = dist.irecv(t, 1, tag=9)
                work.wait()
                assert t.tolist() == [[9, 9], [9, 9]]
            else:
                dist.send(torch.full((2, 2), float(r)), 0, tag=3)
                if r == 1:
                    dist.isend(torch.full((2, 4), 9.0)[:, ::2], 0, tag=9).wait()
            right, left = (r + 1) % n, (r - 1) % n
            out = torch.zeros(1 << 18)
            ops = [dist.P2POp(dist.isend, torch.full((1 << 18,), float(r)), right), dist.P2POp(dist.irecv, out, left)]
            for work in dist.batch_isend_irecv(ops):
                work.wait()
            assert out[-1].item() == left
        """),
        )

    def test_coalesced_calls(self):
        self.succeeds(
            2,
            program("""
            a, b = torch.ones(3), torch.full((2, 2), 2.0).t()
            with dist._coalescing_manager():
                dist.all_reduce(a)
                dist.all_reduce(b)
            assert a.tolist() == [2] * 3 and b.tolist() == [[4, 4], [4, 4]]
            with dist._coalescing_manager(device=torch.device("cpu"), async_ops=True) as manager:
                dist.all_reduce(a)
                dist.broadcast(b, 0)
            manager.wait()
            assert a.tolist() == [4] * 3
            dist.all_reduce_coalesced([a, b])
            assert a.tolist() == [8] * 3 and b[0, 0].item() == 8
        """),
        )

    def test_threads_share_a_group(self):
        self.succeeds(
            2,
            program("""
            import threading
            groups = [dist.new_group([0, 1]) for _ in range(3)]
            def work(k):
                for i in range(200):
                    t = torch.tensor([k * i + r])
                    dist.all_reduce(t, group=groups[k])
                    assert t.item() == 2 * k * i + 1
            threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
            [t.start() for t in threads], [t.join() for t in threads]
            # and two threads exchange messages by one group, each waiting for the other side's thread
            def ping(k):
                t = torch.zeros(1)
                for i in range(100):
                    if (r + k) % 2:
                        dist.send(torch.tensor([float(i)]), 1 - r, tag=k)
                    else:
                        dist.recv(t, 1 - r, tag=k)
                        assert t.item() == i
            threads = [threading.Thread(target=ping, args=(k,)) for k in range(2)]
            [t.start() for t in threads], [t.join() for t in threads]
        """),
        )

    def test_the_profiler_shows_each_call(self):
        self.succeeds(
            2,
            program("""
            with torch.profiler.profile() as profile:
                dist.all_reduce(torch.ones(4))
                dist.broadcast(torch.ones(4), 0, async_op=True).wait()
            rows = {e.name: e.is_async for e in profile.events() if e.name.startswith("ct:")}
            assert rows == {"ct:all_reduce": True, "ct:broadcast": True}, rows
        """),
        )

    def test_calls_that_are_done_are_retired_in_the_flight_recorder(self):
        self.succeeds(
            2,
            program("""
            import json
            from torch._C._distributed_c10d import _dump_fr_trace_json
            dist.all_reduce(torch.ones(2))
            dist.all_reduce(torch.ones(2), async_op=True).wait()
            entries = json.loads(_dump_fr_trace_json(backend="ct"))["entries"]
            assert [(e["profiling_name"], e["retired"]) for e in entries] == [("ct:all_reduce", True)] * 2, entries
        """),
        )


class Groups(TorchRanks):
    def test_groups_of_groups(self):
        out = self.succeeds(
            4,
            program("""
            from torch.distributed.device_mesh import init_device_mesh
            even = dist.new_group([0, 2])
            if r % 2 == 0:
                t = torch.tensor([r])
                dist.all_reduce(t, group=even)
                assert t.item() == 2
            mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("rows", "columns"))
            t = torch.tensor([r])
            dist.all_reduce(t, group=mesh.get_group("columns"))
            assert t.item() == (1 if r < 2 else 5)
            half = dist.split_group(split_ranks=[[0, 1], [2, 3]])
            t = torch.tensor([r])
            dist.all_reduce(t, group=half)
            assert t.item() == (1 if r < 2 else 5), t
            left = dist.shrink_group([3]) if r < 3 else None
            if r < 3:
                t = torch.ones(1)
                dist.all_reduce(t, group=left)
                assert t.item() == 3
                say("shrunk")
        """),
        )
        self.assertEqual(out.count("shrunk"), 3)

    def test_any_store_is_a_meeting_place_and_serves_again(self):
        self.succeeds(
            2,
            program(
                """
            for k in range(3):
                dist.init_process_group("ct", store=store, rank=r, world_size=n, timeout=timedelta(seconds=20))
                t = torch.ones(1)
                dist.all_reduce(t)
                assert t.item() == 2
                dist.destroy_process_group()
            """,
                init='store = dist.FileStore(f"/tmp/ct-test-{os.getppid()}", 2)',
            ),
        )

    def test_a_rank_that_never_comes_is_a_timeout_that_says_so(self):
        code, out, _ = self.run_ranks(
            1,
            program(
                """
            with fails(dist.DistBackendError, "Timed out", "rank 1"):
                dist.init_process_group("ct", store=dist.HashStore(), rank=0, world_size=2,
                                        timeout=timedelta(seconds=1))
            say("said")
            """,
                init="",
            ),
        )
        self.assertEqual((code, out), (0, "said\n"))

    def test_gloo_s_name_leads_to_libct(self):
        self.succeeds(
            2,
            program(
                """
            assert dist.get_backend() == "gloo"
            t = torch.ones(2)
            dist.all_reduce(t)
            dist.monitored_barrier()
            assert isinstance(dist.group.WORLD._get_backend(torch.device("cpu")), torch_backend.ProcessGroupCt)
            model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
            model(torch.ones(1, 4)).sum().backward()
            """,
                init='dist.init_process_group("gloo")',
                register="register_as_gloo",
            ),
        )


class Failures(TorchRanks):
    def test_a_timeout_names_the_rank_that_did_not_come(self):
        self.succeeds(
            2,
            program("""
            import time
            group = dist.new_group([0, 1], timeout=timedelta(milliseconds=300))
            if r == 0:
                with fails(dist.DistBackendError, "Timed out", "all_reduce", "rank 1"):
                    dist.all_reduce(torch.ones(1), group=group)
                assert group._get_backend(torch.device("cpu")).get_error().name == "TIMEOUT"
            else:
                time.sleep(1)
            dist.barrier()
        """),
        )

    def test_a_monitored_barrier_names_it_in_torch_s_words(self):
        self.succeeds(
            3,
            program(
                """
            import time
            if r == 0:
                with fails(RuntimeError, "Ranks 1, 2 failed to pass monitoredBarrier in 500 ms"):
                    dist.monitored_barrier(timeout=timedelta(milliseconds=500), wait_all_ranks=True)
            else:
                time.sleep(1)
            """,
                init='dist.init_process_group("gloo")',
                register="register_as_gloo",
            ),
        )

    def test_a_killed_rank_is_an_exception_that_names_it(self):
        code, out, err = self.run_ranks(
            3,
            program("""
            import signal
            model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
            for step in range(10):
                if step == 5 and r == 1:
                    os.kill(os.getpid(), signal.SIGKILL)
                try:
                    model(torch.ones(1, 4)).sum().backward()
                except RuntimeError as error:  # of a Future: torch keeps the text only
                    say(f"{r} {error}")
                    os._exit(0)
        """),
            "--on-failure=continue",
        )
        self.assertEqual(code, 0, err)  # two of three are well
        for rank in (0, 2):
            self.assertRegex(out, rf"(?m)^{rank} .*rank 1 \(pid .*SIGKILL")

    def test_a_stopped_rank_is_named_when_the_time_is_over(self):
        out = self.succeeds(
            2,
            program(
                """
            import signal
            pids = [None, None]
            dist.all_gather_object(pids, os.getpid())
            model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
            dist.group.WORLD._get_backend(torch.device("cpu")).set_timeout(timedelta(seconds=1))
            if r == 1:
                os.kill(os.getpid(), signal.SIGSTOP)
                os._exit(0)
            try:
                model(torch.ones(1, 4)).sum().backward()
            except RuntimeError as error:
                say(str(error))
                os.kill(pids[1], signal.SIGCONT)
                os._exit(0)
            """,
            ),
        )
        self.assertRegex(out, r"Timed out in all_reduce .*rank 1 \(pid .*\) is stopped")

    def test_ranks_that_make_different_calls_are_told(self):
        code, out, _ = self.run_ranks(
            2,
            program("""
            try:
                dist.all_reduce(torch.ones(3 + r))
            except dist.DistBackendError as error:
                say(str(error))
                os._exit(0)
        """),
        )
        self.assertEqual(code, 0, out)
        self.assertIn("3 f32", out)

    def test_ranks_that_disagree_about_the_root_of_the_last_call_are_told(self):
        self.succeeds(
            2,
            program("""
            group = dist.new_group([0, 1])
            if r == 0:
                dist.broadcast(torch.ones(2), 0, group=group)
            dist.barrier()
            if r == 1:
                with fails(dist.DistBackendError, "broadcast #1", "root 0", "root 1"):
                    dist.broadcast(torch.ones(2), 1, group=group)
            dist.barrier()
            if r == 0:
                with fails(dist.DistBackendError, "broadcast #1", "root 0", "root 1"):
                    dist.destroy_process_group(group)
            """),
        )

    def test_an_aborted_group_wakes_the_thread_that_waits(self):
        self.succeeds(
            2,
            program("""
            import threading, time
            group = dist.new_group([0, 1])
            if r == 0:
                backend = group._get_backend(torch.device("cpu"))
                threading.Timer(0.3, backend.abort).start()
                with fails(dist.DistBackendError, "abort"):
                    dist.all_reduce(torch.ones(1), group=group)
            dist.barrier()
        """),
        )

    def test_processes_end_without_noise_whatever_they_left(self):
        for leave in ("", "dist.destroy_process_group()", "import sys; sys.exit(0)"):
            code, out, err = self.run_ranks(
                2,
                program(f"""
                gloo = dist.new_group([0, 1], backend="gloo")
                dist.all_reduce(torch.ones(1), group=gloo)
                dist.all_reduce(torch.ones(1), async_op=True).get_future().wait()
                dist.barrier()
                {leave}
                os.environ.pop("nothing", None)
            """).replace("\nif dist.is_initialized():\n    dist.destroy_process_group()\n", ""),
            )
            self.assertEqual((code, err), (0, ""), out)

    def test_a_process_ends_in_order_while_callbacks_wait_for_calls_that_fail(self):
        """The other rank does not make the call that the callback waits for."""
        out = self.succeeds(
            2,
            program("""
            import sys

            def again(future):
                return dist.all_reduce(future.value()[0], async_op=True).get_future().wait()[0]

            future = dist.all_reduce(torch.ones(1 << 10), async_op=True).get_future()
            future.then(again if r == 0 else lambda f: None)
            say("out")
            sys.exit(0)
        """),
        )
        self.assertEqual(out.count("out"), 2)

    def test_a_forked_child_ends_without_its_parent_s_groups(self):
        self.succeeds(
            2,
            program("""
            import sys, threading, time
            group = dist.new_group([0, 1])
            dist.all_reduce(torch.ones(1), async_op=True)
            for _ in range(3):
                child = os.fork()
                if child == 0:
                    sys.exit(7)
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
            dist.all_reduce(torch.ones(1), group=group)
            dist.barrier()
        """),
        )


class Places(TorchRanks):
    def test_ctctl_shows_the_line_that_called_backward(self):
        """The calls are made by hooks of autograd, and a thread of the backend waits for them."""
        out = self.succeeds(
            2,
            program("""
            import subprocess, time

            def step():
                loss = model(torch.ones(1, 4)).sum()
                if r == 1:
                    ctctl = os.path.join(os.environ["CT_BUILD"], "bin", "ctctl")
                    for _ in range(100):
                        said = subprocess.run([ctctl, "status", str(os.getppid())], capture_output=True, text=True)
                        if "(step)" in said.stdout:
                            break
                        time.sleep(0.2)
                    say(said.stdout)
                loss.backward()

            model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
            step()
        """),
        )
        line = r"has not joined all_reduce #\d+ \(20 f32, sum\); .*Rank 0 has waited .* at <string>:\d+ \(step\)"
        self.assertRegex(out, line)


class Training(TorchRanks):
    def test_ddp_fsdp_and_tensor_parallel_give_what_one_process_gives(self):
        self.succeeds(
            2,
            program("""
            import copy
            from torch import nn
            from torch.distributed.device_mesh import init_device_mesh
            from torch.distributed.fsdp import fully_shard
            from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

            def make():
                torch.manual_seed(7)
                return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))

            def train(model, x):
                optimizer = torch.optim.SGD(model.parameters(), 0.1)
                for _ in range(3):
                    model(x).square().mean().backward()
                    optimizer.step()
                    optimizer.zero_grad()
                return model

            torch.manual_seed(3)
            x = torch.randn(6, 8)
            want = train(make(), x)[0].weight
            mine = x[r * 3 : r * 3 + 3]
            mesh = init_device_mesh("cpu", (2,))
            got = train(nn.parallel.DistributedDataParallel(make()), mine).module[0].weight
            assert torch.allclose(got, want, atol=1e-6)
            got = train(fully_shard(make(), mesh=mesh), mine)[0].weight.full_tensor()
            assert torch.allclose(got, want, atol=1e-6)
            plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
            got = train(parallelize_module(make(), mesh, plan), x)[0].weight.full_tensor()
            assert torch.allclose(got, want, atol=1e-6)
        """),
        )


class Documentation(TorchRanks):
    def test_the_programs_of_docs_pytorch_md_run(self):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "pytorch.md")
        with open(path, encoding="utf-8") as file:
            programs = re.findall(r"```python\n(.*?)```", file.read(), flags=re.S)
        self.assertEqual(len(programs), 5)
        register = (
            "from ctrun import torch_backend\ntorch_backend.register()\n"  # what the wheel's entry point does
        )
        for text in programs:
            self.succeeds(2, register + text, "--max-restarts=1")


@unittest.skipUnless(importlib.util.find_spec("torch"), "no torch here")
class Import(unittest.TestCase):
    def test_an_older_torch_is_refused_by_its_version(self):
        fake = """
        import sys, torch
        torch.__version__ = "2.13.0"
        import torch._C._distributed_c10d as c10d
        del c10d.Backend
        try:
            import ctrun.torch_backend
        except ImportError as error:
            print(error)
        """
        out = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(fake)], capture_output=True, text=True, check=True
        )
        self.assertEqual(
            out.stdout,
            'the backend "ct" needs torch 2.14 or later with torch.distributed; this is torch 2.13.0\n',
        )


FAKE = os.path.join(os.environ.get("CT_BUILD", ""), "tests", "libcuda.so.1")


@unittest.skipUnless(os.path.exists(FAKE), "no fake CUDA driver was built")
class CudaOnAFakeDriver(TorchRanks):
    """Stand-ins for CUDA tensors (fake_cuda.py), given to the backend itself; torch's dispatcher has no part in it."""

    def on_cuda(self, count, text, *options):
        init = """
dist.init_process_group("ct")
import fake_cuda
import torch._C._distributed_c10d as c10d
from fake_cuda import Stream, Tensor, current_stream
backend = dist.distributed_c10d._get_default_group()._get_backend(torch.device("cuda"))


def made(kind, is_async, **fields):
    opts = kind()
    opts.asyncOp = is_async
    for name, value in fields.items():
        setattr(opts, name, value)
    return opts


def all_reduce(tensor, is_async=False, op=dist.ReduceOp.SUM):
    return backend.allreduce([tensor], made(c10d.AllreduceOptions, is_async, reduceOp=op))
"""
        return self.succeeds(count, program(text, init), *options)

    def test_a_call_is_in_the_current_stream(self):
        """What was enqueued there before has been done, and what is enqueued later finds the result."""
        self.on_cuda(
            3,
            """
            for stream in (current_stream(), Stream(), Stream()):
                with fake_cuda.stream(stream):
                    for i in range(4):
                        t = Tensor([r + 1.0, i])
                        all_reduce(t)
                        all_reduce(t, op=dist.ReduceOp.MAX)
                        assert t.read() == [6, 3 * i], t.read()
        """,
        )

    def test_if_hosts_hand_calls_over_none_waits_for_the_other_ranks(self):
        """The other rank makes its call only when this one has returned from its own."""
        with unittest.mock.patch.dict(os.environ, CT_HANDOVER="host"):
            self.on_cuda(
                2,
                """
                warm = Tensor([1.0])
                all_reduce(warm)
                warm.read()
                store = dist.distributed_c10d._get_default_store()
                for name, is_async in (("sync", False), ("async", True)):
                    t = Tensor([r + 1.0])
                    if r == 1:
                        store.wait([name])
                    work = all_reduce(t, is_async)
                    if r == 0:
                        assert not is_async or not work.is_completed()
                        store.set(name, "")
                    work.wait()
                    assert t.read() == [3]
                    assert not is_async or work.is_completed()
            """,
            )

    def test_a_stream_waits_for_an_asynchronous_call_with_wait(self):
        self.on_cuda(
            2,
            """
            own = Stream()
            for i in range(4):
                with fake_cuda.stream(own):
                    t = Tensor([r + 1.0, i])
                    work = all_reduce(t, True)
                    later = Tensor([2.0])
                assert work.result() == [t] and len(t.recorded) == 1 and t.recorded != [own.cuda_stream]
                other = Stream()
                with fake_cuda.stream(other):
                    work.wait()
                    assert t.read() == [3, 2 * i]
                assert work.is_completed() and work.is_success()
                work.wait(timedelta(seconds=5))
        """,
        )

    def test_a_future_is_done_at_once_and_its_streams_wait(self):
        self.on_cuda(
            2,
            """
            torch.futures.Future = fake_cuda.Future
            t = Tensor([r + 1.0])
            future = all_reduce(t, True).get_future()
            assert future.wait() == [t]
            assert t.read() == [3]
        """,
        )

    def test_every_collective_takes_them(self):
        self.on_cuda(
            2,
            """
            def check(opts, call, want, *tensors):
                work = call(opts)
                if opts.asyncOp:
                    work.wait()
                assert [t.read() for t in tensors] == want, (r, call, [t.read() for t in tensors], want)

            for a in (False, True):
                t = Tensor([r + 1.0])
                check(made(c10d.BroadcastOptions, a, rootRank=1), lambda o: backend.broadcast([t], o), [[2.0]], t)
                t = Tensor([r + 1.0])
                check(made(c10d.ReduceOptions, a, rootRank=0, reduceOp=dist.ReduceOp.SUM),
                      lambda o: backend.reduce([t], o), [[3.0]] if r == 0 else [[2.0]], t)
                t, outs = Tensor([r + 1.0]), [Tensor([0.0]) for _ in range(n)]
                check(made(c10d.AllgatherOptions, a), lambda o: backend.allgather([outs], [t], o), [[1.0], [2.0]], *outs)
                big = Tensor([0.0, 0.0])
                check(made(c10d.AllgatherOptions, a), lambda o: backend.all_gather_single(big, t, o), [[1.0, 2.0]], big)
                outs = [Tensor([0.0]) for _ in range(n)]
                check(made(c10d.GatherOptions, a, rootRank=0), lambda o: backend.gather([outs] if r == 0 else [], [t], o),
                      [[1.0], [2.0]] if r == 0 else [[0.0], [0.0]], *outs)
                out, parts = Tensor([0.0]), [Tensor([5.0]), Tensor([6.0])]
                check(made(c10d.ScatterOptions, a, rootRank=1), lambda o: backend.scatter([out], [parts] if r == 1 else [], o),
                      [[5.0 + r]], out)
                out, parts = Tensor([0.0]), [Tensor([5.0 + r]), Tensor([6.0])]
                check(made(c10d.ReduceScatterOptions, a, reduceOp=dist.ReduceOp.SUM),
                      lambda o: backend.reduce_scatter([out], [parts], o), [[11.0 + r]], out)
                out, whole = Tensor([0.0]), Tensor([1.0 + r, 2.0])
                check(made(c10d.ReduceScatterOptions, a, reduceOp=dist.ReduceOp.AVG),
                      lambda o: backend.reduce_scatter_single(out, whole, o), [[1.5 + r / 2]], out)
                out = Tensor([0.0, 0.0])
                check(made(c10d.AllToAllOptions, a), lambda o: backend.all_to_all_single(out, whole, [], [], o),
                      [[1.0, 2.0] if r == 0 else [2.0, 2.0]], out)
                t = Tensor([r + 1.0])
                check(made(c10d.AllreduceOptions, a, reduceOp=dist._make_nccl_premul_sum(0.5)),
                      lambda o: backend.allreduce([t], o), [[1.5]], t)
        """,
        )

    def test_messages_and_batches(self):
        self.on_cuda(
            2,
            """
            for count in (4, 40000):
                with fake_cuda.stream(Stream()):
                    t, got = Tensor([r + 1.0] * count), Tensor([0.0] * count)
                    backend.start_coalescing()
                    backend.send([t], 1 - r)
                    backend.recv([got], 1 - r)
                    backend.end_coalescing().wait()
                    assert got.read() == [2.0 - r] * count
                    if r == 0:
                        backend.send([t], 1, 7).wait()
                    else:
                        work = backend.recv_anysource([got], 7)
                        work.wait()
                        assert work.source_rank() == 0
                        assert got.read() == [1.0] * count
            a, b = Tensor([1.0]), Tensor([2.0])
            backend.start_coalescing()
            all_reduce(a)
            all_reduce(b)
            backend.end_coalescing().wait()
            assert (a.read(), b.read()) == ([2], [4])
        """,
        )

    def test_a_barrier_waits_for_the_stream(self):
        self.on_cuda(
            2,
            """
            t = Tensor([1.0])
            all_reduce(t)
            dist.barrier()
            assert fake_cuda.cuda.cuStreamQuery(None) == 0
        """,
        )

    def test_host_and_cuda_tensors_are_not_mixed_in_a_call(self):
        self.on_cuda(
            2,
            """
            t, out = Tensor([1.0]), torch.zeros(2)
            with fails(torch_backend.InvalidError, "memory"):
                backend.all_gather_single(out, t, made(c10d.AllgatherOptions, False))
            host = torch.ones(1)
            dist.all_reduce(host)
            assert host.item() == 2
        """,
        )

    def test_after_a_death_the_stream_goes_on_and_the_next_call_names_the_rank(self):
        code, out, err = self.run_ranks(
            2,
            program("""
            import signal
            import fake_cuda
            from fake_cuda import Tensor
            backend = dist.distributed_c10d._get_default_group()._get_backend(torch.device("cuda"))
            opts = torch._C._distributed_c10d.AllreduceOptions()
            opts.asyncOp = False
            t = Tensor([1.0])
            backend.allreduce([t], opts)
            assert t.read() == [2]
            if r == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            with fails(dist.DistBackendError, "rank 1", "SIGKILL"):
                for _ in range(1000):
                    backend.allreduce([t], opts)
                    t.read()
            say("named")
            os._exit(0)
        """),
            "--on-failure=continue",
        )
        self.assertIn("named", out, out + err)


if __name__ == "__main__":
    unittest.main()
