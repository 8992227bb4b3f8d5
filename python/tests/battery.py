# SPDX-License-Identifier: Apache-2.0
"""Runs what programs do with torch.distributed on the backend "ct" and on gloo, and compares the numbers of all ranks.

python3 battery.py [--ranks=2,4] [--backends=ct,gloo] [--fast] [--keep=FOLDER] [WORD...]

Prints a row for each case: "ok" or the number of its error on each backend, and how far ct is from gloo.  With 2 ranks
the bits must be equal.  With 4, gloo adds in another order.  A backend "alias" is libct under
the name gloo.  --fast: without the slow cases.  WORD: only cases with one of these words in their names.  Exit 1: ct
fails a case that gloo does not fail, or has other numbers.
"""

import collections
import contextlib
import functools
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import tempfile
import traceback

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import (
    ddp_zero_hook,
    debugging_hooks,
    default_hooks,
    optimizer_overlap_hooks,
    post_localSGD_hook,
    powerSGD_hook,
    quantization_hooks,
)
from torch.distributed.algorithms.join import Join
from torch.distributed.algorithms.model_averaging import averagers, hierarchical_model_averager
from torch.distributed.checkpoint import state_dict as dcp_state
from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import (
    MixedPrecision,
    MixedPrecisionPolicy,
    ShardingStrategy,
    StateDictType,
    fully_shard,
)
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.distributed.optim import ZeroRedundancyOptimizer, _apply_optimizer_in_backward
from torch.distributed.optim.functional_sgd import _FunctionalSGD
from torch.distributed.pipelining import PipelineStage, schedules
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

LIMIT_S = 100  # for a case
Case = collections.namedtuple("Case", "function close slow")
CASES = {}
KEPT = (
    []
)  # groups: if one of gloo's own threads drops the last reference to one, the process ends by std::terminate()


def cases(named=None, close=1e-5, slow=False, needs=None):
    """The function is a case, or one with each of the arguments in named.  close: how far from gloo with 4 ranks."""

    def add(function):
        for name, options in (named or {"": {}}).items():
            title = function.__name__.replace("_", " ") + (f": {name}" if name else "")
            call = (
                functools.partial(function, **options)
                if isinstance(options, dict)
                else functools.partial(function, options)
            )
            if needs is None or importlib.util.find_spec(needs):
                CASES[title] = Case(call, close, slow)
        return function

    return add


def rank():
    return dist.get_rank()


def size():
    return dist.get_world_size()


def line():
    return init_device_mesh("cpu", (size(),))


