"""The share of a step in which a rank only waits: of spans, and of ranks of gloo."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch.profiler import ProfilerActivity, profile

from hpc_train.workload.measurements import (
    ExposedCommunication,
    Span,
    exposed_seconds,
    spans,
)

MICRO = 1e-6


@pytest.mark.parametrize(
    ("communication", "computation", "exposed"),
    [
        ([], [(0, 10)], 0),
        ([(0, 10)], [], 10),
        ([(0, 10)], [(0, 10)], 0),
        ([(0, 10)], [(5, 20)], 5),
        ([(5, 10)], [(0, 20)], 0),
        ([(0, 10)], [(2, 4), (3, 6), (20, 30)], 6),
        ([(0, 4), (2, 10), (30, 40)], [(1, 3), (35, 36)], 17),
    ],
)
def test_what_computation_does_not_cover(
    communication: list[tuple[float, float]],
    computation: list[tuple[float, float]],
    exposed: float,
) -> None:
    found = exposed_seconds(
        (Span(*span) for span in communication), (Span(*span) for span in computation)
    )
    assert found == pytest.approx(exposed * MICRO)


def test_operations_of_torch_are_computation() -> None:
    with profile(activities=[ProfilerActivity.CPU]) as found:
        torch.mm(torch.ones(64, 64), torch.ones(64, 64))
    communication, computation = spans(found.events() or ())
    assert not communication
    assert computation
    assert all(span.end >= span.start for span in computation)


def test_an_operation_that_waits_for_a_collective_is_no_computation() -> None:
    events = [
        event("aten::add", 0, 100),
        event("_c10d_functional::wait_tensor", 10, 90),
        event("gloo:all_reduce", 5, 95, thread=2),
        event("aten::copy_", 20, 80, thread=2),
    ]
    communication, computation = spans(events)
    assert communication == [Span(5, 95)]
    assert computation == [Span(0, 10), Span(90, 100)]
    assert exposed_seconds(communication, computation) == pytest.approx(80 * MICRO)


def event(name: str, start: float, end: float, thread: int = 1) -> Any:
    """Return what the profiler records of an operation of the CPU [µs]."""
    times = SimpleNamespace(start=start, end=end)
    device = SimpleNamespace(name="CPU")
    return SimpleNamespace(name=name, time_range=times, thread=thread, device_type=device)


def test_without_profiled_steps_there_is_no_share() -> None:
    exposed = ExposedCommunication(0, torch.device("cpu"))
    for number in range(1, 5):
        with exposed.step(number):
            pass
    assert exposed.share() is None


def test_the_third_step_is_the_first_that_is_profiled() -> None:
    exposed = ExposedCommunication(1, torch.device("cpu"))
    shares = []
    for number in range(1, 5):
        with exposed.step(number):
            torch.ones(10).sum()
        shares.append(exposed.share())
    assert shares == [None, None, 0.0, 0.0]


@pytest.mark.long
def test_two_ranks_wait_for_a_late_one_but_not_behind_their_own_computation() -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node=2", "-m", "tests.workload.waiting_ranks"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    line = next(line for line in done.stdout.splitlines() if line.startswith("{"))
    found = json.loads(line)
    # Rank 0 waits three seconds for rank 1; then it computes for these seconds instead.
    assert found["waits"] >= 1.5
    assert found["computes"] <= 0.5 * found["waits"]


def test_the_trainer_reports_the_share_of_each_rank() -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node=2", "-m", "hpc_train.workload.train", "--model", "gpt-tiny"]
    command += ["--strategy", "fsdp", "--global-batch-size", "8", "--steps", "5"]
    command += ["--profile-steps", "2", "--no-accuracy"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [line for line in done.stdout.splitlines() if '"event":"profile"' in line]
    events = [json.loads(line.removeprefix("@hpct ")) for line in lines]
    assert sorted(event["rank"] for event in events) == [0, 1]
    assert all(0 < event["exposed_communication"] < 1 for event in events)
