"""The share of a step in which a rank only waits: of spans, and of ranks of gloo."""

import json
import subprocess
import sys
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import distributed

from hpc_train.trainer.measurements import ExposedCommunication, exposed_seconds, peak_bytes, spans
from hpc_train.trainer.process_group import any_ranks
from hpc_train.trainer.strategies.whole_model import keep_type

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
    assert exposed_seconds(communication, computation) == pytest.approx(exposed * MICRO)


def test_an_operation_that_waits_for_a_collective_is_no_computation() -> None:
    events = [
        event("aten::add", 0, 100),
        event("_c10d_functional::wait_tensor", 10, 90),
        event("gloo:all_reduce", 5, 95, thread=2),
        event("aten::copy_", 20, 80, thread=2),
    ]
    assert spans(events) == ([(5, 95)], [(0, 100)], [(10, 90)])
    assert exposed_seconds(*spans(events)) == pytest.approx(80 * MICRO)


def test_annotations_of_a_gpu_are_no_computation() -> None:
    events = [
        event("FSDP::all_gather", 0, 100, gpu=True, is_user_annotation=True),
        event("nccl:all_gather", 0, 95, gpu=True, is_user_annotation=True),
        event("ncclDevKernel_AllGather_RING_LL", 10, 90, gpu=True),
        event("ampere_sgemm_128x64_tn", 60, 80, gpu=True),
        event("Optimizer.step#AdamW.step", 100, 200, gpu=True, is_user_annotation=True),
        event("aten::mm", 0, 300),
    ]
    assert spans(events) == ([(10, 90)], [(60, 80)], [])


def event(
    name: str, start: float, end: float, thread: int = 1, *, gpu: bool = False, **more: bool
) -> Any:
    """Return what the profiler records of an operation of the CPU or of a GPU [µs]."""
    times = SimpleNamespace(start=start, end=end)
    device = SimpleNamespace(name="CUDA" if gpu else "CPU")
    own = {"is_user_annotation": False, **more}
    return SimpleNamespace(name=name, time_range=times, thread=thread, device_type=device, **own)


def test_the_peak_of_a_gpu_has_what_is_not_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 80 GiB, 50 are in use: 45 reserved by torch, of which 40 were tensors at the peak."""
    gib = 2**30
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (30 * gib, 80 * gib))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda _: 45 * gib)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda _: 40 * gib)
    assert peak_bytes(torch.device("cuda", 0)) == 45 * gib


def test_ranks_agree_on_the_device_of_their_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program may leave each rank's current device at 0: NCCL refuses two ranks there."""
    group, used = SimpleNamespace(bound_device_id=torch.device("meta")), []
    monkeypatch.setattr(distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(distributed, "get_backend", lambda _: "nccl")
    monkeypatch.setattr(distributed, "all_reduce", lambda one, *_: used.append(one.device.type))
    with pytest.raises(NotImplementedError):  # values of meta cannot be read
        any_ranks((True,), group)  # type: ignore[arg-type]
    assert used == ["meta"]


def test_copies_of_a_model_compute_in_the_precision_that_was_asked_for() -> None:
    """DataParallel turns autocast on in each thread, without its type."""
    model, types = torch.nn.Linear(4, 4), []
    keep_type(model, "bf16", "cpu")

    def one_copy() -> None:
        with torch.autocast("cpu", torch.float16):
            types.append(model(torch.ones(1, 4)).dtype)

    thread = Thread(target=one_copy)
    thread.start()
    thread.join()
    assert types == [torch.bfloat16]


def test_the_third_step_is_the_first_that_is_profiled() -> None:
    exposed = ExposedCommunication(1, torch.device("cpu"))
    shares = []
    for number in range(1, 5):
        with exposed.step(number):
            torch.ones(10).sum()
        shares.append(exposed.share())
    assert shares == [None, None, 0.0, 0.0]


def test_the_trainer_reports_the_share_of_each_rank() -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node=2", "-m", "hpc_train.trainer.train", "--model", "gpt-tiny"]
    command += ["--strategy", "fsdp", "--global-batch-size", "8", "--steps", "5"]
    command += ["--profile-steps", "2", "--no-accuracy"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [line for line in done.stdout.splitlines() if '"event":"profile"' in line]
    events = [json.loads(line.removeprefix("@hpct ")) for line in lines]
    assert sorted(event["rank"] for event in events) == [0, 1]
    assert all(0 < event["exposed_communication"] < 1 for event in events)