def plane(*names):
    return init_device_mesh("cpu", (2, size() // 2), mesh_dim_names=names or ("rows", "columns"))


def mlp(*middle):
    torch.manual_seed(7)
    return nn.Sequential(nn.Linear(16, 32), *middle, nn.ReLU(), nn.Linear(32, 4))


def weights(model):
    return [getattr(p, "full_tensor", lambda p=p: p)().detach().clone() for p in model.parameters()]


def sgd(model):
    return torch.optim.SGD(model.parameters(), 0.1)


def adam(model):
    return torch.optim.Adam(model.parameters(), 0.01)


def step_of(model, optimizer, x):
    model(x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


def train(model, optimizer=None, steps=4, inputs=lambda: torch.randn(8, 16), after=lambda step: None):
    """Gives the weights.  Each rank has its own data."""
    optimizer = optimizer or sgd(model)
    torch.manual_seed(rank())
    for step in range(steps):
        model(inputs()).square().mean().backward()
        optimizer.step()
        after(step)
        optimizer.zero_grad()
    return weights(model)


# ---- Collectives, messages and objects -------------------------------------------------------


@cases({n: n for n in ("float32", "float64", "float16", "bfloat16", "int64", "int8", "bool")}, close=0)
def every_collective_of(dtype):
    r, n, dtype = rank(), size(), getattr(torch, dtype)

    def made(*shape, add=0):
        return (torch.arange(torch.Size(shape).numel()).view(shape) % 3 + r + add).to(dtype)

    kind = dist.ReduceOp.MAX if dtype == torch.bool else dist.ReduceOp.SUM
    got = [
        made(5),
        made(5),
        made(5),
        torch.zeros(n * 2, 3, dtype=dtype),
        *torch.zeros(3, 2, dtype=dtype),
    ]
    dist.all_reduce(got[0], kind)
    dist.broadcast(got[1], n - 1)
    dist.reduce(got[2], 1, kind)
    dist.all_gather_into_tensor(got[3], made(2, 3))
    dist.reduce_scatter_tensor(got[4], made(2 * n), kind)
    dist.scatter(got[5], [made(2, add=k) for k in range(n)] if r == 1 else None, 1)
    lists = [[torch.zeros(3, dtype=dtype) for _ in range(n)] for _ in range(3)]
    dist.all_gather(lists[0], made(3))
    dist.gather(made(3), lists[1] if r == 1 else None, 1)
    dist.reduce_scatter(got[6], [made(2, add=k) for k in range(n)], kind)
    dist.all_to_all(lists[2], [made(3, add=k) for k in range(n)])
    rows = torch.zeros(n, 2, dtype=dtype)
    dist.all_to_all_single(rows, made(n, 2))
    return [got if r == 1 else got[:2] + got[3:], lists, rows]


@cases()
def every_op_of_all_reduce():
    got = []
    for op in ("SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"):
        got.append(torch.arange(6) + 3 * rank())
        dist.all_reduce(got[-1], getattr(dist.ReduceOp, op))
    return got


def plain(x):
    return [plain(part) for part in x] if isinstance(x, (list, tuple)) else x.clone()


def call_of(name, made):
    n, t = size(), torch.full((2,), rank() + 1.0)
    parts = [torch.full((2,), rank() + k / 4) for k in range(n)]
    arguments = {
        "all_reduce": [t],
        "broadcast": [t, 1],
        "reduce": [t, 1],
        "all_gather": [made, t],
        "gather": [t, made if rank() == 0 else None],
        "scatter": [t, parts if rank() == 0 else None],
        "reduce_scatter": [t, parts],
        "reduce_scatter_tensor": [t, torch.cat(parts)],
        "all_to_all": [made, parts],
        "all_to_all_single": [torch.zeros(n), torch.arange(n) + t[0]],
        "barrier": [],
    }
    return getattr(dist, name)(*arguments[name], async_op=True)


CALLS = "all_reduce broadcast reduce all_gather gather scatter reduce_scatter reduce_scatter_tensor all_to_all".split()


@cases({name: name for name in [*CALLS, "all_to_all_single", "barrier"]})
def the_future_of(name):
    work = call_of(name, [torch.zeros(2) for _ in range(size())])
    result = work.get_future().wait()
    work.wait()
    return [plain(result), plain(work.result())] if rank() == 1 or name != "reduce" else None


@cases()
def tensors_of_odd_shapes():
    transposed = torch.arange(6.0).view(2, 3).t() * rank()
    got = [torch.tensor(rank() + 1.0), torch.zeros(0), transposed, torch.ones(3, requires_grad=True)]
    with torch.no_grad():
        for t in got:
            dist.all_reduce(t)
            dist.broadcast(t, 1)
    return got


@cases()
def roots_are_named_by_their_rank_in_the_group():
    first, n = size() // 2, size() - size() // 2  # a group of the later half
    group, got = dist.new_group(list(range(first, size()))), torch.full((4, 2), rank() + 1.0)
    if rank() < first:
        return None
    mine = rank() == first
    some, parts = list(torch.zeros(n, 2)), list(torch.arange(2.0 * n).view(n, 2))
    dist.broadcast(got[0], group=group, group_src=0)
    dist.reduce(got[1], group=group, group_dst=0)
    dist.gather(got[2], some if mine else None, group=group, group_dst=0)
    dist.scatter(got[3], parts if mine else None, group=group, group_src=0)
    return [got if mine else got[[0, 2, 3]], some]


@cases()
def asynchronous_calls_are_waited_for_in_another_order():
    tensors = [torch.full((1 << k,), rank() + 1.0) for k in range(12)]
    works = [dist.all_reduce(t, async_op=True) for t in tensors]
    for work in reversed(works):
        work.wait()
    return [t.sum() for t in tensors]


@cases()
def groups_within_groups():
    half, _ = dist.new_subgroups(size() // 2)
    pairs = [dist.new_group([0, k]) for k in range(1, size())]
    t = torch.tensor([rank() + 1.0])
    dist.all_reduce(t, group=half)
    for k, pair in enumerate(pairs):
        if rank() in (0, k + 1):
            dist.all_reduce(t, group=pair)
    dist.monitored_barrier()
    return [t, dist.get_process_group_ranks(half)]


@cases()
def a_sparse_tensor_is_summed():
    t = torch.sparse_coo_tensor([[rank(), 7]], [1.0, rank()], (8,))
    dist.all_reduce(t)
    return t.to_dense()


@cases()
def objects_of_all_kinds():
    r, n = rank(), size()
    mine = {"rank": r, "text": "x" * (100 * r), "tensor": torch.arange(r + 1)}
    gathered, everywhere, one = [None] * n, [None] * n, [None]
    dist.all_gather_object(everywhere, mine)
    dist.gather_object(mine, gathered if r == 1 else None, 1)
    dist.scatter_object_list(one, [{"for": k} for k in range(n)] if r == 1 else None, 1)
    sent = [mine, r] if r == 1 else [None, None]
    dist.broadcast_object_list(sent, 1)
    got = [None, None]
    if r == 0:
        dist.send_object_list([mine, "last"], n - 1)
    elif r == n - 1:
        dist.recv_object_list(got, 0)
    return [everywhere, gathered, one, sent, got]


@cases()
def messages_between_neighbours():
    r, n = rank(), size()
    right, left, got = (r + 1) % n, (r - 1) % n, [torch.zeros(5) for _ in range(4)]
    big = torch.zeros(1 << 16)
    if r % 2:
        dist.recv(got[0], left)
        dist.send(torch.full((5,), float(r)), right)
    else:
        dist.send(torch.full((5,), float(r)), right)
        dist.recv(got[0], left)
    works = [dist.isend(torch.full((5,), r + tag / 10), right, tag=tag) for tag in (1, 2)]
    works += [dist.irecv(got[tag], left, tag=tag) for tag in (2, 1)]
    P = dist.P2POp
    works += dist.batch_isend_irecv(
        [P(dist.isend, torch.full((1 << 16,), float(r)), right), P(dist.irecv, big, left)]
    )
    for work in works:
        work.wait()
    return [got, big]


@cases()
def messages_from_any_source():
    if rank():
        dist.send(torch.full((3,), float(rank())), 0)
        return None
    got = []
    for _ in range(size() - 1):
        t = torch.zeros(3)
        got.append((dist.recv(t), t.tolist()))
    return sorted(got)


@cases()
def a_message_within_a_group_names_its_ranks_there():
    group = dist.new_group(list(range(size()))[::-1][:2][::-1])
    t = torch.zeros(2)
    if rank() == size() - 2:
        dist.send(torch.ones(2), group=group, group_dst=1)
    elif rank() == size() - 1:
        dist.recv(t, group=group, group_src=0)
    return t


@cases()
def a_group_of_gloo_next_to_it():
    gloo, t = dist.new_group(backend="gloo"), torch.full((4,), rank() + 1.0)
    works = [dist.all_reduce(t, async_op=True), dist.all_reduce(t.clone(), group=gloo, async_op=True)]
    for work in works:
        work.wait()
    objects = [None] * size()
    dist.all_gather_object(objects, rank(), group=gloo)
    return [t, objects]


@cases(close=1e-3)
def collectives_of_torch_distributed_nn_with_gradients():
    from torch.distributed.nn import functional as differentiable

    x = torch.randn(3, requires_grad=True)
    y = differentiable.all_reduce(x * (rank() + 1)).sin()
    z = torch.cat(differentiable.all_gather(y * rank())).cos() + torch.cat(
        [differentiable.broadcast(x, 1)] * size()
    )
    parts = differentiable.all_to_all([torch.empty(3) for _ in range(size())], list(z.split(3)))
    differentiable.reduce_scatter(torch.empty(3), list(parts)).square().sum().backward()
    return x.grad


# ---- DDP ------------------------------------------------------------------------------------------


class Branches(nn.Module):
    """A rank uses one of two layers."""

    def __init__(self):
        super().__init__()
        self.first, self.left, self.right = nn.Linear(16, 8), nn.Linear(8, 4), nn.Linear(8, 4)

    def forward(self, x):
        return (self.right if rank() % 2 else self.left)(self.first(x))


@cases({
    "no option": {},
    "static_graph": {"static_graph": True},
    "gradient_as_bucket_view": {"gradient_as_bucket_view": True},
    "a bucket for each tensor": {"bucket_cap_mb": 1e-4},
    "a bucket for each tensor, static_graph and views": {
        "bucket_cap_mb": 1e-4, "static_graph": True, "gradient_as_bucket_view": True},
    "no init_sync": {"init_sync": False},
})  # fmt: skip
def ddp_with(**options):
    return train(DDP(mlp(), **options))


@cases()
def ddp_on_a_mesh():
    return train(DDP(mlp(), device_mesh=plane()["columns"]))


@cases()
def ddp_finds_unused_parameters():
    torch.manual_seed(7)
    return train(DDP(Branches(), find_unused_parameters=True))


@cases()
def ddp_broadcasts_buffers():
    model = DDP(mlp(nn.BatchNorm1d(32)), broadcast_buffers=True)
    return train(model) + [b.clone() for b in model.buffers()]


@cases()
def ddp_accumulates_with_no_sync():
    model = DDP(mlp())
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    torch.manual_seed(rank())
    for step in range(6):
        with contextlib.nullcontext() if step % 3 == 2 else model.no_sync():
            model(torch.randn(8, 16)).square().mean().backward()
        if step % 3 == 2:
            optimizer.step()
            optimizer.zero_grad()
    return weights(model)


@cases()
def ddp_with_activation_checkpoints():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = mlp()

        def forward(self, x):
            again = functools.partial(torch.utils.checkpoint.checkpoint, use_reentrant=False)
            return again(self.inner, x) + again(self.inner, 2 * x)

    return train(DDP(Twice(), static_graph=True))


@cases()
def ddp_with_sparse_gradients():
    torch.manual_seed(7)
    model = DDP(nn.Sequential(nn.Embedding(20, 8, sparse=True), nn.Linear(8, 4)))
    return train(model, inputs=lambda: torch.randint(20, (6,)))


@cases()
def ddp_with_complex_parameters():
    torch.manual_seed(7)
    model = DDP(nn.Linear(4, 4, dtype=torch.complex64))
    torch.manual_seed(rank())
    model(torch.randn(8, 4, dtype=torch.complex64)).abs().square().mean().backward()
    return [p.grad.clone() for p in model.parameters()]


@cases()
def ddp_with_the_optimizer_in_backward():
    model = mlp()
    _apply_optimizer_in_backward(torch.optim.SGD, model.parameters(), {"lr": 0.1})
    return train(DDP(model), torch.optim.SGD([torch.zeros(1)], 0.1))


@cases()
def ddp_with_two_models_and_groups():
    models = [DDP(mlp(), process_group=dist.new_group(list(range(size())))) for _ in range(2)]
    torch.manual_seed(rank())
    for _ in range(3):
        x = torch.randn(8, 16)
        (models[0](x) - models[1](x + 1)).square().mean().backward()
        for model in models:
            sgd(model).step()
            model.zero_grad()
    return [weights(model) for model in models]


def uneven():
    torch.manual_seed(rank())
    return [torch.randn(8, 16) for _ in range(2 + 2 * rank())]


@cases()
def ddp_with_join_of_uneven_inputs():
    model = DDP(mlp())
    optimizer = sgd(model)
    with model.join():
        for x in uneven():
            step_of(model, optimizer, x)
    return weights(model)


# ---- DDP's communication hooks --------------------------------------------------------------------


def low_rank(hook, **options):
    return lambda ddp: ddp.register_comm_hook(
        powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=2, min_compression_rate=1, **options), hook
    )


def with_hook(hook):
    return lambda ddp: ddp.register_comm_hook(None, hook)


def built_in(kind):
    return lambda ddp: ddp._register_builtin_comm_hook(kind)


def local(make):
    def register(ddp):
        alone = dist.new_group([rank()], use_local_synchronization=True)
        state = post_localSGD_hook.PostLocalSGDState(None, alone, start_localSGD_iter=2)
        ddp.register_comm_hook(state, post_localSGD_hook.post_localSGD_hook)
        averager = make()
        return lambda step: averager.average_parameters(ddp.parameters())

    return register


def two_levels():
    levels = {2: size() // 2, 4: size()} if size() > 2 else {2: size()}
    return hierarchical_model_averager.HierarchicalModelAverager(collections.OrderedDict(levels), 2)


def overlapped(ddp):
    state = optimizer_overlap_hooks._OptimizerHookState(_FunctionalSGD([], 0.1, _allow_empty_param_list=True))
    hook = optimizer_overlap_hooks._hook_then_optimizer(default_hooks.allreduce_hook, state)
    ddp.register_comm_hook(None, hook)


def two_calls(group, bucket):
    """The second is made by the callback of the first."""

    def again(future):
        return dist.all_reduce(future.value()[0] / size(), async_op=True).get_future().wait()[0]

    return dist.all_reduce(bucket.buffer() / size(), async_op=True).get_future().then(again)


# Batched PowerSGD gives it a matrix, which torch's own assertion refuses with any backend.
batch_of = powerSGD_hook._orthogonalize
powerSGD_hook._orthogonalize = lambda m, epsilon=0: batch_of(m if m.dim() == 3 else m[None], epsilon)


@cases({
    "allreduce": with_hook(default_hooks.allreduce_hook),
    "fp16": with_hook(default_hooks.fp16_compress_hook),
    "bf16": with_hook(default_hooks.bf16_compress_hook),
    "noop": with_hook(debugging_hooks.noop_hook),
    "built-in allreduce": built_in(dist.BuiltinCommHookType.ALLREDUCE),
    "built-in fp16": built_in(dist.BuiltinCommHookType.FP16_COMPRESS),
    "PowerSGD": low_rank(powerSGD_hook.powerSGD_hook),
    "PowerSGD of rank 2": low_rank(powerSGD_hook.powerSGD_hook, matrix_approximation_rank=2),
    "batched PowerSGD": low_rank(powerSGD_hook.batched_powerSGD_hook),
    "PowerSGD in fp16": low_rank(default_hooks.fp16_compress_wrapper(powerSGD_hook.powerSGD_hook)),
    "PowerSGD in bf16": low_rank(default_hooks.bf16_compress_wrapper(powerSGD_hook.powerSGD_hook)),
    "quantized per tensor": with_hook(quantization_hooks.quantization_pertensor_hook),
    "quantized per channel": with_hook(quantization_hooks.quantization_perchannel_hook),
    "post-local SGD": local(lambda: averagers.PeriodicModelAverager(2, 2)),
    "post-local SGD of two levels": local(two_levels),
    "optimizer overlap": overlapped,
    "two calls for a bucket": with_hook(two_calls),
}, close=1e-3)  # fmt: skip
def ddp_hook(register):
    model = DDP(mlp())
    after = register(model) or (lambda step: None)
    unused = torch.optim.SGD([torch.zeros(1)], 0.1)  # the hook makes the step
    return train(model, unused if register is overlapped else sgd(model), steps=6, after=after)


# ---- ZeroRedundancyOptimizer -----------------------------------------------------------------------


def zero(model, **options):
    return ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01, **options)


@cases({"plain": {}, "with buckets": {"parameters_as_bucket_view": True}})
def zero_redundancy(**options):
    model = DDP(mlp())
    optimizer = zero(model, **options)
    got = train(model, optimizer)
    optimizer.consolidate_state_dict(1)
    return [got, [s["exp_avg"] for s in optimizer.state_dict()["state"].values()] if rank() == 1 else None]


@cases()
def zero_redundancy_and_ddp_in_one_join():
    model = DDP(mlp())
    optimizer = zero(model)
    with Join([model, optimizer]):
        for x in uneven():
            step_of(model, optimizer, x)
    return weights(model)


@cases({"its own bucket": "hook_with_zero_step", "one bucket behind": "hook_with_zero_step_interleaved"})
def zero_redundancy_steps_in_a_hook(hook):
    model = DDP(mlp(), static_graph=True, bucket_cap_mb=1e-3)
    optimizer = zero(model, overlap_with_ddp=True)
    model.register_comm_hook(None, getattr(ddp_zero_hook, hook)(default_hooks.allreduce_hook, model, optimizer))
    return train(model, optimizer, steps=6)


# ---- Meshes and DTensor ----------------------------------------------------------------------------


@cases()
def a_mesh_of_two_dimensions():
    mesh, got = plane(), []
    for part in (mesh["rows"], mesh["columns"], mesh._flatten("all")):
        t = torch.tensor([rank() + 1.0])
        dist.all_reduce(t, group=part.get_group())
        got += [t, part.get_local_rank(), part.size()]
    return got + [mesh.get_coordinate()]


@cases()
def a_dtensor_is_redistributed():
    mesh, whole = line(), torch.arange(7 * 5.0).view(7, 5)  # no equal parts
    rows = distribute_tensor(whole, mesh, [Shard(0)])
    got = [rows.to_local(), rows.redistribute(mesh, [Shard(1)]).to_local(), rows.full_tensor()]
    partial = DTensor.from_local(whole * (rank() + 1), mesh, [Partial()])
    got += [partial.redistribute(mesh, [p]).to_local() for p in (Replicate(), Shard(0), Shard(1))]
    return got + [(rows @ rows.T).full_tensor(), rows.sum(0).full_tensor(), rows.std().full_tensor()]


@cases()
def a_dtensor_on_a_plane_of_ranks():
    mesh = plane()
    one, other = torch.randn(8, 8), torch.randn(8, 8)
    t = distribute_tensor(one, mesh, [Shard(0), Shard(1)])
    product = t @ distribute_tensor(other, mesh, [Replicate(), Shard(0)])
    return [product.full_tensor(), t.t().redistribute(mesh, [Shard(0), Replicate()]).to_local()]


# ---- Sharded and parallel models -------------------------------------------------------------------


@cases({
    **{s: {"strategy": s} for s in ("FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2")},
    "original parameters": {"use_orig_params": True},
    "no limit and no prefetch": {"limit_all_gathers": False, "backward_prefetch": None},
})  # fmt: skip
def fsdp1(strategy="FULL_SHARD", **options):
    if "HYBRID" in strategy:
        options["device_mesh"] = plane()
    options.update(auto_wrap_policy=ModuleWrapPolicy([nn.Linear]), device_id=torch.device("cpu"))
    model, norms = FSDP(mlp(), sharding_strategy=ShardingStrategy[strategy], **options), []
    optimizer = adam(model)
    train(model, optimizer, after=lambda step: norms.append(model.clip_grad_norm_(0.5)))
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT):
        return [norms, model.state_dict(), FSDP.optim_state_dict(model, optimizer)["state"]]


@cases(close=1e-2)
def fsdp1_in_bf16():
    mixed = MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16)
    model = FSDP(mlp(), mixed_precision=mixed, device_id=torch.device("cpu"))
    train(model)
    with FSDP.summon_full_params(model):
        return weights(model)


def sharded(mesh, policy=None, **options):
    model, policy = mlp(), MixedPrecisionPolicy(**policy or {})
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=mesh, mp_policy=policy, **options)
    return model


