"""What is measured of a training: accuracy, operations, memory, bytes sent, and waits."""

from __future__ import annotations

import gc
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.utils.flop_counter import FlopCounterMode

from hpc_train.jobs.operations import FLOPS, PARAMETERS
from hpc_train.jobs.strategies import FIRST_PROFILED, MESHES, TrainingRequest
from hpc_train.trainer.datasets import Tokens, TrainingData
from hpc_train.trainer.emit import emit
from hpc_train.trainer.optimizer import parameter_type
from hpc_train.trainer.process_group import RankGroup
from hpc_train.trainer.spawn_ranks import env_int
from hpc_train.trainer.trainer_options import Options

if TYPE_CHECKING:
    from torch.autograd.profiler_util import FunctionEvent

TEST_BATCH = 512
TEST_TOKENS = 4096
INTERFACES = Path("/proc/self/net/dev")
_SENT = 8  # the column of transmitted bytes, the first after those received
GIB = 2**30
_MICRO = 1e-6
# What torch names the work of a backend on the CPU; NCCL's kernels are on the GPU.
_ON_CPU = ("gloo:", "mpi:")
_KERNEL = "nccl"
_OPERATION = "aten::"
_WAIT = "wait_tensor"


@torch.no_grad()
def measure_accuracy(
    model: nn.Module, test: TrainingData, group: RankGroup, precision: str
) -> float:
    """Return the fraction, 0..1, of the labels or tokens of the test set that is predicted right.

    Each sample is counted once: rank r takes samples r, r + world_size, ... and the counts are
    summed. Rank 0 alone would take world_size times as long while the others hold their devices
    and wait. `model` must be whole and not wrapped: the shares may differ by a sample.
    """
    model.eval()
    mine = list(range(group.rank, len(test), group.world_size))
    correct = predicted = 0
    size = TEST_BATCH
    if isinstance(test, Tokens):
        size = max(1, TEST_TOKENS // test.length)
    for start in range(0, len(mine), size):
        pair = test.__getitems__(mine[start : start + size])
        inputs, targets = test.prepare(pair, group.device, parameter_type(precision))
        correct += int((model(inputs).argmax(dim=-1) == targets).sum())
        predicted += targets.numel()
    right, seen = group.sums([correct, predicted])
    return right / seen


def report_model(
    options: Options,
    request: TrainingRequest,
    make: Callable[[], nn.Module],
    train_set: TrainingData,
) -> None:
    """Emit as conditions the strategy, parameters, and FLOP of a training step with one sample.

    Matrix products and convolutions, forward and backward, without recomputed activations
    (torch.utils.flop_counter).
    """
    cpu = torch.device("cpu")
    first = train_set.__getitems__([0])
    sample, _ = train_set.prepare(first, cpu, parameter_type(options.precision))
    stated = {"strategy": options.strategy, "optimizer": options.optimizer}
    if request.strategy in MESHES:
        stated["mesh"] = ",".join(map(str, request.sizes.values()))
    if request.strategy.startswith("pipeline"):
        stated["microbatches"] = str(request.microbatches)
    with torch.random.fork_rng(devices=[]), torch.device("meta"):
        model = make()
    with FlopCounterMode(display=False) as counter:
        model(sample.to("meta")).sum().backward()
    parameters = sum(parameter.numel() for parameter in model.parameters())
    size = {PARAMETERS: parameters, FLOPS: counter.get_total_flops()}
    emit(event="conditions", conditions={**stated, **size})


class ResourceUse:
    """Made before the model is built, on every rank."""

    def __init__(self, group: RankGroup) -> None:
        self.group, self.before, self.sent = group, tensor_bytes(), 0
        if group.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(group.device)

    def start(self) -> None:
        """Begin to count what the steps send; every rank must call it."""
        self.group.sums([0.0])  # no rank is still sending the weights
        self.sent = sum(interface_bytes().values())

    def report(self, steps: int, exposed: float | None) -> None:
        """Emit memory [GiB], and bytes per step and rank, of the `steps` since `start`.

        `exposed` is the share of a step in which this rank only waits for communication.

        Only gloo is counted: other backends bypass the interfaces of the kernel. The number is
        that of a node, divided by its ranks; other traffic of the node is included.
        """
        sent = sum(interface_bytes().values()) - self.sent
        kept = tensor_bytes() - self.before
        emit(
            event="memory",
            memory=peak_bytes(self.group.device) / GIB,
            state_memory=kept / GIB,
            scope="per_rank",
        )
        if exposed is not None:
            emit(event="profile", exposed_communication=exposed, scope="per_rank")
        if self.group.backend == "gloo" and env_int("LOCAL_RANK", 0) == 0 and steps:
            ranks = env_int("LOCAL_WORLD_SIZE", self.group.world_size, low=1)
            emit(event="traffic", sent_bytes=sent / steps / ranks, scope="per_rank")


def peak_bytes(device: torch.device) -> int:
    """Return the peak of the device or, on a CPU, of the resident set.

    On a GPU, beside the tensors: what is not torch's, such as CUDA's context and NCCL's buffers.
    """
    if device.type != "cuda":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    free, total = torch.cuda.mem_get_info(device)
    others = total - free - torch.cuda.memory_reserved(device)
    return torch.cuda.max_memory_allocated(device) + max(0, others)


def interface_bytes() -> dict[str, int]:
    """Return the bytes that each interface of this network namespace sent, headers included."""
    rows = (line.partition(":") for line in INTERFACES.read_text(encoding="ascii").splitlines()[2:])
    return {name.strip(): int(numbers.split()[_SENT]) for name, _, numbers in rows}


def tensor_bytes() -> int:
    """Return the bytes of all storages that tensors of this process share, gradients included."""
    gc.collect()
    storages: dict[int, int] = {}
    for found in gc.get_objects():
        if issubclass(type(found), Tensor):
            _add(found, storages)
    return sum(storages.values())


def _add(tensor: Tensor, storages: dict[int, int]) -> None:
    if tensor.is_leaf and tensor.grad is not None:
        _add(tensor.grad, storages)
    local = tensor.to_local() if isinstance(tensor, DTensor) else tensor
    if local.device.type != "meta" and local.layout == torch.strided:
        storage = local.untyped_storage()
        storages[storage.data_ptr()] = storage.nbytes()


# From a time to another [µs].
Span = tuple[float, float]


class ExposedCommunication:
    """Profiles as many steps as asked, from the third on."""

    def __init__(self, steps: int, device: torch.device) -> None:
        self._numbers = range(FIRST_PROFILED, FIRST_PROFILED + steps)
        self._exposed = self._seconds = 0.0
        kinds = torch.profiler.ProfilerActivity
        self._activities = [kinds.CPU, *([kinds.CUDA] if device.type == "cuda" else [])]

    @contextmanager
    def step(self, number: int) -> Iterator[None]:
        """Run a step of the training inside; it is profiled if it is one of those asked for."""
        if number not in self._numbers:
            yield
            return
        with torch.profiler.profile(activities=self._activities) as profile:
            started = time.perf_counter()
            yield
            self._seconds += time.perf_counter() - started
        self._exposed += exposed_seconds(*spans(profile.events() or ()))

    def share(self) -> float | None:
        """Return the share of the profiled time, 0..1; None if no step was profiled."""
        return min(self._exposed / self._seconds, 1.0) if self._seconds else None


def spans(events: Iterable[FunctionEvent]) -> tuple[list[Span], list[Span], list[Span]]:
    """Return the spans of communication, of computation, and of waits within it.

    Those of the GPU, if there are any. On a CPU a collective lasts from its call to its end, and
    the thread computes that has most operations: gloo's own copy what they send. An operation of a
    DTensor may wait for a collective, which is no computation.
    """
    known = list(events)
    # An annotation such as FSDP::all_gather lasts as long as all that is inside.
    on_gpu = [o for o in known if o.device_type.name == "CUDA" and not o.is_user_annotation]
    if on_gpu:
        computation = [_span(one) for one in on_gpu if not one.name.startswith(_KERNEL)]
        return [_span(one) for one in on_gpu if one.name.startswith(_KERNEL)], computation, []
    operations = [one for one in known if one.name.startswith(_OPERATION)]
    threads = Counter(one.thread for one in operations)
    main = max(threads, key=lambda thread: threads[thread], default=None)
    return (
        [_span(one) for one in known if one.name.startswith(_ON_CPU)],
        [_span(one) for one in operations if one.thread == main],
        [_span(one) for one in known if one.name.endswith(_WAIT) and one.thread == main],
    )


def _span(event: FunctionEvent) -> Span:
    return event.time_range.start, event.time_range.end


def exposed_seconds(*kinds: Iterable[Span]) -> float:
    """Return how long there is communication, and no computation or a wait within it [s]."""
    marks = sorted(
        (moment, kind, change)
        for kind, some in enumerate(kinds)
        for span in some
        for moment, change in zip(span, (1, -1), strict=True)
    )
    total, last, under_way = 0.0, 0.0, [0, 0, 0]
    for moment, kind, change in marks:
        communicates, computes, waits = under_way
        if communicates and (waits or not computes):
            total += moment - last
        under_way[kind] += change
        last = moment
    return _MICRO * total
