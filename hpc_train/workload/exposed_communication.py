"""Profiled steps -> the share of their time in which a rank only waits for communication."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import torch

from hpc_train.model.training_strategies import FIRST_PROFILED

if TYPE_CHECKING:
    from torch.autograd.profiler_util import FunctionEvent

_MICRO = 1e-6
# What torch names the work of a backend on the CPU; NCCL's kernels are on the GPU.
_ON_CPU = ("gloo:", "mpi:")
_KERNEL = "nccl"
_OPERATION = "aten::"
_WAIT = "wait_tensor"


class Span(NamedTuple):
    """A time, from `start` to `end` [µs]."""

    start: float
    end: float


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


def spans(events: Iterable[FunctionEvent]) -> tuple[list[Span], list[Span]]:
    """Return the spans of communication and of computation, of the GPU if there are any.

    On a CPU a collective lasts from its call to its end.
    """
    known = list(events)
    on_gpu = [one for one in known if one.device_type.name == "CUDA"]
    if on_gpu:
        computation = [_span(one) for one in on_gpu if not one.name.startswith(_KERNEL)]
        return [_span(one) for one in on_gpu if one.name.startswith(_KERNEL)], computation
    return [_span(one) for one in known if one.name.startswith(_ON_CPU)], _operations(known)


def _operations(events: Sequence[FunctionEvent]) -> list[Span]:
    """Return when the thread computes that has most operations: gloo's own copy what they send.

    An operation of a DTensor may wait for a collective, which is no computation.
    """
    found = [one for one in events if one.name.startswith(_OPERATION)]
    threads = Counter(one.thread for one in found)
    main = max(threads, key=lambda thread: threads[thread], default=None)
    waits = [_span(one) for one in events if one.name.endswith(_WAIT) and one.thread == main]
    computed = [_span(one) for one in found if one.thread == main]
    for wait in waits:
        computed = [part for span in computed for part in _outside(span, wait)]
    return computed


def _outside(span: Span, other: Span) -> Iterator[Span]:
    """Yield the parts of a span before and after another one."""
    before, after = (
        Span(span.start, min(span.end, other.start)),
        Span(max(span.start, other.end), span.end),
    )
    if span.end <= other.start or other.end <= span.start:
        yield span
    else:
        yield from (part for part in (before, after) if part.start < part.end)


def _span(event: FunctionEvent) -> Span:
    return Span(event.time_range.start, event.time_range.end)


def exposed_seconds(communication: Iterable[Span], computation: Iterable[Span]) -> float:
    """Return how long there is communication and no computation [s]."""
    computed = list(computation)
    return _MICRO * (_covered([*communication, *computed]) - _covered(computed))


def _covered(some: Iterable[Span]) -> float:
    """Return how long there is at least one of the spans [µs]."""
    total, end = 0.0, float("-inf")
    for span in sorted(some):
        total += max(0.0, span.end - max(span.start, end))
        end = max(end, span.end)
    return total