def clipped(model):
    def clip(step):
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), 0.5).full_tensor())

    norms = []
    return [train(model, adam(model), after=clip), norms]


@cases(
    {
        "plain": {},
        "weights are kept": {"reshard_after_forward": False},
        "resharded over 2": {"reshard_after_forward": 2},
    }
)
def fsdp2(**options):
    return clipped(sharded(line(), **options))


@cases({"weights": {"param_dtype": torch.bfloat16, "reduce_dtype": torch.float32},
        "gradients": {"reduce_dtype": torch.bfloat16}}, close=1e-2)  # fmt: skip
def fsdp2_in_bf16(**policy):
    return clipped(sharded(line(), policy))


@cases()
def fsdp2_accumulates_gradients():
    model = sharded(line())
    return train(model, after=lambda step: model.set_requires_gradient_sync(step % 2 == 0, recurse=True))


@cases()
def fsdp2_with_the_optimizer_in_backward():
    def step(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    model = sharded(line())
    optimizers = {p: torch.optim.Adam([p], 0.01) for p in model.parameters()}
    for p in model.parameters():
        p.register_post_accumulate_grad_hook(step)
    return train(model, torch.optim.SGD([torch.zeros(1)], 0.1))


@cases()
def hsdp():
    return clipped(sharded(plane()))


def parallel(mesh):
    return parallelize_module(mlp(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})


@cases()
def fsdp2_of_a_tensor_parallel_model():
    mesh = plane("data", "tensor")
    model = fully_shard(parallel(mesh["tensor"]), mesh=mesh["data"])
    return train(model, inputs=lambda: torch.ones(8, 16) * mesh["data"].get_local_rank())


@cases()
def tensor_parallel():
    return train(parallel(line()), inputs=lambda: torch.ones(8, 16) / 3)


@cases()
def tensor_parallel_of_sequences_with_a_parallel_loss():
    plan = {
        "0": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
        "1": SequenceParallel(),
        "2": PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Replicate()),
        "2.0": ColwiseParallel(),
        "2.2": RowwiseParallel(),
        "3": ColwiseParallel(output_layouts=Shard(-1), use_local_output=False),
    }
    model = nn.Sequential(nn.Embedding(32, 16), nn.LayerNorm(16), mlp(), nn.Linear(4, 32))
    model, losses = parallelize_module(model, line(), plan), []
    optimizer = torch.optim.SGD(model.parameters(), 0.1, foreach=False)
    for step in range(3):
        tokens = (torch.arange(16).view(2, 8) * (step + 3)) % 32
        with loss_parallel():
            loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten().roll(1))
            loss.backward()
        losses.append(loss.full_tensor())
        optimizer.step()
        optimizer.zero_grad()
    return losses + weights(model)


@cases()
def experts_get_tokens_by_all_to_all_of_different_sizes():
    n, r = size(), rank()
    expert = nn.Linear(8, 8)
    for p in expert.parameters():
        dist.broadcast(p.data, 0)
    torch.manual_seed(r)
    sizes = torch.tensor([(r + k) % 3 for k in range(n)])
    there, x = torch.zeros(n, dtype=torch.int64), torch.randn(int(sizes.sum()), 8, requires_grad=True)
    dist.all_to_all_single(there, sizes)
    splits = [there.tolist(), sizes.tolist()]
    y = functional.all_to_all_single_autograd(x, *splits, list(range(n)))
    z = functional.all_to_all_single_autograd(expert(y).tanh(), *splits[::-1], list(range(n)))
    z.square().sum().backward()
    dist.all_reduce(expert.weight.grad)
    return [z, x.grad, expert.weight.grad]


KINDS = ("GPipe", "1F1B", "Interleaved1F1B", "LoopedBFS", "InterleavedZeroBubble", "ZBVZeroBubble", "DualPipeV")


@cases({kind: kind for kind in KINDS})
def pipeline(kind):
    n, r, schedule = size(), rank(), getattr(schedules, "Schedule" + kind)
    several = issubclass(schedule, schedules.PipelineScheduleMulti)
    second = 2 * n - 1 - r if "V" in kind else r + n
    mine, count = ([r, second], 2 * n) if several else ([r], n)
    layers = [nn.Sequential(nn.Linear(16, 16), nn.Tanh()) for _ in range(count)]
    stages = [PipelineStage(layers[i], i, count, torch.device("cpu")) for i in mine]
    schedule = schedule(stages if several else stages[0], 2 * n, loss_fn=nn.functional.mse_loss)
    x, target, losses = torch.randn(8 * n, 16), torch.randn(8 * n, 16), []
    for _ in range(2):
        last = {"target": target, "losses": losses} if count - 1 in mine else {}
        schedule.step(*[x] if 0 in mine else [], **last)
    return losses + [p.grad for i in mine for p in layers[i].parameters()]


# ---- Checkpoints -----------------------------------------------------------------------------------


@contextlib.contextmanager
def common_folder():
    with tempfile.TemporaryDirectory() as own:
        path = [own]
        dist.broadcast_object_list(path)
        yield path[0]
        dist.barrier()


def state_of(model, optimizer):
    return dict(zip(("model", "optimizer"), dcp_state.get_state_dict(model, optimizer)))


@cases({"save": None, "async_save": "THREAD", "async_save in another process": "PROCESS"})
def checkpoint(how):
    model, again = sharded(line()), sharded(line())
    optimizer, other = adam(model), adam(again)
    train(model, optimizer)
    with common_folder() as path:
        if how is None:
            dcp.save(state_of(model, optimizer), checkpoint_id=path)
        else:
            kind = AsyncCheckpointerType[how]
            dcp.async_save(state_of(model, optimizer), checkpoint_id=path, async_checkpointer_type=kind).result()
            dist.barrier()
        state = state_of(again, other)
        dcp.load(state, checkpoint_id=path)
    dcp_state.set_state_dict(again, other, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    return train(again, other)


@cases()
def a_checkpoint_of_shards_is_loaded_as_a_whole_and_sharded_from_rank_0():
    model, again, whole = sharded(line()), sharded(line()), mlp().state_dict()
    train(model)
    with common_folder() as path:
        dcp.save(model.state_dict(), checkpoint_id=path)
        dcp.load(whole, checkpoint_id=path)
    options = dcp_state.StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    dcp_state.set_model_state_dict(again, dict(whole) if rank() == 0 else {}, options=options)
    return [whole, weights(again)]


# ---- torch.compile and functional collectives ------------------------------------------------------


@cases({"aot_eager": "aot_eager"})
def compiled_functional_collectives(backend):
    @functools.partial(torch.compile, backend=backend, fullgraph=True)
    def step(x):
        y = functional.all_reduce(x * 2, "sum", group) + 1
        z = functional.all_gather_tensor(y, 0, group).cos()
        s = functional.reduce_scatter_tensor(z, "sum", 0, group)
        return functional.all_to_all_single(s, None, None, group) + functional.broadcast(x, 0, group)

    group = list(range(size()))
    torch.manual_seed(rank())
    return [step(torch.randn(size(), 3)) for _ in range(2)]


@cases()
def coalesced_functional_collectives():
    group, x = list(range(size())), [torch.arange(4.0 * size()) + rank(), torch.ones(size(), 3) * rank()]
    got = functional.all_reduce_coalesced(x, "sum", group) + functional.reduce_scatter_tensor_coalesced(
        x, "sum", [0, 0], group
    )
    return [t + 0 for t in got + functional.all_gather_into_tensor_coalesced(x, group)]


@cases()
def functional_collectives_with_gradients():
    torch.manual_seed(rank())
    x, group = torch.randn(size(), 3, requires_grad=True), list(range(size()))
    y = functional.all_gather_tensor_autograd(x, 0, group).sin()
    z = functional.reduce_scatter_tensor_autograd(y * y, "sum", 0, group)
    functional.all_to_all_single_autograd(z, None, None, group).square().sum().backward()
    return x.grad


cases({"with inductor": "inductor"}, slow=True)(compiled_functional_collectives)


@cases(
    {"DDP": lambda: DDP(mlp()), "FSDP2": lambda: sharded(line()), "tensor parallel": lambda: parallel(line())},
    slow=True,
)
def compiled(make):
    return train(torch.compile(make(), backend="inductor"), inputs=lambda: torch.ones(8, 16) / 3)


# ---- Data, profiler, RPC, spawned processes --------------------------------------------------------


@cases()
def a_distributed_sampler_feeds_ddp():
    data = TensorDataset(torch.arange(50), torch.randn(50, 16))
    sampler = DistributedSampler(data, seed=3)
    model, seen = DDP(mlp()), []
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for which, x in DataLoader(data, 5, sampler=sampler, num_workers=1):
            seen.append(which)
            step_of(model, sgd(model), x)
    return seen + weights(model)


@cases(needs="torchdata")
def a_stateful_data_loader_continues_where_it_was():
    from torchdata.stateful_dataloader import StatefulDataLoader

    def made():
        return StatefulDataLoader(data, 5, sampler=DistributedSampler(data, seed=3), num_workers=1)

    data, states = torch.arange(60), [None] * size()
    loader = made()
    first = iter(loader)
    seen = [next(first) for _ in range(2)]
    dist.all_gather_object(states, loader.state_dict())
    loader = made()
    loader.load_state_dict(states[rank()])
    return seen + list(loader)


@cases()
def the_profiler_s_rows():
    """gloo has none of reduce_scatter."""
    n, r = size(), rank()
    with torch.profiler.profile(record_shapes=True) as profile:
        dist.all_reduce(torch.ones(4))
        dist.broadcast(torch.ones(4), 0, async_op=True).wait()
        dist.all_gather([torch.zeros(2) for _ in range(n)], torch.ones(2))
        dist.all_gather_into_tensor(torch.zeros(n, 2), torch.ones(1, 2))
        dist.all_to_all_single(torch.zeros(n), torch.ones(n))
        dist.reduce(torch.ones(3), 0)
        dist.gather(torch.ones(3), [torch.zeros(3) for _ in range(n)] if r == 0 else None)
        dist.scatter(torch.zeros(3), [torch.ones(3) for _ in range(n)] if r == 0 else None)
        if r < 2:
            dist.recv(torch.zeros(3), 0) if r else dist.send(torch.ones(3), 1)
        dist.barrier()
    rows = [(e.name.partition(":")[::2], e.input_shapes) for e in profile.events()]
    return sorted((call, shapes) for (backend, call), shapes in rows if backend == dist.get_backend())


@cases()
def rpc_runs_with_it():
    rpc = torch.distributed.rpc
    rpc.init_rpc(f"worker{rank()}", rank=rank(), world_size=size())
    there = f"worker{(rank() + 1) % size()}"
    future = rpc.rpc_async(there, torch.add, (torch.ones(3), rank()))
    t = torch.full((3,), float(rank()))
    dist.all_reduce(t)
    remote = rpc.remote(there, torch.arange, (5,)).to_here()
    rpc.shutdown()
    return [future.wait(), t, remote]


def spawned(number, backend, alias, url, n, path):
    register(alias)
    dist.init_process_group(backend, init_method=url, rank=number, world_size=n)
    t = torch.full((4,), number + 1.0)
    dist.all_reduce(t)
    torch.save(t, f"{path}/{number}")
    dist.destroy_process_group()


@cases({"tcp://": "tcp", "file://": "file"}, slow=True)
def processes_of_mp_spawn(init):
    with common_folder() as path:
        if rank() == 0:
            with socket.create_server(("127.0.0.1", 0)) as server:
                url = f"tcp://127.0.0.1:{server.getsockname()[1]}" if init == "tcp" else f"file://{path}/init"
            arguments = dist.get_backend(), sys.argv[2], url, size(), path
            torch.multiprocessing.spawn(spawned, arguments, size())
        dist.barrier()
        return [torch.load(f"{path}/{k}") for k in range(size())]


# ---- A rank ----------------------------------------------------------------------------------------


def register(backend):
    if backend != "gloo":
        from ctrun import torch_backend

        torch_backend.register() if backend == "ct" else torch_backend.register_as_gloo()


def file_of(folder, name, r):
    return f"{folder}/{name.replace('/', '')}.{r}"


def be_rank(backend, folder, names):
    """Runs the cases up to the first that fails.  Each leaves a file with its error, or None, and what it gave."""
    r, n = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    register(backend)
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False)
    for name in names:
        signal.alarm(LIMIT_S)
        torch.manual_seed(7)
        said = got = None
        place = dist.PrefixStore(name, store)
        try:
            dist.init_process_group("ct" if backend == "ct" else "gloo", store=place, rank=r, world_size=n)
            got = CASES[name].function()
            KEPT.extend(dist.distributed_c10d._world.pg_map)
            dist.destroy_process_group()
        except Exception as error:
            traceback.print_exc()
            said = f"{type(error).__name__}: {error}"
        path = file_of(folder, name, r)
        torch.save((said, got), path + ".part")
        os.rename(path + ".part", path)
        if said is not None:
            sys.stderr.flush()
            os._exit(1)
        torch.compiler.reset()


# ---- All ranks -------------------------------------------------------------------------------------


def run(backend, ranks, names, folder):
    """By case: its error or None, and what the ranks gave."""
    ctrun = os.path.join(os.environ["CT_BUILD"], "bin", "ctrun") if "CT_BUILD" in os.environ else "ctrun"
    results, rest, folder = {}, list(names), f"{folder}/{backend}{ranks}"
    os.makedirs(folder)
    while rest:
        done = subprocess.run(
            [ctrun, f"--nproc-per-node={ranks}", sys.executable, __file__, "--rank", backend, folder, *rest],
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        for name in list(rest):
            rest.remove(name)
            got = [read(file_of(folder, name, r)) for r in range(ranks)]
            errors = [error for error, _ in got if error is not None]
            if not errors and (rest or done.returncode == 0):
                results[name] = None, [values for _, values in got]
                continue
            said = done.stderr.strip() or f"exit {done.returncode}"
            results[name] = ([error for error in errors if error] + [said])[0].splitlines()[0], None
            with open(file_of(folder, name, "stderr"), "w") as file:
                file.write(said)
            break
    return results


def read(path):
    return torch.load(path, weights_only=False) if os.path.exists(path) else ("", None)


def distance(a, b):
    """The largest difference, in proportion to numbers above 1.  0: the same bits.  inf: not the same kind of thing."""
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and (a.dtype, a.shape) == (b.dtype, b.shape):
        if torch.equal(a, b):
            return 0.0
        a, b = (t.to(torch.complex128 if t.is_complex() else torch.float64) for t in (a, b))
        return ((a - b).abs() / b.abs().clamp(min=1)).nan_to_num(float("inf")).max().item()
    if type(a) is not type(b) or isinstance(a, torch.Tensor):
        return float("inf")
    if isinstance(a, dict):
        a, b = list(a.items()), list(b.items())
    if isinstance(a, (list, tuple)):
        return max(map(distance, a, b), default=0.0) if len(a) == len(b) else float("inf")
    return 0.0 if a == b else float("inf")


def main(words):
    options = dict(w[2:].partition("=")[::2] for w in words if w.startswith("--"))
    words = [w for w in words if not w.startswith("--")]
    if options.keys() - {"ranks", "backends", "fast", "keep"}:
        print(__doc__)
        return 2
    counts = [int(n) for n in options.get("ranks", "2,4").split(",")]
    names = [
        n for n, c in CASES.items() if not (c.slow and "fast" in options) and any(w in n for w in words or [""])
    ]
    with contextlib.ExitStack() as stack:
        folder = options.get("keep") or stack.enter_context(tempfile.TemporaryDirectory())
        backends = options.get("backends", "ct,gloo").split(",")
        results = {(b, n): run(b, n, names, folder) for b in backends for n in counts}
    errors, failed = [], 0
    print("| case |", *(f"{b}, {n} ranks |" for b, n in results), "difference | as gloo |")
    print("|" + "---|" * (len(results) + 3))
    for name in names:
        cells, far, is_well = [], [], True
        for (backend, n), result in results.items():
            error, got = result[name]
            errors += [error] if error is not None and error not in errors else []
            cells.append("ok" if error is None else f"[{errors.index(error) + 1}]")
            error_of_gloo, of_gloo = results.get(("gloo", n), {}).get(name, ("", None))
            if error is None and error_of_gloo is None and backend != "gloo":
                far.append(distance(got, of_gloo))
                is_well &= far[-1] <= (CASES[name].close if n > 2 else 0)
            is_well &= error is None or error_of_gloo is not None
        failed += not is_well
        difference = " ".join(f"{d:.0e}" if d else "0" for d in far)
        print("|", " | ".join([name, *cells, difference, "yes" if is_well else "NO"]), "|")
    print("", *(f"[{i + 1}] {error}" for i, error in enumerate(errors)), sep="\n")
    print(f"{len(names) - failed} of {len(names)} cases as with gloo; torch {torch.__version__}")
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--rank"]:
        be_rank(sys.argv[2], sys.argv[3], sys.argv[4:])
    else:
        sys.exit(main(sys.argv[1:]))
